"""The rules a scout lives by. Sans-IO: what it has used and the time come in as values."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.scouts.contracts import ScoutLimits

REPORT = "report_findings"
READ = "read_file"

Refusal = Literal["read_first", "report_now", "reported"]


class ScoutUse(Struct, frozen=True, kw_only=True):
    """What a scout has used: `calls` other than reports, `reads` that succeeded.

    `prompt_tokens` is the size of its newest question to the model, as the host counts.
    """

    calls: int = 0
    reads: int = 0
    prompt_tokens: int = 0
    reported: bool = False


def check(use: ScoutUse, tool: str, elapsed: float, limits: ScoutLimits) -> Refusal | None:
    """Why a call must not run, asked before each one; None if it may.

    A report needs a successful read, but not from a scout that cannot read any more.
    """
    if use.reported:
        return "reported"
    if tool != REPORT:
        return "report_now" if must_report(use, elapsed, limits) else None
    if use.reads or must_report(use, elapsed, limits):
        return None
    return "read_first"


def must_report(use: ScoutUse, elapsed: float, limits: ScoutLimits) -> bool:
    """Is a report all that is left to do?"""
    return (
        use.calls >= limits.calls
        or use.prompt_tokens >= limits.prompt_tokens
        or elapsed >= limits.report_after
    )


def called(use: ScoutUse, tool: str) -> ScoutUse:
    """After a call was let through."""
    return use if tool == REPORT else replace(use, calls=use.calls + 1)


def succeeded(use: ScoutUse, tool: str) -> ScoutUse:
    """After a call did what it was for."""
    if tool == REPORT:
        return replace(use, reported=True)
    return replace(use, reads=use.reads + 1) if tool == READ else use
