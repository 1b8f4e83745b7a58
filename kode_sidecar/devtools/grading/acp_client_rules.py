"""Rules of the Agent Client Protocol for clients."""

import sys
from typing import Any

from kode_sidecar.devtools.grading.acp_agent_rules import option_values
from kode_sidecar.devtools.grading.acp_talk import AcpTalk
from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Json
from kode_sidecar.devtools.recording import as_object


def initialize_first(talk: AcpTalk) -> Faults:
    """`initialize` comes first and once, and nothing follows before its answer."""
    said = [frame for frame in talk.said(client=True) if frame.message]
    if said and said[0].method != "initialize":
        yield Fault(said[0].line, "the first message is not `initialize`")
    answers = talk.opening.answers if talk.opening else []
    for frame in said[1:]:
        if frame.method == "initialize":
            yield Fault(frame.line, "`initialize` came again")
        elif answers and frame.place < answers[0].place:
            yield Fault(frame.line, f"{frame.method} came before the answer to `initialize`")


def permission_chosen(talk: AcpTalk) -> Faults:
    """A permission is answered with one of its options; with `cancelled` only for a cancelled turn.

    Where the turn was cancelled while the user was asked, nothing but `cancelled` is right.
    """
    for exchange in talk.requests(client=False, method="session/request_permission"):
        if not exchange.answers:
            continue
        request, answer = exchange.request, exchange.answers[0]
        outcome = as_object(as_object(exchange.result).get("outcome"))
        ids = [as_object(one).get("optionId") for one in request.params.get("options", ())]
        chosen = outcome.get("optionId")
        if outcome.get("outcome") == "selected" and chosen not in ids:
            yield Fault(answer.line, f"{chosen!r} is none of the options {ids!r}")
        cancelled = any(
            frame.by_client
            and frame.method == "session/cancel"
            and frame.params.get("sessionId") == request.params.get("sessionId")
            for frame in talk.frames[request.place : answer.place]
        )
        if cancelled and outcome.get("outcome") != "cancelled":
            yield Fault(answer.line, "the turn was cancelled, and the question answered otherwise")


def offers_used(talk: AcpTalk) -> Faults:
    """It chooses only modes, options, ways to sign in and cursors that the agent has offered."""
    modes: dict[object, set[object]] = {}
    options: dict[object, dict[object, Json]] = {}
    cursors: set[object] = {None}
    ways = {as_object(one).get("id") for one in talk.started.get("authMethods") or ()}
    answered = {one.answers[0].place: one for one in talk.asked if one.answers}
    for frame in talk.frames:
        params, session = frame.params, frame.params.get("sessionId")
        update = as_object(params.get("update")) if not frame.by_client else {}
        done = answered.get(frame.place)
        if done is not None:
            update = as_object(done.result)
            session = update.get("sessionId") or done.request.params.get("sessionId")
            cursors.add(update.get("nextCursor"))
            state = as_object(update.get("modes"))
            if state:
                modes[session] = {as_object(one).get("id") for one in state["availableModes"]}
        for one in map(as_object, update.get("configOptions") or ()):
            options.setdefault(session, {})[one.get("id")] = one
        if not frame.by_client or talk.is_probe(frame):
            continue
        if frame.method == "session/set_mode" and params.get("modeId") not in modes.get(
            session, ()
        ):
            yield Fault(frame.line, f"there is no mode {params.get('modeId')!r}")
        elif frame.method == "session/set_config_option":
            yield from _set(frame.line, params, options.get(session, {}))
        elif frame.method == "authenticate" and params.get("methodId") not in ways:
            yield Fault(frame.line, f"there is no way {params.get('methodId')!r} to sign in")
        elif frame.method == "session/list" and params.get("cursor") not in cursors:
            yield Fault(frame.line, f"the cursor {params['cursor']!r} was not given")


