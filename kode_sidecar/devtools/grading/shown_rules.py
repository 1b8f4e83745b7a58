"""Rules about what a client shows, as it reports by `kode/editor/didShow` in its tests."""

from collections.abc import Iterator
from typing import NamedTuple, cast

from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Json, Talk, TalkFrame
from kode_sidecar.devtools.recording import as_object

SHOW = "kode/editor/didShow"
_GROWN = ("text", "thinking")

SLOW_SECONDS = 0.5
"""A text that takes longer to grow must be shown while it grows."""


class Shown(NamedTuple):
    """The text that a client reported to show of a block."""

    frame: TalkFrame
    block_id: str
    text: str


def shown(talk: Talk) -> list[Shown]:
    """Return the client's reports of what it shows, in order."""
    return [
        Shown(frame, str(frame.params.get("blockId")), str(frame.params.get("text")))
        for frame in talk.frames
        if frame.by_client and frame.method == SHOW
    ]


def deltas_folded(talk: Talk) -> Faults:
    """The shown text of a block is its beginning, only grows, and is the whole text in the end.

    A client may hide thoughts, reminders and the user's own prompts. One that goes on after a `seq`
    knows blocks of an earlier process.
    """
    grown, complete, dropped = _texts(talk)
    stored = dict(_stored_texts(talk))
    resumed = _is_resumed(talk)
    last: dict[str, Shown] = {}
    for one in shown(talk):
        before, last[one.block_id] = last.get(one.block_id), one
        known = stored.get(one.block_id)
        whole = complete.get(one.block_id, grown.get(one.block_id, known))
        if one.block_id in dropped or (whole is None and resumed):
            continue
        text = f"block {one.block_id} shows {one.text!r}"
        if whole is None:
            expected = "only blocks that were in an event or an answer"
            yield Fault(one.frame.line, f"no message had a text in block {one.block_id}", expected)
        elif not whole.startswith(one.text) and not grown.get(one.block_id, "").startswith(
            one.text
        ):
            yield Fault(one.frame.line, text, f"the beginning of {whole!r}")
        elif before is not None and len(one.text) < len(before.text):
            lost = f"block {one.block_id} has lost some of its text: it shows {one.text!r}"
            yield Fault(one.frame.line, lost, f"{before.text!r} or more")
    for block_id, one in last.items():
        whole = "" if block_id in dropped else complete.get(block_id, one.text)
        if one.text != whole:
            yield Fault(one.frame.line, f"at the end block {block_id} shows {one.text!r}", whole)
    if last:
        answers = _answer_blocks(talk) & complete.keys()
        for block_id in sorted(answers - last.keys() - dropped):
            if complete[block_id]:
                text = f"block {block_id} was never shown"
                yield Fault(talk.frames[-1].line, text, repr(complete[block_id]))


def _is_resumed(talk: Talk) -> bool:
    """True if the client goes on after a `seq`, and so has events that the recording has not."""
    attached = (one.request for one in talk.asked if one.request.method == "kode/session/attach")
    return any(request.params.get("afterSeq") for request in attached)


def _answer_blocks(talk: Talk) -> set[str]:
    """Return the blocks of text in the model's own messages: these every client shows."""
    answers: set[object] = set()
    found: set[str] = set()
    for _, event in talk.events():
        if event.get("type") == "message.added" and event.get("role") == "assistant":
            answers.add(event.get("messageId"))
        is_text = as_object(event.get("block")).get("type") == "text"
        if is_text and event.get("messageId") in answers:
            found.add(str(event.get("blockId")))
    return found


def growth_shown(talk: Talk) -> Faults:
    """A text that takes longer to arrive is shown while it grows."""
    for block_id, (first, end) in _streamed(talk).items():
        between = range(first.place + 1, end.place)
        on_time = (one for one in shown(talk) if one.frame.place in between)
        if not any(one.block_id == block_id and one.text for one in on_time):
            expected = f"a part of it between the lines {first.line} and {end.line}"
            yield Fault(end.line, f"block {block_id} was not shown while it grew", expected)


def _streamed(talk: Talk) -> dict[str, tuple[TalkFrame, TalkFrame]]:
    """Return the first delta and the end of each text that took longer than `SLOW_SECONDS`."""
    answers = _answer_blocks(talk)
    first: dict[str, TalkFrame] = {}
    found: dict[str, tuple[TalkFrame, TalkFrame]] = {}
    for frame in talk.frames:
        for delta in frame.params.get("deltas", ()) if frame.method == "kode/delta" else ():
            first.setdefault(delta["blockId"], frame)
        for event in frame.params.get("events", ()) if frame.method == "kode/event" else ():
            begun = first.get(str(event.get("blockId")))
            is_end = event.get("type") == "block.completed"
            if (
                begun
                and is_end
                and event["blockId"] in answers
                and frame.at - begun.at > SLOW_SECONDS
            ):
                found.setdefault(event["blockId"], (begun, frame))
    return found


def _stored_texts(talk: Talk) -> Iterator[tuple[str, str]]:
    """Yield the texts in answers, such as a snapshot, of turns whose events were not sent."""
    todo: list[object] = [exchange.result for exchange in talk.asked]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += cast(list[object], value)
        elif isinstance(value, dict):
            block = cast(Json, value)
            todo += block.values()
            if block.get("type") in _GROWN and "id" in block:
                yield str(block["id"]), str(block.get("text", ""))


def _texts(talk: Talk) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """Return the text from deltas and the completed text by block, and the dropped blocks."""
    grown: dict[str, str] = {}
    complete: dict[str, str] = {}
    dropped: set[str] = set()
    for frame in talk.frames:
        if frame.by_client:
            continue
        for delta in frame.params.get("deltas", ()) if frame.method == "kode/delta" else ():
            have = grown.get(delta["blockId"], "")
            if delta["at"] <= len(have):
                grown[delta["blockId"]] = have + delta["add"][len(have) - delta["at"] :]
        for event in frame.params.get("events", ()) if frame.method == "kode/event" else ():
            block: Json = as_object(event.get("block"))
            if event.get("type") == "block.dropped":
                dropped.add(str(event.get("blockId")))
            elif event.get("type") == "block.completed" and block.get("type") in _GROWN:
                complete[str(event.get("blockId"))] = str(block.get("text", ""))
    return grown, complete, dropped
