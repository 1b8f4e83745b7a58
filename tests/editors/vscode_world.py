"""Real VS Code for tests: code-server with our extension, driven by Chromium.

Both are installed once into a folder outside the project, `~/.cache/kode-sidecar-tests`.
"""

import asyncio
import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import ModelServer
from tests.editors.recordings import faults, recorded
from tests.support.program import ROOT

CODE_SERVER = "4.100.3"  # the newest that runs on Node 20
PLAYWRIGHT = "1.55.0"
CACHE = Path.home() / ".cache" / "kode-sidecar-tests"
EXTENSION = ROOT / "editors" / "vscode"
CHROMIUM = next(
    (found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), ""
)
WAIT_MS = 90_000.0
"""Nothing takes this long; what does has hung."""


PALETTE_CLOSED = """() => {
  const widget = document.querySelector('.quick-input-widget');
  const typed = widget.querySelector('input.input').value;
  return widget.style.display === 'none' || !typed.startsWith('>');
}"""


def vsix_maker() -> Any:
    """The module that packs the extension."""
    folder = str(EXTENSION / "scripts")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("vsix")


@cache
def our_vsix() -> Path:
    """The extension as it is now, without a sidecar of its own."""
    return Path(vsix_maker().make(server=None))


def code_server() -> Path:
    """The folder of code-server; the first use installs it, which takes some minutes."""
    home = CACHE / "code-server"
    package = home / "node_modules" / "code-server"
    ready = home / f"ready-{CODE_SERVER}"
    if ready.exists():
        return package
    npm = shutil.which("npm") or "npm"  # its addons are built for the Node that runs it
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text("{}", encoding="utf-8")
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund"]
    _run([npm, "install", *quiet, f"code-server@{CODE_SERVER}"], home)
    editor = package / "lib" / "vscode"
    _run([npm, "install", "--omit=dev", *quiet], editor)
    _run([npm, "rebuild", "argon2"], home)
    # It ends with an error after the addons are there.
    addons = ["@vscode/spdlog", "node-pty", "native-watchdog"]
    subprocess.run([npm, "rebuild", *addons], cwd=editor, capture_output=True, check=False)
    search = editor / "node_modules" / "@vscode" / "ripgrep" / "bin"
    search.mkdir(exist_ok=True)
    shutil.copy(shutil.which("rg", path=str(Path(sys.executable).parent)) or "rg", search / "rg")
    ready.touch()
    return package


def playwright() -> Any:
    """The module `playwright.async_api`, from a folder of its own."""
    folder = CACHE / f"playwright-{PLAYWRIGHT}"
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        _run([*pip, f"playwright=={PLAYWRIGHT}"], CACHE)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module("playwright.async_api")


