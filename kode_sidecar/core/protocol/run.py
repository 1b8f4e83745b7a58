"""Params and results of `kode/run/*`: governed runs, as with `kode-sidecar run`."""

from typing import Any

from msgspec import Struct, field

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.run import Actor, Governance, RunState, Severity, StepName


class RunStartParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`config` and `workspace` are absolute paths; `workspace` is the project to copy.

    Absent fields come from the configuration, and absent ids are generated. A `dry_run` ends before
    the engine starts.
    """

    config: str
    prompt: str
    session_id: str = ""
    task_id: str = ""
    run_id: str = ""
    workspace: str | None = None
    model: str | None = None
    stream: bool | None = None
    max_steps: int | None = None
    timeout_seconds: float | None = None
    dry_run: bool = False


class RunStartResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The run has its folder and its record; `kode/run/get` returns its progress."""

    run_id: str
    session_id: str
    task_id: str
    sandbox_root: str


class RunGetParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`after_sequence` also asks for the run's events after that one, at most `limit`."""

    run_id: str
    after_sequence: int | None = None
    limit: int = 200


class RunCancelParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The run to cancel."""

    run_id: str


class RunCancelResult(Struct, frozen=True):
    """`cancelled` is false if the run had ended or belongs to another process."""

    cancelled: bool


class RunView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A run as in its `run.json`. If its process is gone, it is `failed` with `RunDied`.

    `conversation_id` is the session that the engine works in; attach to it to read it.
    """

    run_id: str
    session_id: str
    task_id: str
    status: RunState
    step: StepName
    sandbox_root: str
    created_at: str
    updated_at: str
    started_at: str | None = None
    completed_at: str | None = None
    profile_id: str = ""
    config_fingerprint: str = ""
    engine: str = ""
    model: str = ""
    governance: Governance | None = None
    final_text: str = ""
    error: ErrorInfo | None = None
    dry_run: bool = False
    conversation_id: str = ""


class RunEventView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A line of the run's `events.jsonl`."""

    sequence: int
    type: str
    timestamp: str
    actor: Actor
    severity: Severity
    summary: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    correlation_id: str = ""


class RunGetResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run, and the requested events."""

    run: RunView
    events: tuple[RunEventView, ...] = ()
