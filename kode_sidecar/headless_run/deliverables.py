"""Is what was to be delivered there? (B2, B4, B11)"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.run_config import DeliverablePart
from kode_sidecar.headless_run.sandbox import DELIVERABLES, Sandbox

MAX_FILES = 1_000
"""How many files of one run are noted as delivered."""


@dataclass(frozen=True)
class CheckedDeliverable:
    """One deliverable of the configuration. `problem` is empty where it is as it must be.

    `refusal` is there when its path leads elsewhere.
    """

    path: str
    required: bool
    bytes: int
    content_type: str = ""
    problem: str = ""
    refusal: ErrorInfo | None = None

    @property
    def ok(self) -> bool:
        """Whether it is there."""
        return not self.problem


def check_deliverables(
    wanted: Sequence[DeliverablePart], sandbox: Sandbox
) -> tuple[CheckedDeliverable, ...]:
    """Look at each of them, in their order."""
    return tuple(_check(one, sandbox) for one in wanted)


def delivered_files(sandbox: Sandbox) -> list[str]:
    """What lies under `deliverables/`, asked for or not, however it was made: plain files with
    one name only.

    The first `MAX_FILES` by path, sandbox-relative.
    """
    found: list[str] = []
    for folder, folders, names in os.walk(sandbox.zone(DELIVERABLES)):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                found.append(sandbox.relative(Path(path)))
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def missing_error(found: Sequence[CheckedDeliverable]) -> ErrorInfo | None:
    """What a scheduler is told when a required one is not there; None if all are."""
    missing = [one for one in found if one.required and not one.ok]
    if not missing:
        return None
    told = "; ".join(f"{one.path} {one.problem}" for one in missing)
    return failure(
        "DeliverableMissing",
        f"The run did not deliver what it must: {told}.",
        paths=[one.path for one in missing],
    )


def _check(wanted: DeliverablePart, sandbox: Sandbox) -> CheckedDeliverable:
    size, problem, refusal = 0, "", None
    try:
        place = sandbox.locate(wanted.path, "read")
        status = os.lstat(place.real)
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            problem = "is not a regular file"
        elif status.st_nlink > 1:
            problem = "is a second name of another file"
        elif size < wanted.min_bytes:
            problem = f"has {size} bytes, at least {wanted.min_bytes} were asked for"
    except KodeError as error:
        problem, refusal = "leads out of the sandbox", error_info(error)
    except OSError:
        problem = "is missing"
    return CheckedDeliverable(
        path=wanted.path,
        required=wanted.required,
        bytes=size,
        content_type=wanted.content_type or "",
        problem=problem,
        refusal=refusal,
    )
