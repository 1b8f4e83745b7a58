"""The records of a governed run (B5, B7, B11), in snake_case on disk as users expect."""

from typing import Any, Literal

from msgspec import Struct, field, structs

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Cost, ResultStatus, Usage

RunState = Literal[
    "pending",
    "running",
    "completed",
    "incomplete",
    "failed",
    "cancelled",
    "waiting_for_tool",
    "waiting_for_user",
    "review_required",
    "revision_required",
]
Governance = Literal["passed", "failed", "incomplete", "blocked"]
StepName = Literal[
    "config",
    "ids",
    "sandbox",
    "records",
    "skills",
    "memory",
    "prompt",
    "tools",
    "engine",
    "deliverables",
    "final",
]
Actor = Literal["runtime", "engine", "model", "tool", "governance", "user"]
Severity = Literal["debug", "info", "warning", "error"]

FINAL_STATES: frozenset[RunState] = frozenset({"completed", "incomplete", "failed", "cancelled"})
"""The states in which a run no longer changes."""


class RunError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An `ErrorInfo` in the files of a run: the same fields, in snake_case."""

    code: str
    message: str
    category: str
    retryable: bool
    http_status: int | None = None
    retry_after_ms: int | None = None
    details: dict[str, Any] | None = None


def run_error(error: ErrorInfo) -> RunError:
    """Return a failure in the form used in the files of a run."""
    return RunError(**structs.asdict(error))


class RunRecord(Struct, frozen=True, kw_only=True):
    """`run.json`: the authoritative record of a run.

    Times are RFC 3339 in UTC. `step` is the one the run is at, or ended in. `failure_reason` is
    `error.code`. With `config.yaml` and `prompt.md` beside it the run can be repeated:
    `config_path` is where the configuration came from, `overrides` what the command line changed.
    A `dry_run` ends before the engine and stays `pending`. `usage` and `costs`, a sum for each
    currency, are those of all answers so far; `cost_usd` is absent if no price is known.
    `conversation_id` is the session that the engine works in, which users can open and read. It is
    `session_id`, or another id if the caller chose `session_id`, as many runs may share that. It is
    empty before the engine.

    Until a final state the process `pid` holds the lock of the run's folder; the system releases
    the lock when the process ends for any reason.
    """

    schema_version: int = 1
    session_id: str
    task_id: str
    run_id: str
    conversation_id: str = ""
    profile_id: str = ""
    config_fingerprint: str = ""
    config_path: str = ""
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])
    engine: str = ""
    model: str = ""
    sandbox_root: str
    status: RunState = "pending"
    governance: Governance | None = None
    step: StepName = "config"
    failure_reason: str | None = None
    error: RunError | None = None
    final_text: str = ""
    created_at: str
    started_at: str | None = None
    updated_at: str
    completed_at: str | None = None
    dry_run: bool = False
    pid: int = 0
    usage: Usage = Usage()
    costs: tuple[Cost, ...] = ()
    cost_usd: float | None = None


class RunEvent(Struct, frozen=True, kw_only=True):
    """One line of `events.jsonl`.

    `sequence` counts 1, 2, 3 … without gaps. `type` is a noun and a participle, such as
    `step.started`. `correlation_id` groups the events of one thing (a tool call, a step),
    `parent_event_id` names the event that caused this one. `data` is small and has no secrets:
    anything large or secret is in an artifact that `data` names.
    """

    event_id: str
    sequence: int
    run_id: str
    session_id: str
    task_id: str
    type: str
    timestamp: str
    actor: Actor
    severity: Severity
    summary: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    correlation_id: str = ""
    parent_event_id: str | None = None


class ToolRecord(Struct, frozen=True, kw_only=True):
    """One line of `logs/tools.jsonl`: a call that ended. `action` says what it worked on.

    `args_summary` has a short text for each argument. The fields with defaults are known only at
    its end.
    """

    call_id: str
    tool_name: str
    action: str
    started_at: str
    completed_at: str = ""
    duration_ms: int = 0
    status: ResultStatus = "ok"
    args_summary: dict[str, str]
    result_summary: str = ""
    artifacts: tuple[str, ...] = ()
    error: RunError | None = None


class ErrorRecord(Struct, frozen=True, kw_only=True):
    """One line of `logs/errors.jsonl`. `where` is a step or a tool."""

    timestamp: str
    run_id: str
    where: str
    error: RunError
    correlation_id: str = ""
    event_id: str = ""


class RunResult(Struct, frozen=True, kw_only=True):
    """The result of a run (B1)."""

    session_id: str
    task_id: str
    run_id: str
    status: RunState
    sandbox_root: str
    conversation_id: str = ""
    final_text: str = ""
    error: RunError | None = None
    governance: Governance | None = None
    usage: Usage = Usage()
    costs: tuple[Cost, ...] = ()
    cost_usd: float | None = None

    @property
    def exit_code(self) -> int:
        """0 completed, 1 failed, 3 incomplete, 4 blocked, 130 cancelled.

        A dry run ends with 0, or with 1 if a real one could not ask the model.
        """
        if self.governance == "blocked":
            return 4
        if self.status == "pending" and self.error is not None:
            return 1
        codes = {"completed": 0, "pending": 0, "incomplete": 3, "cancelled": 130}
        return codes.get(self.status, 1)