def _set(line: int, params: Json, options: dict[object, Json]) -> Faults:
    option = options.get(params.get("configId"))
    value = params.get("value")
    if option is None:
        yield Fault(line, f"there is no option {params.get('configId')!r}")
    elif option.get("type") == "select" and value not in list(option_values(option)):
        yield Fault(line, f"the option has no value {value!r}")
    elif option.get("type") == "boolean" and not isinstance(value, bool):
        yield Fault(line, f"the option is on or off, not {value!r}")


def files_right(talk: AcpTalk) -> Faults:
    """A part of a file has no more lines than were asked for, and what was written is read back."""
    written: dict[object, str] = {}
    for exchange in talk.requests(client=False):
        params, result = exchange.request.params, as_object(exchange.result)
        key = params.get("path")
        if exchange.request.method == "fs/write_text_file" and exchange.result is not None:
            written[key] = str(params.get("content"))
        if exchange.request.method != "fs/read_text_file" or "content" not in result:
            continue
        content, limit = str(result["content"]), params.get("limit")
        line = exchange.answers[0].line
        if isinstance(limit, int) and len(content.splitlines()) > limit:
            yield Fault(line, f"{limit} lines were asked for, and more came")
        whole = limit is None and params.get("line") in (None, 0, 1)
        if whole and key in written and _plain(content) != _plain(written[key]):
            yield Fault(line, f"{key} was written, and reads differently")


def _plain(text: str) -> str:
    """Return a text without what a client may change: ends of lines, and the one at the end."""
    return text.replace("\r\n", "\n").removesuffix("\n")


def terminals_reported(talk: AcpTalk) -> Faults:
    """A terminal ends with a code or a signal, and its output is no longer than was asked for."""
    limits: dict[object, int] = {}
    ended: set[object] = set()
    for exchange in talk.requests(client=False):
        params, result = exchange.request.params, as_object(exchange.result)
        terminal = params.get("terminalId")
        if not exchange.answers or "result" not in exchange.answers[0].message:
            continue
        line = exchange.answers[0].line
        if exchange.request.method == "terminal/create":
            terminal = result.get("terminalId")
            if terminal in limits:
                yield Fault(line, f"the terminal {terminal!r} exists already")
            limit = params.get("outputByteLimit")
            limits[terminal] = limit if isinstance(limit, int) else sys.maxsize
        elif exchange.request.method == "terminal/wait_for_exit":
            ended.add(terminal)
            if result.get("exitCode") is None and result.get("signal") is None:
                yield Fault(line, "it ended without a code and without a signal")
        elif exchange.request.method == "terminal/output":
            if terminal in ended and not result.get("exitStatus"):
                yield Fault(line, "it has ended, and `exitStatus` is missing")
            if len(str(result.get("output")).encode()) > limits.get(terminal, sys.maxsize):
                yield Fault(line, "the output is longer than was asked for")


def forms_filled(talk: AcpTalk) -> Faults:
    """An accepted form has the fields that were asked for, with values that they allow."""
    for exchange in talk.requests(client=False, method="elicitation/create"):
        result, params = as_object(exchange.result), exchange.request.params
        action = str(result.get("action", "cancel"))
        if action[:1] != "_" and action not in ("accept", "decline", "cancel"):
            yield Fault(exchange.answers[0].line, f"there is no action {action!r}")
        if action != "accept" or params.get("mode") != "form":
            continue
        asked = as_object(params.get("requestedSchema"))
        content, fields = as_object(result.get("content")), as_object(asked.get("properties"))
        line = exchange.answers[0].line
        required: Any = asked.get("required") or ()
        for name in (*required, *content):
            field = as_object(fields.get(name))
            if name not in content or name not in fields:
                yield Fault(line, f"the field {name!r} is {'missing' if name in fields else 'new'}")
            elif "enum" in field and content[name] not in field["enum"]:
                yield Fault(line, f"{content[name]!r} is none of {field['enum']!r}")
