"""Rules of the Agent Client Protocol for agents."""

from collections.abc import Iterator, Sequence
from typing import Any

from kode_sidecar.devtools.grading.acp_talk import SOON, AcpTalk
from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Json, TalkFrame
from kode_sidecar.devtools.recording import as_object
from kode_sidecar.errors import INVALID_PARAMS

_ENDED = ("completed", "failed")
_SPEECH = ("agent_message_chunk", "agent_thought_chunk", "tool_call")
_REPLAYED = ("user_message_chunk", "agent_message_chunk")


def version_answered(talk: AcpTalk) -> Faults:
    """`initialize` is answered with version 1 where the client asks for it, and before all else."""
    if talk.opening is None or not talk.opening.answers:
        return
    answer = talk.opening.answers[0]
    version = talk.started.get("protocolVersion")
    if "result" not in answer.message:
        yield Fault(answer.line, "`initialize` was refused")
    elif talk.opening.request.params.get("protocolVersion") == 1 and version != 1:
        yield Fault(answer.line, f"the version is {version!r}")
    for frame in talk.said(client=False):
        if frame.place < answer.place:
            yield Fault(frame.line, "it came before the answer to `initialize`")


def wrong_refused(talk: AcpTalk) -> Faults:
    """A request with params that the schema does not allow is answered with -32602."""
    for exchange in talk.asked:
        request = exchange.request
        wrong = talk.schema.problems(request.method, "params", request.message.get("params"))
        if wrong and exchange.answers and exchange.error_code != INVALID_PARAMS:
            text = f"{request.method} has wrong params, and was answered otherwise"
            yield Fault(exchange.answers[0].line, text)


def tools_in_order(talk: AcpTalk) -> Faults:
    """A tool call is begun once, then updated, and nothing follows its end."""
    calls: dict[tuple[str, str], object] = {}
    for frame in talk.frames:
        if frame.by_client and frame.method == "session/load":  # which replays all of it
            calls = {key: one for key, one in calls.items() if key[0] != frame.params["sessionId"]}
        for session, update, begins in _tool_updates(frame):
            key, status = (session, str(update.get("toolCallId"))), update.get("status")
            before = calls.get(key)
            if begins and key in calls:
                yield Fault(frame.line, f"the tool call {key[1]!r} begins again")
            elif begins is False and key not in calls:
                yield Fault(frame.line, f"the tool call {key[1]!r} was not begun")
            elif before in _ENDED and status not in (None, before):
                yield Fault(frame.line, f"the tool call {key[1]!r} had ended: {before}")
            calls[key] = status or before or "pending"


def tools_ended(talk: AcpTalk) -> Faults:
    """Where a turn ends by itself, all its tool calls have completed or failed."""
    for exchange in talk.asked:
        done = as_object(exchange.result).get("stopReason") == "end_turn"
        if exchange.request.method != "session/prompt" or not done:
            continue
        answer, states = exchange.answers[0], dict[str, object]()
        for frame in talk.frames[exchange.request.place : answer.place]:
            for session, update, _ in _tool_updates(frame):
                if session == exchange.request.params.get("sessionId"):
                    name = str(update.get("toolCallId"))
                    states[name] = update.get("status") or states.get(name)
        for name, state in states.items():
            if state not in _ENDED:
                yield Fault(answer.line, f"the turn ended, and the tool call {name!r} has not")


def _tool_updates(frame: TalkFrame) -> Iterator[tuple[str, Json, bool | None]]:
    """Yield `(session, update, begins)`; None for a question, which may name a call first."""
    session = str(frame.params.get("sessionId"))
    if frame.by_client:
        return
    if frame.method == "session/request_permission":
        yield session, as_object(frame.params.get("toolCall")), None
    update = as_object(frame.params.get("update"))
    kind = update.get("sessionUpdate")
    if frame.method == "session/update" and kind in ("tool_call", "tool_call_update"):
        yield session, update, kind == "tool_call"


def speech_in_turn(talk: AcpTalk) -> Faults:
    """The answer to a prompt is the last of its turn: text and tool calls come before it."""
    open_for: dict[str, set[object]] = {}
    for frame in talk.frames:
        if frame.by_client and frame.method in ("session/prompt", "session/load"):
            session = str(frame.params.get("sessionId"))
            open_for.setdefault(session, set()).add(repr(frame.message.get("id")))
        elif not frame.by_client and not frame.method:
            for ids in open_for.values():
                ids.discard(repr(frame.message.get("id")))
        elif frame.method == "session/update" and not frame.by_client:
            session = str(frame.params.get("sessionId"))
            kind = as_object(frame.params.get("update")).get("sessionUpdate")
            if kind in _SPEECH and open_for.get(session) == set():
                yield Fault(frame.line, f"{kind} came after the end of the turn")


def cancel_honoured(talk: AcpTalk) -> Faults:
    """A prompt that was cancelled ends with the reason `cancelled`, and no other one does."""
    for exchange in talk.asked:
        if exchange.request.method != "session/prompt" or not exchange.answers:
            continue
        answer, session = exchange.answers[0], exchange.request.params.get("sessionId")
        cancels = [
            frame
            for frame in talk.frames[exchange.request.place : answer.place]
            if frame.by_client
            and frame.method in ("session/cancel", "$/cancel_request")
            and frame.params.get("sessionId", session) == session
        ]
        reason = as_object(exchange.result).get("stopReason")
        if reason == "cancelled" and not cancels:
            yield Fault(answer.line, "nobody has cancelled")
        late = bool(cancels) and answer.at - cancels[0].at > SOON
        by_session = any(frame.method == "session/cancel" for frame in cancels)
        if by_session and ("error" in answer.message or (late and reason != "cancelled")):
            yield Fault(answer.line, "the prompt was cancelled, and ended otherwise")


