"""The engines of a run (B12): each is the loop of a turn in the run's session.

`native` is the kernel's own loop, `scripted` plays a file, `pydantic-ai` is loaded late.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kode_sidecar.core.domain.budget import read_amount
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import ToolUseBlock
from kode_sidecar.core.kernel import run_turn, tool_message
from kode_sidecar.core.kernel.contracts import (
    Context,
    Emit,
    ModelClient,
    RunTurn,
    Tool,
    TurnEnd,
    TurnLimits,
    TurnScope,
)
from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.contracts import RunServices
from kode_sidecar.jobs.run.engine_answers import EngineAnswer
from kode_sidecar.jobs.run.run_config import RunConfig, read_text
from kode_sidecar.jobs.run.sandbox import source_path


def make_engine(config: RunConfig, folder: Path, services: RunServices) -> RunTurn:
    """Make the engine that a configuration names; `folder` is that of the configuration.

    Raises KodeError `ConfigInvalid`, also where an extra is not installed, and `PathOutsideRoots`.
    """
    _check_currency(config, services)
    if config.runtime.script is not None:
        script = source_path(config.runtime.script, folder)
        return ScriptedEngine(read_script(read_text(script), script.name))
    if config.runtime.engine == "pydantic-ai":
        if config.runtime.budget is not None:
            text = "runtime.budget is kept by the engine native alone: pydantic-ai asks by itself."
            raise KodeError("ConfigInvalid", text)
        return _pydantic_ai(config, services)
    return run_turn


def _check_currency(config: RunConfig, services: RunServices) -> None:
    own, limit = services.budgets.own, config.runtime.budget
    if own is not None and limit is not None and read_amount(limit).currency != own.currency:
        text = (
            f"`runtime.budget`: your own budget for a day is in {own.currency}; write this in it."
        )
        raise KodeError("ConfigInvalid", text, details={"field": "runtime.budget"})


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


def _pydantic_ai(config: RunConfig, services: RunServices) -> RunTurn:
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
    return PydanticAIEngine(config, services.target)


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
    """`RunTurn` without a model: it plays a script with the real tools.

    For tests, and for trying out a configuration offline. It ends after the first step without
    calls, or at the script's end.
    """

    def __init__(self, steps: Sequence[ScriptedStep]) -> None:
        self._steps = steps

    async def __call__(
        self,
        scope: TurnScope,
        model: ModelClient,
        tools: Sequence[Tool],
        context: Context,
        limits: TurnLimits,
        emit: Emit,
        /,
    ) -> TurnEnd:
        """Play the script."""
        del model
        for number, step in enumerate(self._steps, start=1):
            await emit.flow()
            answer = EngineAnswer(scope, context, emit)
            if step.fail is not None:
                error = failure("Provider", step.fail)
                answer.stop(error)
                return TurnEnd("error", error)
            answer.grow(step.say)
            calls = answer.end(step.say, _calls(step, number), model="scripted")
            if not calls:
                break
            async with tool_message(scope, context, tools, limits, emit, calls) as run:
                await run.run()
            if number >= limits.max_tool_rounds:
                return TurnEnd("max_tool_rounds")
        return TurnEnd("end_turn")


def _calls(step: ScriptedStep, number: int) -> Sequence[ToolUseBlock]:
    return [
        ToolUseBlock(tool_use_id=f"call-{number}-{position}", name=one.tool, input=one.arguments)
        for position, one in enumerate(step.calls, start=1)
    ]
