"""Rules of the Agent Client Protocol that hold for both sides; `client` says for which one."""

import re
from collections.abc import Mapping

from kode_sidecar.devtools.grading.acp_talk import SOON, AcpTalk, members
from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Json, RequestExchange, TalkFrame
from kode_sidecar.devtools.recording import as_object
from kode_sidecar.errors import METHOD_NOT_FOUND

_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_SESSION_CAN = "sessionCapabilities"
_OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "session/load": ("loadSession",),
    **{f"session/{one}": (_SESSION_CAN, one) for one in ("list", "resume", "close", "delete")},
    "logout": ("auth", "logout"),
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    **{
        f"terminal/{one}": ("terminal",)
        for one in ("create", "output", "wait_for_exit", "kill", "release")
    },
}
"""Methods that only those may call, or must serve, to whom or by whom they were announced."""
_ALWAYS = ("session/new", "session/prompt", "session/request_permission")
_BLOCKS = {"image": "image", "audio": "audio", "resource": "embeddedContext"}


def lines_pure(talk: AcpTalk, *, client: bool) -> Faults:
    """Each line is one JSON-RPC message in UTF-8, and nothing else is written there."""
    for frame in talk.said(client=client):
        message, line = frame.message, talk.lines[frame.line - 1].line
        answers = ("result" in message) + ("error" in message)
        if not message:
            yield Fault(frame.line, f"this is no JSON object: {line[:80]!r}")
        elif message.get("jsonrpc") != "2.0":
            yield Fault(frame.line, '`jsonrpc` is not "2.0"')
        elif bool(frame.method) == bool(answers) or answers > 1:
            yield Fault(frame.line, "it is neither a request, nor a notification, nor an answer")
        elif isinstance(message.get("id"), bool | list | dict | float):
            yield Fault(frame.line, f"{message['id']!r} is no id")
        elif any("\udc80" <= char <= "\udcff" for char in line):
            yield Fault(frame.line, "it is not UTF-8")


def shapes_right(talk: AcpTalk, *, client: bool) -> Faults:
    """Params, results and errors are as the published schema has them."""
    for frame in talk.said(client=client):
        if frame.method:
            served = talk.schema.served_by.get(frame.method, "protocol")
            if served == ("client" if client else "agent"):
                yield Fault(frame.line, f"{frame.method} is not served by the other side")
            elif frame.is_request and served == "protocol" and frame.method[0] not in "_$":
                yield from _unpublished(frame)
            yield from _wrong(talk, frame, frame.method, "params", frame.message.get("params"))
            notifies = (frame.method, "result") not in talk.schema.by_method
            if served != "protocol" and notifies is frame.is_request:
                yield Fault(frame.line, f"{frame.method} is no {'request' if notifies else 'note'}")
    for exchange in talk.requests(client=not client):
        for answer in exchange.answers[:1]:
            kind = "error" if "error" in answer.message else "result"
            yield from _wrong(talk, answer, exchange.request.method, kind, answer.message.get(kind))


def _unpublished(frame: TalkFrame) -> Faults:
    if frame.method != "session/fork":  # a draft that is widely served
        text = f"the protocol has no {frame.method}: a method of one's own begins with `_`"
        yield Fault(frame.line, text)


def _wrong(talk: AcpTalk, frame: TalkFrame, method: str, kind: str, value: object) -> Faults:
    for wrong in talk.schema.problems(method, kind, value)[:3]:
        yield Fault(frame.line, f"{method}, {kind}: {wrong}")


def answered_once(talk: AcpTalk, *, client: bool) -> Faults:
    """Every request has one answer under its own id, and nothing else is answered."""
    for exchange in talk.questions if client else talk.asked:
        request, answers = exchange.request, exchange.answers
        if len(answers) > 1:
            yield Fault(answers[1].line, f"{request.method} was answered twice")
        excused = talk.ended_by != "" and talk.ended_at - request.at < SOON
        if not answers and talk.ended_by and not (excused and _ended_other(talk, client)):
            yield Fault(request.line, f"{request.method} was never answered")
    for frame in talk.stray:
        if frame.by_client is client and frame.message.get("id") is not None:
            yield Fault(frame.line, f"an answer to {frame.message['id']!r}, which nobody asked")
    seen: set[object] = set()
    for exchange in talk.asked if client else talk.questions:
        number = repr(exchange.request.message["id"])
        if number in seen:
            yield Fault(exchange.request.line, f"the id {number} was used before")
        seen.add(number)


def _ended_other(talk: AcpTalk, client: bool) -> bool:
    return talk.ended_by != ("client" if client else "agent")


