"""An engine without a model: it plays what a file says, with the real tools.

For tests, and for trying out a configuration offline. The file:

    steps:
    - say: I look at the file first.
      calls:
      - {tool: read_file, arguments: {path: workspace/app.py}}
    - say: Done.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from kode_sidecar.domain.error_info import failure
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import (
    EngineRequest,
    EngineResult,
    ModelSaid,
    StepStarted,
    TextGrew,
)
from kode_sidecar.headless_run.engine_limits import within_limits
from kode_sidecar.text.yaml_text import YamlProblem, read_yaml


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
    """The file."""

    steps: tuple[ScriptedStep, ...]


def read_script(text: str, name: str) -> Sequence[ScriptedStep]:
    """The steps of a script. Raises KodeError `ConfigInvalid` naming file, line and field."""
    try:
        return read_yaml(text).convert(Script).steps
    except YamlProblem as error:
        where = f"{name}, line {error.line}" if error.line else name
        place = f"`{error.path}`: " if error.path else ""
        raise KodeError("ConfigInvalid", f"{where}: {place}{error.problem}") from None


class ScriptedEngine:
    """`contracts.Engine`. It ends after the first step without calls, or at the script's end."""

    name = "scripted"

    def __init__(self, steps: Sequence[ScriptedStep]) -> None:
        self._steps = steps

    async def run(self, request: EngineRequest) -> EngineResult:
        """See `contracts.Engine`."""
        return await within_limits(request, self._play(request))

    async def _play(self, request: EngineRequest) -> EngineResult:
        said, number = "", 0
        for number, step in enumerate(self._steps, start=1):
            request.on_event(StepStarted(step=number))
            if step.fail is not None:
                return EngineResult("failed", said, number, error=failure("Provider", step.fail))
            if request.stream and step.say:
                request.on_event(TextGrew(text=step.say))
            names = tuple(call.tool for call in step.calls)
            request.on_event(ModelSaid(step=number, text=step.say, calls=names, model="scripted"))
            said = step.say or said
            if not step.calls:
                return EngineResult("finished", said, number)
            for position, call in enumerate(step.calls, start=1):
                call_id = f"call-{number}-{position}"
                await request.tools.call(call.tool, call.arguments, call_id)
            if number >= request.max_steps:
                return EngineResult("step_limit", said, number)
        return EngineResult("finished", said, number)
