"""The engines of a run (B12): the kernel's loop, a script, and late, where wanted, Pydantic AI."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kode_sidecar.agent.context.builder import PromptContext
from kode_sidecar.agent.context.task_history import TaskHistory
from kode_sidecar.core.domain.budget import read_amount
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import Message, TextBlock, ToolUseBlock
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import ArtifactSink, TurnEnd, TurnLimits, TurnScope
from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.contracts import Engine, EngineRequest, RunServices
from kode_sidecar.jobs.run.engine_events import AnswerEvents
from kode_sidecar.jobs.run.run_config import ModelPart, RunConfig, read_text
from kode_sidecar.jobs.run.sandbox import source_path

_DEFAULT_SAMPLING = (ModelPart().temperature, ModelPart().top_p)


def make_engine(
    config: RunConfig, folder: Path, services: RunServices, save_artifact: ArtifactSink
) -> Engine:
    """Make the engine that a configuration names; `folder` is that of the configuration.

    `save_artifact` keeps what tools say beyond what the model reads. Raises KodeError
    `ConfigInvalid`, also where an extra is not installed, and `PathOutsideRoots`.
    """
    if config.runtime.script is not None:
        script = source_path(config.runtime.script, folder)
        return ScriptedEngine(read_script(read_text(script), script.name))
    if config.runtime.engine == "pydantic-ai":
        if config.runtime.budget is not None:
            text = "runtime.budget is kept by the engine native alone: pydantic-ai asks by itself."
            raise KodeError("ConfigInvalid", text)
        return _pydantic_ai(services, save_artifact)
    return NativeEngine(services, save_artifact)


async def within_limits(
    engine: Engine, request: EngineRequest, cancelled: asyncio.Event
) -> TurnEnd:
    """Run an engine until it is done, `cancelled` is set or its time is over; then stop it.

    One that was stopped ends as `cancelled` or `interrupted`.
    Raises what the engine raises: a failing disk, a bug.
    """
    seconds = request.config.runtime.timeout_seconds
    task = asyncio.create_task(engine.run(request))
    stop = asyncio.create_task(cancelled.wait())
    try:
        await asyncio.wait({task, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})
            task.result()
    finally:
        for one in (task, stop):
            one.cancel()
        await asyncio.wait({task, stop})
    if cancelled.is_set():
        return TurnEnd("cancelled")
    text = (
        f"The run took longer than runtime.timeout_seconds, {seconds:g} s. "
        "Allow more, or ask for less."
    )
    return TurnEnd("interrupted", failure("RunTimedOut", text))


def engine_failure(end: TurnEnd) -> ErrorInfo | None:
    """Return the failure that an engine ended with; None where its work counts.

    A model that was stopped by `max_steps` summed up: what it made counts.
    """
    if end.stop_reason in ("error", "interrupted", "budget"):
        return end.error or failure("InternalError", "The model's turn ended without a reason.")
    if end.stop_reason == "max_tokens":
        text = "The model's answer was cut off at its token limit; raise model.max_tokens."
        return failure("IncompleteAnswer", text)
    if end.stop_reason == "refusal":
        text = "The host filtered the model's answer; change the task or the model."
        return failure("ContentFiltered", text)
    return None


class NativeEngine:
    """`Engine` on the kernel's loop, which conversations use too."""

    def __init__(self, services: RunServices, save_artifact: ArtifactSink) -> None:
        self._services = services
        self._save_artifact = save_artifact

    async def run(self, request: EngineRequest) -> TurnEnd:
        """Run the kernel's turn over one task, in a history of its own."""
        services, config = self._services, request.config
        scope = TurnScope(
            session_id=request.session_id,
            turn_id=request.run_id,
            new_id=services.new_id,
            clock=services.clock,
            save_artifact=self._save_artifact,
            report_bug=services.report_bug,
            silence_told=services.silence_told,
        )
        limits = TurnLimits(config.runtime.max_steps, services.limit_instruction)
        history = self._history(request)
        tools = request.tools.offered
        limit = config.runtime.budget
        model = services.model
        if limit is not None:
            model = services.budgeted(request.session_id, read_amount(limit))
        return await run_turn(scope, model, tools, history, limits, request.emit)

    def _history(self, request: EngineRequest) -> TaskHistory:
        """Return a history that holds the task."""
        services, model = self._services, request.config.model
        traits = services.traits(model.name)
        history = TaskHistory(
            PromptContext(
                session_id=request.session_id,
                model=model.name,
                system=request.system,
                temperature=model.temperature,
                top_p=model.top_p,
                sampling_chosen=(model.temperature, model.top_p) != _DEFAULT_SAMPLING,
                max_tokens=model.max_tokens,
                returns_thinking=traits.returns_thinking,
                stream=request.config.runtime.stream,
            ),
            _keep_nothing,
            services.clock,
            services.new_id,
            meta={"runId": request.run_id},
            window=traits.window,
        )
        block = TextBlock(id=services.new_id("block"), text=request.prompt)
        history.commit(replace(history.open("user", {}), content=(block,)))
        return history


