"""The engines of a run (B12): each drives the turn of the run's session.

`native` is the kernel's loop, `scripted` is that loop with a script as its model, and `pydantic-ai`
is another loop, loaded late.
"""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kode_sidecar.core.domain.budget import read_amount
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import ModelClient, ModelRequest, RunTurn, TurnEnd
from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.jobs.run.contracts import RunServices
from kode_sidecar.jobs.run.run_config import RunConfig
from kode_sidecar.jobs.run.sandbox import source_path


@dataclass(frozen=True)
class Engine:
    """An engine: the loop of the turn, and the model that it asks."""

    run_turn: RunTurn
    model: ModelClient


def make_engine(config: RunConfig, folder: Path, services: RunServices) -> Engine:
    """Make the engine that a configuration names; `folder` is the configuration's folder.

    Raises KodeError `ConfigInvalid`, also if an extra is not installed, and `PathOutsideRoots`.
    """
    _check_currency(config, services)
    if config.runtime.script is not None:
        script = source_path(config.runtime.script, folder)
        return Engine(run_turn, ScriptedModel(read_script(read_user_text(script), script.name)))
    if config.runtime.engine == "pydantic-ai":
        if config.runtime.budget is not None:
            text = "runtime.budget is kept by the engine native alone: pydantic-ai asks by itself."
            raise KodeError("ConfigInvalid", text)
        return Engine(_pydantic_ai(config, services), services.budgets.model)
    return Engine(run_turn, services.budgets.model)


def _check_currency(config: RunConfig, services: RunServices) -> None:
    own, limit = services.budgets.own, config.runtime.budget
    if own is not None and limit is not None and read_amount(limit).currency != own.currency:
        text = (
            f"`runtime.budget`: your own budget for a day is in {own.currency}; write this in it."
        )
        raise KodeError("ConfigInvalid", text, details={"field": "runtime.budget"})


def engine_failure(end: TurnEnd) -> ErrorInfo | None:
    """Return the failure that an engine ended with; None if its work counts.

    Work that ended at `max_steps` counts, because the model still summed it up.
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
        # Imported late: an optional extra that takes a second to load.
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
    """One answer. With `fail` the engine fails at this step, with that text."""

    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    fail: str | None = None


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The script of the scripted engine, as in its file:

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


class ScriptedModel:
    """`ModelClient` that plays a script; the real tools run its calls.

    For tests, and for trying out a configuration offline. The work ends after the first step
    without calls, at the script's end, or at the step limit, without a summary.
    """

    def __init__(self, steps: Sequence[ScriptedStep]) -> None:
        self._left = deque(enumerate(steps, start=1))

    def missing(self, model: str) -> ErrorInfo | None:
        """Return None: a script needs no key."""
        del model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Play the next step."""
        yield [ResponseStarted(None, "scripted")]
        if request.tool_choice == "none" or not self._left:
            yield [ResponseFinished("stop")]
            return
        number, step = self._left.popleft()
        if step.fail is not None:
            yield [ResponseFailed(failure("Provider", step.fail))]
            return
        if step.say:
            yield [TextDelta(step.say)]
        for index, one in enumerate(step.calls):
            arguments = encode_json(one.arguments).decode()
            call_id = f"call-{number}-{index + 1}"
            yield [ToolUseStarted(index, call_id, one.tool), ToolUseDelta(index, arguments)]
        yield [ResponseFinished("tool_calls" if step.calls else "stop")]
