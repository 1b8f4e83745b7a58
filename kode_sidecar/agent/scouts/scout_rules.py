"""Define the limits of scouts and the rules for their calls (D3, D4, D6). Sans-IO.

A scout's use and the time are passed in as values.
"""

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

MAX_TASKS = 5
"""The most tasks of one `explore`, and the most scouts at once in a session."""
REPORT = "report_findings"
READ = "read_file"

Refusal = Literal["read_first", "report_now", "reported"]


@dataclass(frozen=True)
class ScoutLimits:
    """The limits of a scout; times in seconds on the monotonic clock.

    `calls` counts all but `report_findings`; `prompt_tokens` is the host's count of a scout's
    history, at most `window_share` of the model's window. Beyond either, or after `report_after`,
    a scout can only report; after `seconds` it ends. `report_bytes` is the JSON of one report in
    UTF-8, about three bytes a token.
    """

    at_once: int = MAX_TASKS
    calls: int = 100
    prompt_tokens: int = 160_000
    window_share: float = 0.7
    report_after: float = 570.0
    seconds: float = 600.0
    report_bytes: int = 6_000
    result_chars: int = 20_000


class ScoutUse(Struct, frozen=True, kw_only=True):
    """What a scout has used: `calls` other than reports, `reads` that succeeded.

    `prompt_tokens` is the size of its newest request and answer, as the host counts.
    """

    calls: int = 0
    reads: int = 0
    prompt_tokens: int = 0
    reported: bool = False


def check(use: ScoutUse, tool: str, elapsed: float, limits: ScoutLimits) -> Refusal | None:
    """Return why a call must not run, None if it may; checked before each call.

    A report needs a successful read, except from a scout that can no longer read.
    """
    if use.reported:
        return "reported"
    if tool != REPORT:
        return "report_now" if must_report(use, elapsed, limits) else None
    if use.reads or must_report(use, elapsed, limits):
        return None
    return "read_first"


def must_report(use: ScoutUse, elapsed: float, limits: ScoutLimits) -> bool:
    """True if the scout can only report from now on."""
    return (
        use.calls >= limits.calls
        or use.prompt_tokens >= limits.prompt_tokens
        or elapsed >= limits.report_after
    )


def called(use: ScoutUse, tool: str) -> ScoutUse:
    """Return the use after a call was allowed."""
    return use if tool == REPORT else replace(use, calls=use.calls + 1)


def succeeded(use: ScoutUse, tool: str) -> ScoutUse:
    """Return the use after a call succeeded."""
    if tool == REPORT:
        return replace(use, reported=True)
    return replace(use, reads=use.reads + 1) if tool == READ else use