def _keep_nothing(_message: Message) -> None:
    """Do nothing: the events have what the records need of a message."""


def _pydantic_ai(services: RunServices, save_artifact: ArtifactSink) -> Engine:
    try:
        # Late: an optional extra, and a second to load.
        from kode_sidecar.jobs.run.pydantic_ai_engine import (  # noqa: PLC0415
            PydanticAIEngine,
        )
    except ImportError as error:
        raise KodeError(
            "ConfigInvalid",
            f"The engine pydantic-ai cannot be loaded ({error.name or error} is missing): install "
            'it with pip install "kode-sidecar[pydantic-ai]", or set runtime.engine to native. '
            "The program that is one file or folder does not carry it.",
            details={"field": "runtime.engine"},
        ) from None
    return PydanticAIEngine(services, save_artifact)


class ScriptedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


class ScriptedStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer. With `fail` the engine fails there, with that text."""

    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    fail: str | None = None


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the scripted engine plays, as its file says it:

    steps:
    - say: I look at the file first.
      calls:
      - {tool: read_file, arguments: {path: workspace/app.py}}
    - say: Done.
    """

    steps: tuple[ScriptedStep, ...]


def read_script(text: str, name: str) -> Sequence[ScriptedStep]:
    """Return the steps of a script. Raises KodeError `ConfigInvalid` naming file, line, field."""
    try:
        return read_yaml(text).convert(Script).steps
    except YamlProblem as error:
        where = f"{name}, line {error.line}" if error.line else name
        place = f"`{error.path}`: " if error.path else ""
        raise KodeError("ConfigInvalid", f"{where}: {place}{error.problem}") from None


class ScriptedEngine:
    """`Engine` without a model: it plays a script with the real tools.

    For tests, and for trying out a configuration offline. It ends after the first step without
    calls, or at the script's end.
    """

    def __init__(self, steps: Sequence[ScriptedStep]) -> None:
        self._steps = steps

    async def run(self, request: EngineRequest) -> TurnEnd:
        """Play the script."""
        for number, step in enumerate(self._steps, start=1):
            answer = AnswerEvents(request.emit, number)
            if step.fail is not None:
                return TurnEnd("error", failure("Provider", step.fail))
            answer.grow(step.say)
            calls = [
                ToolUseBlock(
                    tool_use_id=f"call-{number}-{position}", name=one.tool, input=one.arguments
                )
                for position, one in enumerate(step.calls, start=1)
            ]
            answer.end(step.say, calls, model="scripted")
            if not calls:
                break
            for call in calls:
                await request.tools.call(call.name, call.input, call.tool_use_id)
            if number >= request.config.runtime.max_steps:
                return TurnEnd("max_tool_rounds")
        return TurnEnd("end_turn")