def _run(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")


def language_pack(folder: Path) -> Path:
    """An extension by which VS Code takes itself for Chinese: only our own texts are translated."""
    localization = {
        "languageId": "zh-cn",
        "languageName": "Chinese Simplified",
        "translations": [{"id": "vscode", "path": "./main.i18n.json"}],
    }
    manifest = {
        "name": "chinese",
        "publisher": "kode-test",
        "version": "1.0.0",
        "engines": {"vscode": "^1.91.0"},
        "categories": ["Language Packs"],
        "contributes": {"localizations": [localization]},
    }
    vsix = folder / "chinese.vsix"
    with zipfile.ZipFile(vsix, "w") as packed:
        packed.writestr("extension/package.json", json.dumps(manifest))
        packed.writestr("extension/main.i18n.json", '{"version": "1.0.0", "contents": {}}')
    return vsix


@dataclass
class Window:
    """One window of VS Code; what a user can do with it."""

    page: Any
    project: Path
    home: Path
    logs: Path

    @property
    def chat(self) -> Any:
        """The chat's own document, inside two frames."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("iframe#active-frame")

    async def command(self, title: str) -> None:
        """Run a command by its title, by the palette."""
        await self._choose("F1", f">{title}", title)
        await self.page.wait_for_function(PALETTE_CLOSED)

    async def open_file(self, name: str) -> None:
        """By the quick open box."""
        await self._choose("Control+P", name, name)
        await self.tab(name).wait_for()

    async def _choose(self, key: str, typed: str, row: str) -> None:
        """Whatever takes the focus meanwhile closes the box: open it again then."""
        box = self.page.locator(".quick-input-widget input.input")
        rows = self.page.locator(".quick-input-list .monaco-list-row", has_text=row)
        for _ in range(10):
            await self.page.keyboard.press(key)
            try:
                await box.fill(typed, timeout=3000)
                await rows.first.wait_for(timeout=3000)
            except playwright().TimeoutError:
                continue
            await self.page.keyboard.press("Enter")
            return
        raise AssertionError(f"{row} cannot be chosen")

    def tab(self, name: str) -> Any:
        return self.page.locator(".tabs-container .tab", has_text=name).first

    def editor(self) -> Any:
        """The lines of the editor that is in front."""
        return self.page.locator(
            ".editor-group-container.active .editor-instance .view-lines"
        ).first

    async def prompt(self, text: str) -> None:
        """Write into the chat and send it."""
        box = self.chat.locator("textarea")
        await box.fill(text)
        await box.press("Enter")

    async def end_sidecar(self) -> None:
        """In order, as a restart does: code-server itself gives an extension no time to end it."""
        started = self.log().count(", pid ")
        await self.command("kode: Restart the Sidecar")
        async with asyncio.timeout(WAIT_MS / 1000):
            while self.log().count(", pid ") == started:  # noqa: ASYNC110  (a file)
                await asyncio.sleep(0.05)

    async def trace(self) -> None:
        """Note from now on what every thread of Chromium computes."""
        await self.page.context.browser.start_tracing(page=self.page, categories=["toplevel"])

    async def traced(self) -> list[float]:
        """Milliseconds of CPU of each task of the busiest page's main thread since `trace`."""
        events = json.loads(await self.page.context.browser.stop_tracing())["traceEvents"]
        mains = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        tasks: dict[tuple[int, int], list[float]] = {thread: [] for thread in mains}
        for event in events:
            if event.get("ph") == "X" and event["name"].endswith("RunTask") and "tdur" in event:
                tasks.get((event["pid"], event["tid"]), []).append(event["tdur"] / 1000)
        return max(map(sorted, tasks.values()), key=sum)

    def log(self) -> str:
        """What our extension has logged."""
        return "".join(path.read_text("utf-8") for path in self.logs.rglob("*kode*.log"))


@asynccontextmanager
async def vscode(
    folder: Path,
    model: ModelServer | None,
    *,
    files: Mapping[str, bytes],
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    vsix: Path | None = None,
    size: tuple[int, int] = (1400, 900),
    chinese: bool = False,
) -> AsyncIterator[Window]:
    """VS Code with a project of `files` and our extension; the sidecar asks `model`.

    Without `vsix` the extension has no sidecar of its own, and a setting names the one under test.
    """
    project, home, user = folder / "project", folder / "home", folder / "user"
    for name, data in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    reported = {
        "telemetry.telemetryLevel": "off",
        "workbench.startupEditor": "none",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "files.autoSave": "off",
        "files.simpleDialog.enable": True,
        "extensions.ignoreRecommendations": True,
        "window.confirmBeforeClose": "never",
        "security.workspace.trust.enabled": False,
        **({} if vsix else {"kode.command": recorded(folder / "talks")}),
        **(settings or {}),
    }
    (user / "User").mkdir(parents=True)
    (user / "User" / "settings.json").write_text(json.dumps(reported), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "KODE_HOME": str(home), **(environment or {})}
    if model is not None:
        env |= {"KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test-key-000"}
    entry = code_server() / "out" / "node" / "entry.js"
    extensions = ["--user-data-dir", str(user), "--extensions-dir", str(folder / "extensions")]
    command = [shutil.which("node") or "node", str(entry), *extensions]
    wanted = [vsix or our_vsix(), *([language_pack(folder)] if chinese else [])]
    installs = [word for path in wanted for word in ("--install-extension", str(path))]
    installed = await asyncio.create_subprocess_exec(
        *command, *installs, env=env, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await installed.communicate()
    assert installed.returncode == 0, said.decode()
    port = _free_port()
    served = await asyncio.create_subprocess_exec(
        *command,
        *(["--locale", "zh-cn"] if chinese else []),
        *["--bind-addr", f"127.0.0.1:{port}", "--auth", "none"],
        *["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
        env=env,
        stdout=(folder / "code-server.log").open("wb"),
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        await _listening(port)
        async with playwright().async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            context = await browser.new_context(
                viewport={"width": size[0], "height": size[1]},
                permissions=["clipboard-read", "clipboard-write"],
            )
            page = await context.new_page()
            page.set_default_timeout(WAIT_MS)
            if chinese:
                await page.add_init_script("globalThis._VSCODE_NLS_LANGUAGE = 'zh-cn';")
            await page.goto(f"http://127.0.0.1:{port}/?folder={project}")
            # With the icon the commands are there, too.
            await page.locator(".activitybar [aria-label='kode']").first.wait_for()
            window = Window(page, project, home, user / "logs")
            try:
                yield window
            except BaseException:
                await page.screenshot(path=str(folder / "failure.png"))
                sys.stderr.write(f"{folder / 'failure.png'}\n{window.log()[-2000:]}\n")
                raise
            await window.end_sidecar()
            await browser.close()
            if found := faults(folder / "talks"):
                raise AssertionError("\n".join(found))
    finally:
        if served.returncode is None:
            served.terminate()
            await served.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def _listening(port: int) -> None:
    async with asyncio.timeout(WAIT_MS / 1000):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.1)
