"""Rules about messages: answers, their order, and announced capabilities."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Json, RequestExchange, Talk, TalkFrame
from kode_sidecar.devtools.recording import as_object
from kode_sidecar.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

CANCEL_SECONDS = 1.0
"""How long an answer may have been under way when its request was cancelled."""

_TURN_ACTIVE = -33003
_KNOWN = {
    "workspace/applyEdit": "applied",
    "kode/permission/request": "optionId",
    "kode/ask": "choices",
    "kode/openDocument": "opened",
    "kode/saveDocuments": "saved",
}
"""The server's requests, and the member that an answer must have."""

_ANNOUNCED: Mapping[str, str] = {
    "workspace/applyEdit": "applyEdit",
    "kode/permission/request": "permission",
    "kode/ask": "ask",
    "kode/openDocument": "openDocument",
    "kode/saveDocuments": "saveDocuments",
}
_STANDARD = ("window/", "workspace/", "client/", "textDocument/", "kode/editor/")


def shaken_hands(talk: Talk) -> Faults:
    """`initialize` is the first message, and `initialized` follows its answer at once.

    A client whose version was refused may say `initialize` again.
    """
    for method in filter("initialize".__ne__, talk.early):
        yield Fault(1, f"{method or 'an answer'} came before `initialize`")
    said = [frame for frame in talk.frames if frame.by_client]
    if not said or said[0].method != "initialize":
        yield Fault(said[0].line if said else 1, "the first message is not `initialize`")
        return
    for frame in said[1:]:
        if frame.method == "initialize":
            yield Fault(frame.line, "`initialize` came a second time")
    places = [number for number, frame in enumerate(said) if frame.method == "initialized"]
    if places != [1]:
        line = said[1].line if len(said) > 1 else said[0].line
        text = "`initialized` did not follow `initialize`" if 1 not in places else "it came again"
        yield Fault(line, text)


def ended_in_order(talk: Talk) -> Faults:
    """The session ends with `shutdown`, its answer and `exit`, and nothing follows.

    If the sidecar was killed, nobody knows what the client would have said.
    """
    said = [frame for frame in talk.frames if frame.by_client]
    methods = [frame.method for frame in said]
    if "shutdown" not in methods:
        if not talk.whole:
            return
        yield Fault(said[-1].line if said else 1, "the client went without `shutdown`")
        return
    after = [frame for frame in said[methods.index("shutdown") + 1 :] if frame.method]
    if not after and not talk.whole:
        return
    if not after or after[0].method != "exit":
        yield Fault((after or said)[0].line, "`shutdown` was not followed by `exit`")
    for frame in after[1:]:
        yield Fault(frame.line, f"{frame.method} came after `exit`")


def answered_once(talk: Talk) -> Faults:
    """Every request of the server has one answer, and nothing else is answered.

    A client that was about to end when the request came owes none. Where the sidecar was killed,
    nobody knows which answer was still to come.
    """
    last = talk.frames[-1] if talk.frames else None
    for exchange in talk.questions:
        request = exchange.request
        if len(exchange.answers) > 1:
            yield Fault(exchange.answers[1].line, f"{request.method} was answered twice")
        in_time = last is not None and last.at - request.at > CANCEL_SECONDS
        excused = exchange.cancelled is not None or _was_ending(talk, request)
        if not exchange.answers and talk.whole and (in_time or not excused):
            yield Fault(request.line, f"{request.method} was never answered")
    for frame in filter(_by_client, talk.stray):
        yield Fault(frame.line, f"an answer to {frame.message.get('id')!r}, which nobody asked")


def _by_client(frame: TalkFrame) -> bool:
    return frame.by_client


def _was_ending(talk: Talk, request: TalkFrame) -> bool:
    """True if the client had sent `shutdown`, or sent it next after the request came."""
    after = (frame.method for frame in talk.frames[request.place :] if frame.by_client)
    methods = [method for method in after if method and method != "textDocument/didClose"]
    said = [frame.method for frame in talk.frames[: request.place] if frame.by_client]
    return "shutdown" in said or methods[:1] == ["shutdown"]


def answers_shaped(talk: Talk) -> Faults:
    """Answers have the members of their types, and choose only from what was offered."""
    for exchange in talk.questions:
        if not exchange.answers or exchange.request.method not in _KNOWN:
            continue
        if "error" in exchange.answers[0].message:
            if not isinstance(exchange.error_code, int):
                yield Fault(exchange.answers[0].line, "an error without a code")
            continue
        if wrong := _wrong_answer(exchange):
            yield Fault(exchange.answers[0].line, f"{exchange.request.method}: {wrong}")


def _wrong_answer(exchange: RequestExchange) -> str:
    params, method = exchange.request.params, exchange.request.method
    value: Any = as_object(exchange.result).get(_KNOWN[method])
    if method == "kode/permission/request":
        offered = [option.get("optionId") for option in params.get("options", ())]
        return "" if value in offered else f"{value!r} is none of the options"
    if method == "kode/ask":
        if not isinstance(value, list):
            return "`choices` is no list"
        chosen = cast(list[Any], value)
        if any(choice not in params.get("choices", ()) for choice in chosen):
            return f"{chosen!r} is not of the choices, word for word"
        return "more than one choice" if len(chosen) > 1 and not params.get("multi") else ""
    if method == "kode/saveDocuments":
        asked = [document.get("uri") for document in params.get("documents", ())]
        if not isinstance(value, list):
            return "`saved` is no list"
        return "" if all(uri in asked for uri in cast(list[Any], value)) else "it saved other files"
    return "" if isinstance(value, bool) else f"`{_KNOWN[method]}` is neither true nor false"


