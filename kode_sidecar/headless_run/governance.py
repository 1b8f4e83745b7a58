"""What a run came to, from what happened in it (B11). Sans-IO."""

from dataclasses import dataclass

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.run import Governance, RunState, StepName

_BLOCKING = ("config", "sandbox")
_BEFORE_THE_ENGINE: tuple[StepName, ...] = (
    "config",
    "ids",
    "sandbox",
    "records",
    "skills",
    "memory",
    "prompt",
    "tools",
)


@dataclass(frozen=True)
class Verdict:
    """How a run ends. `governance` is None where nothing was judged: it was cancelled."""

    status: RunState
    governance: Governance | None
    error: ErrorInfo | None = None


def on_failed_step(step: StepName, error: ErrorInfo) -> Verdict:
    """A step could not be done. Before the engine a bad configuration or path blocks the run."""
    blocked = step in _BEFORE_THE_ENGINE and error.category in _BLOCKING
    return Verdict("failed", "blocked" if blocked else "failed", error)


def on_deliverables(missing: ErrorInfo | None) -> Verdict:
    """The engine is done; what it delivered decides."""
    if missing is not None:
        return Verdict("incomplete", "incomplete", missing)
    return Verdict("completed", "passed")