def unknown_refused(talk: AcpTalk, *, client: bool) -> Faults:
    """A request that it does not know is answered with -32601, or served as an extension."""
    for exchange in talk.questions if client else talk.asked:
        known = exchange.request.method in talk.schema.served_by
        if not known and exchange.error_code not in (None, METHOD_NOT_FOUND):
            yield Fault(exchange.answers[0].line, f"{exchange.request.method} has another error")


def asks_unknown(talk: AcpTalk, *, client: bool) -> bool:
    """Return whether this side got a request that the protocol does not have."""
    asked = talk.questions if client else talk.asked
    return any(one.request.method not in talk.schema.served_by for one in asked)


def announced_served(talk: AcpTalk, *, client: bool) -> Faults:
    """What it has announced, and what every side must serve, is not refused with -32601."""
    can = talk.client_can if client else talk.agent_can
    for exchange in talk.questions if client else talk.asked:
        method = exchange.request.method
        served = method in _ALWAYS or _has(can, method)
        served = served or (method == "authenticate" and bool(talk.started.get("authMethods")))
        if exchange.error_code == METHOD_NOT_FOUND and served:
            yield Fault(exchange.answers[0].line, f"{method} was refused as unknown")


def only_announced(talk: AcpTalk, *, client: bool) -> Faults:
    """It uses only what the other side has announced."""
    can = talk.agent_can if client else talk.client_can
    for exchange in talk.requests(client=client):
        request = exchange.request
        if request.method in _OPTIONAL and not _has(can, request.method):
            yield Fault(request.line, f"{request.method} was not announced")
        for what in _used(exchange):
            part, _, name = what.partition(".")
            if not _true(as_object(can.get(part)).get(name)):
                yield Fault(request.line, f"`{what}` was not announced")


def _has(can: Json, method: str) -> bool:
    value: object = can
    for name in _OPTIONAL.get(method, ("",)):
        value = as_object(value).get(name)
    return _true(value)


def _true(value: object) -> bool:
    return value is True or isinstance(value, dict)


def _used(exchange: RequestExchange) -> list[str]:
    """Return the capabilities of the other side that the params of a request need."""
    params = exchange.request.params
    if exchange.request.method == "session/prompt":
        kinds = [as_object(one).get("type") for one in params.get("prompt") or ()]
        return [f"promptCapabilities.{_BLOCKS[str(one)]}" for one in kinds if one in _BLOCKS]
    if exchange.request.method == "elicitation/create":
        return [f"elicitation.{params.get('mode')}"]
    servers = [as_object(one).get("type") for one in params.get("mcpServers") or ()]
    used = [f"mcpCapabilities.{one}" for one in servers if one in ("http", "sse")]
    return used + ["sessionCapabilities.additionalDirectories"] * bool(
        params.get("additionalDirectories")
    )


def paths_absolute(talk: AcpTalk, *, client: bool) -> Faults:
    """Every path is absolute."""
    for frame in talk.said(client=client):
        for name, value in members(frame.params, lambda name, _: name in ("path", "cwd")):
            if isinstance(value, str) and not _ABSOLUTE.match(value):
                yield Fault(frame.line, f"`{name}` {value!r} is not absolute")


def known_sessions(talk: AcpTalk, *, client: bool) -> Faults:
    """It names only sessions that are open, or that the agent has listed."""
    opened: set[object] = set()
    listed: set[object] = set()
    pending: dict[object, TalkFrame] = {}
    for frame in talk.frames:
        session = frame.params.get("sessionId")
        if frame.by_client and frame.is_request:
            pending[repr(frame.message["id"])] = frame
            if frame.method in ("session/load", "session/resume", "session/fork"):
                opened.add(session)
        elif not frame.by_client and not frame.method:
            asked = pending.pop(repr(frame.message.get("id")), frame)
            result = as_object(frame.message.get("result"))
            opened |= {result["sessionId"]} if isinstance(result.get("sessionId"), str) else set()
            if asked.method == "session/list":
                listed |= {as_object(one).get("sessionId") for one in result.get("sessions") or ()}
            if asked.method in ("session/close", "session/delete"):
                opened.discard(asked.params.get("sessionId"))
        right = session in opened
        # Its id comes with the answer, and the first updates may come before.
        right = right or (
            not client and any(one.method == "session/new" for one in pending.values())
        )
        right = right or (client and session in listed and frame.method == "session/delete")
        mine = frame.by_client is client and not talk.is_probe(frame)
        if mine and "sessionId" in frame.params and not right:
            yield Fault(frame.line, f"{frame.method} names the session {session!r}")
