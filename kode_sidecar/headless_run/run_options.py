"""What is to be run, and as which run (B1, B5)."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.run_config import Overrides
from kode_sidecar.workspace.paths import screened

MAX_ID_CHARS = 128
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class RunIds:
    """What was asked for; an empty one is made. Each may become the name of a folder."""

    session_id: str = ""
    task_id: str = ""
    run_id: str = ""

    def check(self) -> None:
        """Raises KodeError `PathOutsideRoots` for one that no folder should be named by."""
        for name in ("session_id", "task_id", "run_id"):
            text: str = getattr(self, name)
            if text and not is_plain_id(text):
                raise KodeError(
                    "PathOutsideRoots",
                    f"{name} is refused: use letters, digits, `.`, `_` and `-`, at most "
                    f"{MAX_ID_CHARS}, beginning with a letter or digit, and no device's name.",
                )


@dataclass(frozen=True)
class RunOptions:
    """What the caller asks for. `prompt` is the task, or the file that holds it.

    `sandbox` is the folder of the run, else one below the state folder. A `dry_run` ends before
    the engine.
    """

    config: Path
    prompt: str | Path
    sandbox: Path | None = None
    ids: RunIds = field(default_factory=RunIds)
    overrides: Overrides = field(default_factory=Overrides)
    dry_run: bool = False


def is_plain_id(text: str) -> bool:
    """Whether an id can be the name of a folder everywhere."""
    if len(text) > MAX_ID_CHARS or not _ID.fullmatch(text):
        return False
    try:
        return screened(text) == ("", (text,))
    except KodeError:
        return False


def made_run_id(timestamp: str, random: str) -> str:
    """A run id that sorts by time, to the millisecond: `20260102-030405678-1a2b3c4d`."""
    digits = re.sub(r"\D", "", timestamp)[:17]
    return f"{digits[:8]}-{digits[8:]}-{random[:8]}"
