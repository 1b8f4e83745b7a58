"""Sets up a play of the demo: a copy of the sample project, a state folder, a terminal."""

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
# The user's own settings must not leak into a recorded play.
_OWN_SETTINGS = ("KODE_", "KIMI_", "MOONSHOT_", "AGENT_LOG_")


@dataclass(frozen=True)
class DemoOptions:
    """`fast` leaves out the pacing; `locale` is `zh` or `en`, None is the system's; `live` uses the
    real service."""

    fast: bool = False
    locale: str | None = None
    live: bool = False

    @property
    def language(self) -> str:
        """`zh` or `en`."""
        return Narration(self.locale or system_locale()).language


class DemoFailed(Exception):
    """The play had an unexpected result. The message says what was expected."""


@dataclass(frozen=True)
class Stage:
    """The folders of one play; they are not deleted, so that users can look at the records."""

    project: Path
    home: Path

    @property
    def file(self) -> Path:
        """The edited file."""
        return self.project / EDITED_FILE

    @property
    def unsaved_text(self) -> str:
        """The text of the edited file in the editor, which differs from the disk."""
        return (HERE / "unsaved" / self.file.name).read_bytes().decode("utf-8")


def set_stage() -> Stage:
    """Create a new stage below the system's folder for temporary files. Raises OSError."""
    top = Path(tempfile.mkdtemp(prefix="kode-demo-")).resolve()
    shutil.copytree(HERE / "sample_project", top / "tea-shop")
    (top / "home").mkdir()
    return Stage(top / "tea-shop", top / "home")


@dataclass(frozen=True)
class Show:
    """The options, folders, terminal and texts that the acts of a play share."""

    options: DemoOptions
    stage: Stage
    terminal: Terminal
    say: Narration


async def perform(
    options: DemoOptions, out: TextIO | None, acts: Callable[[Show], Awaitable[None]]
) -> int:
    """Play to `out` (default: standard output) and return the exit code.

    A failure is printed with the place of the logs and records, and the exit code is 1.
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
    """Return the child's environment for a recorded play, without the user's own settings."""
    kept = {
        name: value for name, value in environ.items() if not name.upper().startswith(_OWN_SETTINGS)
    }
    return {**kept, "KIMI_BASE_URL": base_url, "KIMI_API_KEY": "sk-demo-recorded"}


def has_key(environ: Mapping[str, str]) -> bool:
    """True if the environment has a key for the real service."""
    return bool(environ.get("KIMI_API_KEY") or environ.get("MOONSHOT_API_KEY"))
