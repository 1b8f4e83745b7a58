"""What a run is made of, and what its engines promise. Open to all rooms."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import Struct

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.message import Usage
from kode_sidecar.domain.run import Actor, Severity
from kode_sidecar.headless_run.run_config import RunConfig
from kode_sidecar.headless_run.sandbox import Sandbox
from kode_sidecar.kernel.contracts import Tool, ToolOutcome
from kode_sidecar.workspace.workspace import Workspace


class RunLog(Protocol):
    """Where a run tells what happens. Large and secret values are moved into artifacts here.

    All of it raises KodeError `Storage` when the disk fails; the run ends with it.
    """

    def event(
        self,
        kind: str,
        summary: str,
        *,
        actor: Actor = "runtime",
        severity: Severity = "info",
        data: Mapping[str, Any] | None = None,
        correlation_id: str = "",
        parent_event_id: str = "",
    ) -> str:
        """Append an event of type `kind` to `events.jsonl`; its id."""
        ...

    def error(self, where: str, error: ErrorInfo, *, correlation_id: str = "") -> None:
        """Append a failure to `logs/errors.jsonl`, and an event `error.recorded` that tells it.

        `where` is a step or `tool NAME`. One of category `sandbox` is a `path.refused` event.
        """
        ...


class ArtifactRegister(Protocol):
    """`artifact-manifest.json`: what a run made."""

    def add(self, path: str, *, kind: str, created_by: str, content_type: str = "") -> None:
        """Note a file by its sandbox-relative path; noted again, the newer word holds, if any.

        `kind` is `deliverable`, `workspace`, `memory`, `tool_output` or `event_data`,
        `created_by` a tool's name or `runtime`. Raises KodeError `Storage`, `PathOutsideRoots`.
        """
        ...


@dataclass(frozen=True)
class RunScope:
    """What the tools of a run act on.

    `workspace` shows the readable zones of the sandbox to the tools that read.
    """

    config: RunConfig
    sandbox: Sandbox
    workspace: Workspace
    log: RunLog
    artifacts: ArtifactRegister


class RunTools(Protocol):
    """A run's tools behind its policy and its records: engines call them and know no rules."""

    @property
    def offered(self) -> Sequence[Tool]:
        """The tools as the kernel's loop takes them; each call goes the way of `call`."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolOutcome:
        """Check, run and record one call. Every failure is an outcome the model can read.

        Raises KodeError `Storage` when the records fail, and asyncio.CancelledError.
        """
        ...


class StepStarted(Struct, frozen=True, kw_only=True, tag="step"):
    """The engine asks its model for the `step`th time, counted from 1."""

    step: int


class ModelSaid(Struct, frozen=True, kw_only=True, tag="said"):
    """A whole answer of the model. `calls` are the names of the tools it asks for."""

    step: int
    text: str
    calls: tuple[str, ...] = ()
    model: str = ""
    usage: Usage | None = None


class TextGrew(Struct, frozen=True, kw_only=True, tag="grew"):
    """Part of an answer while it streams; only with `stream`, and never recorded."""

    text: str


class EngineNote(Struct, frozen=True, kw_only=True, tag="note"):
    """Something a reader of the records should know, such as a retry."""

    code: str
    message: str


EngineEvent = StepStarted | ModelSaid | TextGrew | EngineNote


@dataclass(frozen=True)
class EngineRequest:
    """One task for an engine.

    `system` is the composed prompt, `prompt` the task. After `max_steps` answers with tool calls
    the model sums up without tools. `timeout_seconds` is wall time over all of it. Setting
    `cancelled` ends the work soon, with the result `cancelled`. `on_event` is called in order on
    the event loop and never raises.
    """

    run_id: str
    session_id: str
    system: str
    prompt: str
    tools: RunTools
    model: str
    timeout_seconds: float
    max_steps: int
    stream: bool
    cancelled: asyncio.Event
    on_event: Callable[[EngineEvent], None]
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None


EngineOutcome = Literal["finished", "step_limit", "timed_out", "cancelled", "failed"]


@dataclass(frozen=True)
class EngineResult:
    """How the engine ended. `error` is there for `timed_out` and `failed`.

    `step_limit`: the model was stopped by `max_steps` and summed up; what it made still counts.
    """

    outcome: EngineOutcome
    final_text: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    error: ErrorInfo | None = None


class Engine(Protocol):
    """What drives a model and its tools through one task (B12).

    `headless_run.engine_limits.within_limits` keeps the time and the cancellation for all of them.
    """

    name: str

    async def run(self, request: EngineRequest) -> EngineResult:
        """Work until done. Failures are results; only bugs and a failing disk raise."""
        ...
