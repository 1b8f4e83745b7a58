"""A recorded conversation of the Agent Client Protocol, and the schema that its messages have."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from kode_sidecar.devtools.grading.acp_recording import CLIENT
from kode_sidecar.devtools.grading.json_schema import Schema
from kode_sidecar.devtools.grading.talk import Json, RequestExchange, RpcConversation, TalkFrame
from kode_sidecar.devtools.recording import as_object
from kode_sidecar.errors import KodeError

_FREE = ("_meta", "rawInput", "rawOutput")
SOON = 1.0
"""A side that has ended this soon after a message owes no answer to it."""


class AcpLine(msgspec.Struct, frozen=True):
    """A line of a recording: a message of one side, or its end. A `probe` is wrong on purpose."""

    t: float
    by: str
    line: str = ""
    end: bool = False
    probe: bool = False


class AcpSchema:
    """The published schema: for each method what its params and its result look like."""

    def __init__(self, data: bytes) -> None:
        self.schema = Schema(data)
        self.by_method: dict[tuple[str, str], str] = {}
        """`(method, kind)` to a definition; the kind is `params` or `result`."""
        self.served_by: dict[str, str] = {}
        for name, one in self.schema.definitions.items():
            if "x-method" in one:
                kind = "result" if name.endswith("Response") else "params"
                self.by_method[one["x-method"], kind] = name
                self.served_by[one["x-method"]] = one["x-side"]

    def problems(self, method: str, kind: str, value: object) -> list[str]:
        """Return what is wrong with the params or the result of a known method."""
        name = self.by_method.get((method, kind), "Error" if kind == "error" else "")
        if not name:
            return []
        value = {} if value is None else value
        return list(self.schema.problems(value, self.schema.definitions[name]))


class AcpTalk(RpcConversation):
    """The messages of both sides, what each announced, and who ended first."""

    def __init__(self, lines: Sequence[AcpLine], schema: AcpSchema) -> None:
        self.lines, self.schema = lines, schema
        super().__init__(_frames(lines))
        ends = [one for one in lines if one.end]
        self.ended_by = ends[0].by if ends else ""
        self.ended_at = ends[0].t if ends else (lines[-1].t if lines else 0.0)
        self.opening = next((one for one in self.asked if one.request.method == "initialize"), None)
        params = self.opening.request.params if self.opening else {}
        self.client_can = as_object(params.get("clientCapabilities"))
        self.started = as_object(self.opening.result) if self.opening else {}
        self.agent_can = as_object(self.started.get("agentCapabilities"))

    def said(self, *, client: bool) -> Iterator[TalkFrame]:
        """Yield one side's messages, without those that are wrong on purpose."""
        for frame in self.frames:
            if frame.by_client is client and not self.is_probe(frame):
                yield frame

    def is_probe(self, frame: TalkFrame) -> bool:
        """Return whether a message was wrong on purpose."""
        return self.lines[frame.line - 1].probe

    def requests(self, *, client: bool, method: str = "") -> Iterator[RequestExchange]:
        """Yield one side's requests with their answers, of one method if it is given."""
        for exchange in self.asked if client else self.questions:
            right = not method or exchange.request.method == method
            if right and not self.is_probe(exchange.request):
                yield exchange

    def updates(self) -> Iterator[tuple[TalkFrame, str, Json]]:
        """Yield each `session/update` with its session and the update."""
        for frame in self.frames:
            if frame.method == "session/update" and not frame.by_client:
                session = str(frame.params.get("sessionId"))
                yield frame, session, as_object(frame.params.get("update"))


def read_acp_talk(file: Path, schema: AcpSchema) -> AcpTalk:
    """Read a recording of `grade --acp`. Raises KodeError `ConfigInvalid`."""
    try:
        data = file.read_bytes().splitlines()
        # What a crash cut off is not there: the last line counts only if it is whole.
        whole = [line for line in data if line.endswith(b"}")]
        lines = [msgspec.json.decode(line, type=AcpLine) for line in whole]
    except OSError as error:
        raise KodeError("ConfigInvalid", f"Cannot read {file}: {error.strerror}.") from None
    except msgspec.MsgspecError:
        text = f"{file} is no recording of `kode-sidecar grade --acp --record`."
        raise KodeError("ConfigInvalid", text) from None
    return AcpTalk(lines, schema)


def members(value: Any, found: Callable[[str, Any], bool]) -> Iterator[tuple[str, Any]]:
    """Yield all members of a value, at any depth, for which `found` is true; none of free form."""
    if isinstance(value, dict):
        inner = cast(Json, value)
        for name, one in inner.items():
            if found(name, one):
                yield name, one
            if name not in _FREE:
                yield from members(one, found)
    elif isinstance(value, list):
        items = cast(list[Any], value)
        for one in items:
            yield from members(one, found)


def _frames(lines: Sequence[AcpLine]) -> Iterator[TalkFrame]:
    place = 0
    for number, one in enumerate(lines, 1):
        if not one.end:
            try:
                message = as_object(json.loads(one.line))
            except (ValueError, RecursionError):
                message = {}
            yield TalkFrame(place, number, one.t, one.by == CLIENT, message)
            place += 1
