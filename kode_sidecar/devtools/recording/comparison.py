"""Finds the first difference between messages of two runs, or between the requests to their models.

What no recording can fix is left out: times and durations, what the program can do, our estimates
of tokens (they depend on the texts of prompts) and facts of the machine. Ids may differ if each
stands for the same one everywhere.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from kode_sidecar.devtools.recording.folders import FolderNames
from kode_sidecar.devtools.recording.lanes import as_object

Json = dict[str, Any]

_DURATIONS = frozenset({"durationMs", "elapsedMs", "silentMs"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ESTIMATES = frozenset({"tokensBefore", "tokensAfter"})
# How long a command took, in the heading of its result.
_TOOK = re.compile(r" · \d+\.\d s · in ")
# How full the window is, which is our estimate where the host did not count.
_ESTIMATED_PLACE = ".context.tokens"
# Their results describe the machine, the program or the prompts, not the conversation.
_RESULTS_NOT_COMPARED = frozenset(
    {
        "initialize",
        "kode/doctor",
        "kode/schema/get",
        "kode/context/inspect",
        "workspace/executeCommand",
    }
)
_NOTHING = object()


class Difference(NamedTuple):
    """The first place where a run differs from its recording.

    `line` is that of the recording, 0 where it has none; `at` is a JSON path in `message`.
    """

    lane: str
    line: int
    at: str
    was: str
    now: str
    message: str = ""

    def __str__(self) -> str:
        where = f", line {self.line} of the recording" if self.line else ""
        reported = [f"lane  {self.lane}{where}", f"at    {self.at}"]
        reported += [f"was   {self.was}", f"now   {self.now}"]
        return "\n".join([*reported, *([f"in    {self.message}"] if self.message else [])])


class Ids:
    """The ids of this run that stand for those of the recording."""

    def __init__(self, recorded: Iterable[str]) -> None:
        self._recorded = frozenset(recorded)
        self._to_recorded: dict[str, str] = {}
        self._to_live: dict[str, str] = {}

    def same(self, was: str, now: str) -> bool:
        """Return whether these stand for one id; two new ones do from then on."""
        if was in self._to_live or now in self._to_recorded:
            return self._to_live.get(was) == now
        if was == now:
            return True
        if was not in self._recorded:
            return False
        self._to_live[was], self._to_recorded[now] = now, was
        return True

    def bind(self, was: str, now: str) -> None:
        """Let these stand for one id, whatever they stood for before."""
        self._to_live[was], self._to_recorded[now] = now, was

    def recorded(self, text: str) -> str:
        """Return a text of this run with the recording's ids."""
        return _renamed(text, self._to_recorded)

    def live(self, text: str) -> str:
        """Return a text of the recording with this run's ids."""
        return _renamed(text, self._to_live)


def first_difference(
    was: Any, now: Any, ids: Ids, method: str = "", at: str = "$"
) -> tuple[str, Any, Any] | None:
    """Return path and both values where two messages differ; `method` is what an answer answers."""
    if method in _RESULTS_NOT_COMPARED and at == "$.result" and now is not _NOTHING:
        return None
    one_kind = type(was) is type(now)
    if one_kind and isinstance(was, dict):
        return _in_objects(cast(Json, was), now, ids, method, at)
    if one_kind and isinstance(was, list):
        return _in_lists(cast(list[Any], was), now, ids, method, at)
    if one_kind and isinstance(was, str):
        same = _same_text(was, now, ids)
    else:
        same = one_kind and was == now
    return None if same else (at, was, now)


def _same_text(was: str, now: str, ids: Ids) -> bool:
    if (_TIME.fullmatch(was) and _TIME.fullmatch(now)) or ids.same(was, now):
        return True
    return _untimed(was) == _untimed(ids.recorded(now))


def _untimed(text: str) -> str:
    return _TOOK.sub(" · in ", text)


def shown(value: Any) -> str:
    """Return a value of a difference, short enough to be read."""
    if value is _NOTHING:
        return "nothing"
    quoted = repr(value)
    return quoted if len(quoted) <= 400 else f"{quoted[:400]}… ({len(quoted)} characters)"