def unknown_refused(talk: Talk) -> Faults:
    """A request that the client does not know is answered with -32601."""
    for exchange in talk.questions:
        known = exchange.request.method in _KNOWN or exchange.request.method.startswith(_STANDARD)
        if not known and exchange.answers and exchange.error_code != METHOD_NOT_FOUND:
            text = f"{exchange.request.method} is unknown, and was answered otherwise"
            yield Fault(exchange.answers[0].line, text)


def cancel_honoured(talk: Talk) -> Faults:
    """A cancelled request gets no choice of the user any more."""
    for exchange in talk.questions:
        if exchange.cancelled is None or not exchange.answers:
            continue
        answer = exchange.answers[0]
        late = answer.at - exchange.cancelled.at > CANCEL_SECONDS
        value = as_object(exchange.result).get(_KNOWN.get(exchange.request.method, ""))
        if late and value:
            text = f"{exchange.request.method} was taken back, and answered {value!r} later"
            yield Fault(answer.line, text)


def capabilities_true(talk: Talk) -> Faults:
    """Announced capabilities are supported, and only methods that the server has are called."""
    own = as_object(talk.kode.get("capabilities"))
    standard = as_object(as_object(talk.client.get("capabilities")).get("workspace"))
    announced = own.keys() | standard.keys()
    for exchange in talk.questions:
        name = _ANNOUNCED.get(exchange.request.method)
        if name in announced and exchange.error_code == METHOD_NOT_FOUND:
            yield Fault(exchange.answers[0].line, f"`{name}` was announced, and is not served")
    for exchange in talk.asked:
        if exchange.error_code == METHOD_NOT_FOUND:
            yield Fault(exchange.request.line, f"the server has no {exchange.request.method}")
    trusted = talk.kode.get("trusted")
    if trusted is not None and not isinstance(trusted, bool):
        yield Fault(1, "`trusted` is neither true nor false")


def params_right(talk: Talk) -> Faults:
    """No request has wrong parameters, and every id is used once."""
    seen: set[object] = set()
    for exchange in talk.asked:
        request = exchange.request
        if exchange.error_code in (INVALID_PARAMS, INVALID_REQUEST):
            message = as_object(exchange.answers[0].message.get("error")).get("message")
            yield Fault(request.line, f"{request.method}: {message}")
        if request.message["id"] in seen:
            yield Fault(request.line, f"the id {request.message['id']!r} was used before")
        seen.add(request.message["id"])
    for frame in talk.frames:
        if frame.by_client and not frame.message:
            yield Fault(frame.line, "this is no JSON-RPC message")


def order_kept(talk: Talk) -> Faults:
    """The client names only ids and numbers that it has received, and waits for a turn to end."""
    known = _KnownIds()
    for frame in talk.frames:
        if frame.by_client and frame.is_request:
            yield from (Fault(frame.line, text) for text in known.wrong(frame.method, frame.params))
        elif not frame.by_client:
            known.add(frame.message)
    for exchange in talk.asked:
        if exchange.request.method == "kode/turn/start" and exchange.error_code == _TURN_ACTIVE:
            yield Fault(exchange.request.line, "a turn was started while another one ran")


class _KnownIds:
    """The ids and numbers that the client has received so far."""

    def __init__(self) -> None:
        self.sessions: set[object] = set()
        self.hunks: set[object] = set()
        self.change_sets: set[object] = set()
        self.seq = 0
        self.earlier = False
        """The client continues a session of an earlier process and may know ids from there."""

    def add(self, message: Json) -> None:
        for name, value in _members(message):
            if name == "sessionId":
                self.sessions.add(value)
            elif name == "hunkId":
                self.hunks.add(value)
            elif name == "changeSetId":
                self.change_sets.add(value)
            elif name == "seq" and isinstance(value, int):
                self.seq = max(self.seq, value)

    def wrong(self, method: str, params: Json) -> Iterator[str]:
        if method == "kode/session/attach":
            self.sessions.add(params.get("sessionId"))
            self.seq = max(self.seq, int(params.get("afterSeq") or 0))
            self.earlier = self.earlier or "afterSeq" in params
        if method == "kode/changeSet/decide" and not self.earlier:
            if params.get("changeSetId") not in self.change_sets:
                yield f"nobody announced the change set {params.get('changeSetId')!r}"
            if int(params.get("seenSeq", 0)) > self.seq:
                yield f"`seenSeq` {params['seenSeq']} was not sent yet; the last was {self.seq}"
            for decision in params.get("decisions", ()):
                if decision.get("hunkId") not in self.hunks:
                    yield f"nobody announced the hunk {decision.get('hunkId')!r}"
        in_session = method.startswith(("kode/turn/", "kode/tree/"))
        if in_session and params.get("sessionId") not in self.sessions:
            yield f"nobody announced the session {params.get('sessionId')!r}"


def _members(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in cast(Json, value).items():
            yield name, inner
            yield from _members(inner)
    elif isinstance(value, list):
        for inner in cast(list[object], value):
            yield from _members(inner)
