"""Two values said by two runs: the same but for what must differ, and where they are not.

The rules, one for each thing that no recording can fix: times and durations, what the program can
do, our own estimates of tokens (they hang on the texts of prompts), what the machine is, and ids,
which must only be the same ids everywhere.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from kode_sidecar.recording.strands import as_object

Json = dict[str, Any]

_DURATIONS = frozenset({"durationMs", "elapsedMs", "silentMs"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ESTIMATES = frozenset({"tokensBefore", "tokensAfter"})
# Their results tell of the machine, the program or the prompts, not of the conversation.
_TOLD_ELSEWHERE = frozenset(
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
    """The first place where a run left its recording.

    `line` counts from 1, 0 where there is none; `at` is a JSON path in `message`, what was said.
    """

    lane: str
    line: int
    at: str
    was: str
    now: str
    message: str = ""

    def __str__(self) -> str:
        where = f", line {self.line} of the recording" if self.line else ""
        told = [f"lane  {self.lane}{where}", f"at    {self.at}"]
        told += [f"was   {self.was}", f"now   {self.now}"]
        return "\n".join([*told, *([f"in    {self.message}"] if self.message else [])])


class Ids:
    """Which id of this run stands for which of the recording."""

    def __init__(self, recorded: Iterable[str]) -> None:
        self._recorded = frozenset(recorded)
        self._to_recorded: dict[str, str] = {}
        self._to_live: dict[str, str] = {}

    def same(self, was: str, now: str) -> bool:
        """Are these one id? Two that meet for the first time are, from then on."""
        if was in self._to_live or now in self._to_recorded:
            return self._to_live.get(was) == now
        if was == now:
            return True
        if was not in self._recorded:
            return False
        self._to_live[was], self._to_recorded[now] = now, was
        return True

    def bind(self, was: str, now: str) -> None:
        """From now on these are one id."""
        self._to_live[was], self._to_recorded[now] = now, was

    def recorded(self, text: str) -> str:
        """A text of this run with the recording's ids in it."""
        return _renamed(text, self._to_recorded)

    def live(self, text: str) -> str:
        """A text of the recording with this run's ids in it."""
        return _renamed(text, self._to_live)


def first_difference(
    was: Any, now: Any, ids: Ids, method: str = "", at: str = "$"
) -> tuple[str, Any, Any] | None:
    """Path and both values where two messages differ; `method` is what an answer answers."""
    if method in _TOLD_ELSEWHERE and at == "$.result" and now is not _NOTHING:
        return None
    one_kind = type(was) is type(now)
    if one_kind and isinstance(was, dict):
        return _in_objects(cast(Json, was), now, ids, method, at)
    if one_kind and isinstance(was, list):
        return _in_lists(cast(list[Any], was), now, ids, method, at)
    if one_kind and isinstance(was, str):
        times = _TIME.fullmatch(was) and _TIME.fullmatch(now)
        same = bool(times) or ids.same(was, now) or was == ids.recorded(now)
    else:
        same = one_kind and was == now
    return None if same else (at, was, now)


def shown(value: Any) -> str:
    """A value of a difference, short enough to be read."""
    if value is _NOTHING:
        return "nothing"
    text = value if isinstance(value, str) else repr(value)
    quoted = repr(text) if isinstance(value, str) else text
    return quoted if len(quoted) <= 400 else f"{quoted[:400]}… ({len(quoted)} characters)"


def shown_texts(was: str, now: str) -> tuple[str, str]:
    """Two texts from shortly before the place where they part."""
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
        if name in _ESTIMATES and type(one) is type(other):
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
    """An event without its `seq`: that they have no gaps is looked at by itself."""
    return {name: value for name, value in as_object(event).items() if name != "seq"}
