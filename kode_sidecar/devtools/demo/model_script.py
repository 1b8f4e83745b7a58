"""A model that plays a script: `kode-sidecar model SCRIPT.yaml`.

A script has the answers of one turn, step by step; every turn gets them again. The request alone
determines the step: it counts the answers with tool calls since the last prompt. A request that is
repeated word for word is a further attempt at its step. So a turn may be cancelled, and sessions
may run in parallel, without the script losing its place.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct, field

from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.devtools.demo.answers import Part, answer, text, thinking, tool_call
from kode_sidecar.devtools.demo.model_server import Piece, RecordedResponse, failure, tool_rounds
from kode_sidecar.errors import KodeError

LIBRARY = Path(__file__).parent / "scripts"
_ENDLESS_PIECES = 1_000_000
_SCOUTS_REPORT = "report_findings"


class ScriptPart(Struct, forbid_unknown_fields=True, rename={"arguments": "with"}):
    """One of `text`, `thinking` and `call`; `with` are the arguments of a call.

    Arguments that are a text are sent unchanged, valid or not.
    """

    text: str | None = None
    thinking: str | None = None
    call: str | None = None
    arguments: dict[str, Any] | str = field(default_factory=dict[str, Any])


class DemoAttempt(Struct, forbid_unknown_fields=True):
    """One answer. With another `status` than 200 it is an error of the host, `message` its text.

    `delay_ms` comes before each piece. `cut`: the connection breaks off after the parts.
    `damaged`: an event in the middle is no JSON. `endless`: the last text is repeated without end.
    `finish` is the reason that the host gives for the end, such as `length`.
    """

    say: list[ScriptPart] = field(default_factory=list[ScriptPart])
    status: int = 200
    message: str = "The scripted model refuses."
    kind: str = "engine_overloaded_error"
    retry_after: int | None = None
    delay_ms: float = 0
    cut: bool = False
    damaged: bool = False
    endless: bool = False
    finish: str = ""


class DemoStep(Struct, forbid_unknown_fields=True):
    """The attempts at one answer, in order; the last one counts for all that follow."""

    attempts: Annotated[list[DemoAttempt], Meta(min_length=1)]


class DemoScript(Struct, forbid_unknown_fields=True):
    """A script; `about` says what it shows. `scouts` are the steps for scouts of `explore`."""

    about: str
    steps: list[DemoStep]
    scouts: list[DemoStep] = field(default_factory=list[DemoStep])
    models: tuple[str, ...] = ("kimi-k2.6",)
    files: dict[str, str] = field(default_factory=dict[str, str])


def script_names() -> Sequence[str]:
    """Return the names of the ready scripts."""
    return sorted(path.stem for path in LIBRARY.glob("*.yaml"))


def read_script(name: str) -> DemoScript:
    """Return a ready script by its name, or read a file. Raises KodeError `ConfigInvalid`."""
    path = LIBRARY / f"{name}.yaml" if name in script_names() else Path(name)
    try:
        raw = read_yaml(path.read_text(encoding="utf-8")).value
        script = msgspec.convert(_spelled_out(raw), DemoScript)
    except OSError as error:
        names = ", ".join(script_names())
        text = f"{path}: {error.strerror}. Name a file, or one of {names}."
        raise KodeError("ConfigInvalid", text) from None
    except msgspec.ValidationError as error:
        raise KodeError("ConfigInvalid", f"{path}: {error}. {_fields()}") from None
    except (YamlProblem, UnicodeDecodeError) as error:
        raise KodeError("ConfigInvalid", f"{path}: {error}") from None
    if not script.steps:
        raise KodeError("ConfigInvalid", f"{path}: there is no step in `steps`.")
    return script


def _fields() -> str:
    """Return a sentence with all valid fields, for the error about an invalid one."""
    kinds = {
        "a script": DemoScript,
        "a step": DemoStep,
        "an answer": DemoAttempt,
        "a part of `say`": ScriptPart,
    }
    return "Fields: " + "; ".join(f"of {kind} {_names(of)}" for kind, of in kinds.items()) + "."


def _names(kind: type[Struct]) -> str:
    return ", ".join(f"`{one.encode_name}`" for one in msgspec.structs.fields(kind))


class ModelScript:
    """Answers requests of `POST /chat/completions` from a script."""

    def __init__(self, script: DemoScript) -> None:
        self._script = script
        self._asked: Counter[bytes] = Counter()

    def answer(self, body: Mapping[str, Any]) -> RecordedResponse:
        """Return the answer that is due for a request body."""
        tools = [tool.get("function", {}).get("name") for tool in body.get("tools") or ()]
        steps = self._script.steps
        if self._script.scouts and _SCOUTS_REPORT in tools:
            steps = self._script.scouts
        messages: list[Any] = body["messages"]
        step = steps[min(tool_rounds(messages), len(steps) - 1)]
        key = hashlib.sha256(msgspec.json.encode(messages)).digest()
        attempt = self._asked[key]
        self._asked[key] += 1
        return _response(step.attempts[min(attempt, len(step.attempts) - 1)], str(body["model"]))


def _response(attempt: DemoAttempt, model: str) -> RecordedResponse:
    if attempt.status != 200:
        headers = {} if attempt.retry_after is None else {"Retry-After": str(attempt.retry_after)}
        return failure(attempt.status, attempt.kind, attempt.message, headers)
    response = answer(
        *map(_part, attempt.say), finish=attempt.finish, model=model, delay_ms=attempt.delay_ms
    )
    pieces = response.pieces
    if attempt.damaged:
        middle = len(pieces) // 2
        pieces = (*pieces[:middle], Piece(b'data: {"choices": [{"del\n\n'), *pieces[middle:])
    if attempt.endless:
        # The last three pieces are the chunk with the reason, the usage and [DONE].
        pieces = (*pieces[:-3], *pieces[-4:-3] * _ENDLESS_PIECES)
    if attempt.cut:
        pieces = pieces[:-3]
    return replace(response, pieces=pieces, broken=attempt.cut)


def _part(part: ScriptPart) -> Part:
    if part.call is not None:
        return tool_call(part.call, part.arguments)
    return text(part.text or "") if part.thinking is None else thinking(part.thinking)


def _spelled_out(raw: object) -> object:
    """Expand steps that are written as a list of parts, or as their only attempt."""
    if not isinstance(raw, dict):
        return raw
    value = cast(dict[str, Any], raw)
    lists = {name: value[name] for name in ("steps", "scouts") if isinstance(value.get(name), list)}
    return value | {name: [_step(step) for step in steps] for name, steps in lists.items()}


def _step(raw: object) -> object:
    if isinstance(raw, list):
        return {"attempts": [{"say": cast(list[Any], raw)}]}
    if isinstance(raw, dict) and "attempts" not in raw:
        return {"attempts": [cast(dict[str, Any], raw)]}
    return cast(object, raw)
