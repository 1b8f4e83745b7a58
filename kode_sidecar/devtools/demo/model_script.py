"""A model that plays a script: `kode-sidecar model SCRIPT.yaml`.

A script has the answers of one turn, step by step, which every turn gets again; or of several
turns, each with its condition. The request alone determines the turn and its step: it counts the
answers with tool calls since the last prompt. A request that is repeated word for word is a further
attempt at its step. So a turn may be cancelled, and sessions may run in parallel, without the
script losing its place.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
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


class DemoCondition(Struct, forbid_unknown_fields=True):
    """When a turn is meant: its prompt holds `text`, and it is the `number`th of the session."""

    text: str = ""
    number: int = 0

    def holds(self, prompt: str, number: int) -> bool:
        """Return whether it holds for a turn."""
        return self.text in prompt and self.number in (0, number)


class DemoTurn(Struct, forbid_unknown_fields=True):
    """The steps of the turns that a condition holds for; without one it always holds."""

    steps: Annotated[list[DemoStep], Meta(min_length=1)]
    when: DemoCondition = field(default_factory=DemoCondition)


class DemoScript(Struct, forbid_unknown_fields=True):
    """A script; `about` says what it shows. `scouts` are the steps for scouts of `explore`.

    Either `steps`, for every turn, or `turns`: the first one whose condition holds is played.
    """

    about: str
    steps: list[DemoStep] = field(default_factory=list[DemoStep])
    turns: list[DemoTurn] = field(default_factory=list[DemoTurn])
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
    if bool(script.steps) == bool(script.turns):
        text = f"{path}: there is no step in `steps` or `turns`."
        if script.steps:
            text = f"{path}: use `steps`, for every turn, or `turns`, not both."
        raise KodeError("ConfigInvalid", text)
    if unreachable := _unreachable(script):
        raise KodeError("ConfigInvalid", f"{path}: {unreachable}")
    return script


def _unreachable(script: DemoScript) -> str:
    """Say which turn or step can never be played; empty if there is none."""
    for number, turn in enumerate(script.turns[:-1], 1):
        if turn.when == DemoCondition():
            return f"turn {number} is for every prompt, so turn {number + 1} is never played."
    lists = {"`steps`": script.steps, "`scouts`": script.scouts}
    lists |= {f"turn {number}": turn.steps for number, turn in enumerate(script.turns, 1)}
    for name, steps in lists.items():
        for number, step in enumerate(steps[:-1], 1):
            if not any(part.call for attempt in step.attempts for part in attempt.say):
                text = f"step {number} of {name} calls no tool, so the turn ends there"
                return f"{text} and step {number + 1} is never played."
    return ""


def _fields() -> str:
    """Return a sentence with all valid fields, for the error about an invalid one."""
    kinds = {
        "a script": DemoScript,
        "a turn": DemoTurn,
        "`when`": DemoCondition,
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
        messages: list[Any] = body["messages"]
        steps = self._steps(messages)
        if self._script.scouts and _SCOUTS_REPORT in tools:
            steps = self._script.scouts
        if not steps:
            text = "No turn of the script is for this prompt."
            return failure(400, "script_has_no_turn", text)
        step = steps[min(tool_rounds(messages), len(steps) - 1)]
        key = hashlib.sha256(msgspec.json.encode(messages)).digest()
        attempt = self._asked[key]
        self._asked[key] += 1
        return _response(step.attempts[min(attempt, len(step.attempts) - 1)], str(body["model"]))

    def _steps(self, messages: Sequence[Mapping[str, Any]]) -> Sequence[DemoStep]:
        """Return the steps of the turn that is under way; none if no condition holds."""
        roles = [str(one.get("role")) for one in messages]
        ends = [
            at
            for at, one in enumerate(messages)
            if roles[at] == "assistant" and not one.get("tool_calls")
        ]
        start = ends[-1] + 1 if ends else 0
        asked = takewhile(lambda one: one.get("role") != "assistant", messages[start:])
        prompts = [_text_of(one) for one in asked if one.get("role") == "user"]
        prompt = prompts[-1] if prompts else ""  # before it are reminders
        turns = (one.steps for one in self._script.turns if one.when.holds(prompt, len(ends) + 1))
        return self._script.steps or next(turns, ())


def _text_of(message: Mapping[str, Any]) -> str:
    content: Any = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(one.get("text", "") for one in content)


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
    if isinstance(value.get("turns"), list):
        value = value | {"turns": [_spelled_out(turn) for turn in value["turns"]]}
    lists = {name: value[name] for name in ("steps", "scouts") if isinstance(value.get(name), list)}
    return value | {name: [_step(step) for step in steps] for name, steps in lists.items()}


def _step(raw: object) -> object:
    if isinstance(raw, list):
        return {"attempts": [{"say": cast(list[Any], raw)}]}
    if isinstance(raw, dict) and "attempts" not in raw:
        return {"attempts": [cast(dict[str, Any], raw)]}
    return cast(object, raw)