def offers_whole(talk: AcpTalk) -> Faults:
    """Modes, options and answers to choose from have ids of their own, and one that exists is set.

    A changed option is in the answer, with its new value.
    """
    modes: dict[object, set[object]] = {}
    for exchange in talk.asked:
        for frame in exchange.answers[:1]:
            result = as_object(exchange.result)
            state = as_object(result.get("modes"))
            ids = [as_object(one).get("id") for one in state.get("availableModes") or ()]
            if state:
                session = result.get("sessionId") or exchange.request.params.get("sessionId")
                modes[session] = set(map(repr, ids))
                yield from _chosen(frame, "mode", state.get("currentModeId"), ids)
            yield from _options(frame, result)
            changed = exchange.request.params
            if exchange.request.method == "session/set_config_option" and result:
                now = {
                    as_object(o).get("id"): as_object(o) for o in result.get("configOptions", ())
                }
                value = now.get(changed.get("configId"), {}).get("currentValue")
                if value != changed.get("value"):
                    yield Fault(frame.line, f"the option was set, and its value is {value!r}")
    for frame, session, update in talk.updates():
        mode = update.get("currentModeId")
        if "currentModeId" in update and repr(mode) not in modes.get(session, {repr(mode)}):
            yield Fault(frame.line, f"there is no mode {mode!r}")
        yield from _options(frame, update)
    for exchange in talk.requests(client=False, method="session/request_permission"):
        ids = [as_object(one).get("optionId") for one in exchange.request.params.get("options", ())]
        if not ids or len({*map(repr, ids)}) < len(ids):
            yield Fault(exchange.request.line, f"the answers to choose from are {ids!r}")


def _options(frame: TalkFrame, value: Json) -> Faults:
    for one in map(as_object, value.get("configOptions") or ()):
        if one.get("type") == "select":
            yield from _chosen(frame, "option", one.get("currentValue"), list(option_values(one)))


def option_values(option: Json) -> Iterator[object]:
    """Yield the values of an option to choose from, also those in groups."""
    for one in map(as_object, option.get("options") or ()):
        yield from option_values(one) if "options" in one else [one.get("value")]


def _chosen(frame: TalkFrame, what: str, current: object, ids: list[Any]) -> Faults:
    if current not in ids:
        yield Fault(frame.line, f"the {what} {current!r} is none of {ids!r}")
    if len({*map(repr, ids)}) < len(ids):
        yield Fault(frame.line, f"an id of the {what} stands twice in {ids!r}")


def history_replayed(talk: AcpTalk) -> Faults:
    """`session/load` sends the conversation again before its answer; `session/resume` does not."""
    for exchange in talk.asked:
        request = exchange.request
        if request.method not in ("session/load", "session/resume") or exchange.result is None:
            continue
        session = request.params.get("sessionId")
        answer = exchange.answers[0]
        said = _kinds(talk.frames[: request.place], session)
        kinds = _kinds(talk.frames[request.place : answer.place], session)
        missing = [kind for kind in _REPLAYED if kind in said and kind not in kinds]
        if request.method == "session/load" and missing:
            yield Fault(answer.line, f"it was answered without {missing[0]}")
        if request.method == "session/resume" and kinds & set(_REPLAYED):
            yield Fault(answer.line, "the conversation was sent again")


def _kinds(frames: Sequence[TalkFrame], session: object) -> set[object]:
    """Return what was said of a session; a prompt that was answered is a user's message."""
    return {
        "user_message_chunk"
        if frame.method == "session/prompt"
        else as_object(frame.params.get("update")).get("sessionUpdate")
        for frame in frames
        if frame.params.get("sessionId") == session
    }


def lists_true(talk: AcpTalk) -> Faults:
    """`session/list` names each session once, none that was deleted, and of one folder if asked."""
    deleted: set[object] = set()
    answers = {one.answers[0].place: one for one in talk.asked if one.result is not None}
    for place in sorted(answers):
        exchange = answers[place]
        params = exchange.request.params
        if exchange.request.method == "session/delete":
            deleted.add(params.get("sessionId"))
        if exchange.request.method != "session/list":
            continue
        infos = [as_object(one) for one in as_object(exchange.result).get("sessions") or ()]
        ids = [one.get("sessionId") for one in infos]
        line = exchange.answers[0].line
        if len({*map(repr, ids)}) < len(ids):
            yield Fault(line, "a session stands there twice")
        if deleted & set(map(str, ids)):
            yield Fault(line, "a deleted session stands there")
        if params.get("cwd") and any(one.get("cwd") != params["cwd"] for one in infos):
            yield Fault(line, "a session of another folder stands there")


def terminals_released(talk: AcpTalk) -> Faults:
    """Only terminals that were created are used, each is released, and not used afterwards."""
    created: dict[object, int] = {}
    released: set[object] = set()
    for exchange in talk.requests(client=False):
        request = exchange.request
        terminal = request.params.get("terminalId")
        if request.method == "terminal/create":
            created[as_object(exchange.result).get("terminalId")] = request.line
        elif request.method.startswith("terminal/"):
            if terminal not in created or terminal in released:
                yield Fault(request.line, f"there is no terminal {terminal!r}")
            released |= {terminal} if request.method == "terminal/release" else set()
    for terminal, line in created.items():
        if terminal is not None and terminal not in released and talk.ended_by == "client":
            yield Fault(line, f"the terminal {terminal!r} was never released")