def shown_both(was: Any, now: Any) -> tuple[str, str]:
    """Return both values of a difference, texts from shortly before it."""
    if isinstance(was, str) and isinstance(now, str):
        return shown_texts(was, now)
    return shown(was), shown(now)


def shown_texts(was: str, now: str) -> tuple[str, str]:
    """Return two texts from shortly before the place where they differ."""
    same = 0
    while same < min(len(was), len(now)) and was[same] == now[same]:
        same += 1
    start = max(0, same - 40)
    lead = f"…[{start}] " if start else ""
    return f"{lead}{shown(was[start:])}", f"{lead}{shown(now[start:])}"


def _in_objects(
    was: Json, now: Json, ids: Ids, method: str, at: str
) -> tuple[str, Any, Any] | None:
    for name in [*was, *(name for name in now if name not in was)]:
        inner = f"{at}.{name}"
        one, other = was.get(name, _NOTHING), now.get(name, _NOTHING)
        if name in _DURATIONS:  # one of nothing is left out
            continue
        estimated = name in _ESTIMATES or inner.endswith(_ESTIMATED_PLACE)
        if estimated and type(one) is type(other):
            continue
        if found := first_difference(one, other, ids, method, inner):
            return found
    return None


def _in_lists(
    was: list[Any], now: list[Any], ids: Ids, method: str, at: str
) -> tuple[str, Any, Any] | None:
    for index in range(max(len(was), len(now))):
        one = was[index] if index < len(was) else _NOTHING
        other = now[index] if index < len(now) else _NOTHING
        if found := first_difference(one, other, ids, method, f"{at}[{index}]"):
            return found
    return None


def _renamed(text: str, names: Mapping[str, str]) -> str:
    changed = {old: new for old, new in names.items() if old != new and old in text}
    if not changed:
        return text
    pattern = "|".join(map(re.escape, sorted(changed, key=len, reverse=True)))
    return re.sub(rf"(?<![A-Za-z0-9-])(?:{pattern})(?![A-Za-z0-9-])", lambda m: changed[m[0]], text)


def without_number(event: Any) -> Any:
    """Return an event without its `seq`; the matcher looks for gaps in these itself."""
    return {name: value for name, value in as_object(event).items() if name != "seq"}


ModelRequests = Mapping[str, Sequence[Any]]
"""The bodies of each agent's requests, in order."""


def read_requests(path: Path, names: FolderNames) -> ModelRequests:
    """Return what a process wrote with `--requests`, with names for its folders."""
    found: dict[str, list[Any]] = {}
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for line in lines:
        reported = as_object(json.loads(line))
        found.setdefault(reported["agent"], []).append(names.name_live(reported.get("body")))
    return found


def without_prompts(requests: ModelRequests) -> ModelRequests:
    """Return the requests with `<system prompt>` and `<tools>` for the texts that all share.

    So a new tool or a better prompt changes no expected request.
    """
    return {
        agent: [_without_prompt(as_object(body)) for body in bodies]
        for agent, bodies in requests.items()
    }


def _without_prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(body)
    if "system" in out:
        out["system"] = "<system prompt>"
    messages = [as_object(message) for message in out.get("messages", ())]
    if messages and messages[0].get("role") == "system":
        messages[0] = {"role": "system", "content": "<system prompt>"}
    out["messages"] = messages
    if "tools" in out:
        out["tools"] = "<tools>"
    return out


def different_requests(was: ModelRequests, now: ModelRequests) -> Difference | None:
    """Return the first difference between what two runs asked their models."""
    ids = Ids(())
    for agent in [*was, *(agent for agent in now if agent not in was)]:
        lane = f"what the model was asked by {agent}"
        found = first_difference(list(was.get(agent, ())), list(now.get(agent, ())), ids)
        if found is not None:
            at, one, other = found
            return Difference(lane, 0, at, *shown_both(one, other))
    return None
