"""Where the demo plays: a copy of the sample project, a state folder, a terminal."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from kode_sidecar.devtools.demo.narration import Narration
from kode_sidecar.terminal.client.labels import labels_for, system_locale
from kode_sidecar.terminal.client.terminal import Terminal, prepare

CEILING_SECONDS = 120.0
LIVE_CEILING_SECONDS = 900.0

HERE = Path(__file__).parent
EDITED_FILE = "src/receipt.js"
# Settings of the user's own must not leak into a recorded play.
_OWN_SETTINGS = ("KODE_", "KIMI_", "MOONSHOT_", "AGENT_LOG_")


@dataclass(frozen=True)
class DemoOptions:
    """`fast` leaves out the pacing; `locale` is `zh` or `en`, None asks the system; `live` asks
    the real service."""

    fast: bool = False
    locale: str | None = None
    live: bool = False

    @property
    def language(self) -> str:
        """`zh` or `en`."""
        return Narration(self.locale or system_locale()).language


class DemoFailed(Exception):
    """The play did not go as it must. The message says what was expected."""


@dataclass(frozen=True)
class Stage:
    """Folders of one play; they are kept so that the records can be looked at."""

    project: Path
    home: Path

    @property
    def file(self) -> Path:
        """The file that gets edited."""
        return self.project / EDITED_FILE

    @property
    def unsaved_text(self) -> str:
        """What the editor's buffer holds of it, ahead of the disk."""
        return (HERE / "unsaved" / self.file.name).read_bytes().decode("utf-8")


def set_stage() -> Stage:
    """Return a fresh stage below the system's folder for temporary files. Raises OSError."""
    top = Path(tempfile.mkdtemp(prefix="kode-demo-")).resolve()
    shutil.copytree(HERE / "sample_project", top / "tea-shop")
    (top / "home").mkdir()
    return Stage(top / "tea-shop", top / "home")


@dataclass(frozen=True)
class Show:
    """What every act of a play has: its options, its folders, the terminal and the words."""

    options: DemoOptions
    stage: Stage
    terminal: Terminal
    say: Narration


async def perform(
    options: DemoOptions, out: TextIO | None, acts: Callable[[Show], Awaitable[None]]
) -> int:
    """Play to `out` (standard output); the exit code.

    Any failure is printed with the place of the logs and records, and gives 1.
    """
    screen: TextIO = sys.stdout if out is None else out
    prepare(screen)
    say = Narration(options.language)
    terminal = Terminal(screen, labels_for(options.language))
    stage = None
    try:
        stage = set_stage()
        if options.live and not has_key(os.environ):
            raise DemoFailed(say("no_key"))
        async with asyncio.timeout(LIVE_CEILING_SECONDS if options.live else CEILING_SECONDS):
            await acts(Show(options, stage, terminal, say))
    except Exception as error:
        terminal.line()
        terminal.line(say("failed", error=str(error) or type(error).__name__), "red")
        if stage is not None:
            terminal.line(say("logs", home=stage.home))
        return 1
    return 0


def recorded_environment(environ: Mapping[str, str], base_url: str) -> dict[str, str]:
    """Return the child's environment when a recording answers."""
    kept = {
        name: value for name, value in environ.items() if not name.upper().startswith(_OWN_SETTINGS)
    }
    return {**kept, "KIMI_BASE_URL": base_url, "KIMI_API_KEY": "sk-demo-recorded"}


def has_key(environ: Mapping[str, str]) -> bool:
    """Can the real service be asked?"""
    return bool(environ.get("KIMI_API_KEY") or environ.get("MOONSHOT_API_KEY"))
