"""Right clients that hide what they may hide, go on after a `seq`, or lost their sidecar."""

from typing import Any

from kode_sidecar.devtools.grading.message_rules import answered_once, ended_in_order, shaken_hands
from kode_sidecar.devtools.grading.shown_rules import deltas_folded, growth_shown
from tests.devtools.grading.talks import Json, Said, events, shows, talk

HELLO: tuple[Said, ...] = (
    (True, {"id": 1, "method": "initialize", "params": {}}),
    (False, {"id": 1, "result": {"capabilities": {}}}),
    (True, {"method": "initialized", "params": {}}),
)


def block(role: str, kind: str, block_id: str) -> Said:
    """A message with one whole block."""
    content: Json = {"type": kind, "id": block_id, "text": f"words of {block_id}"}
    place: Json = {"messageId": f"m-{block_id}", "blockId": block_id, "block": content}
    added: Json = {"type": "message.added", "messageId": f"m-{block_id}", "role": role}
    return events(added, {"type": "block.started", **place}, {"type": "block.completed", **place})


def test_prompts_reminders_and_thoughts_may_be_hidden_but_no_answer() -> None:
    hidden = (block("user", "text", "b1"), block("assistant", "thinking", "b2"))
    answers = (block("assistant", "text", "b3"), block("assistant", "text", "b4"))
    seen = shows("b3", "words of b3")
    assert list(deltas_folded(talk(*hidden, answers[0], seen))) == []
    (fault,) = deltas_folded(talk(*hidden, *answers, seen))
    assert (fault.text, fault.expected) == ("block b4 was never shown", "'words of b4'")


def test_hidden_thoughts_need_not_grow() -> None:
    for kind in ("thinking", "text"):
        delta: Json = {"deltas": [{"blockId": "b1", "at": 0, "add": "words"}]}
        added: Json = {"type": "message.added", "messageId": "m-b1", "role": "assistant"}
        place: Json = {"messageId": "m-b1", "blockId": "b1", "block": {"type": kind, "id": "b1"}}
        reported = talk(
            events(added, {"type": "block.started", **place}),
            (False, {"method": "kode/delta", "params": delta}),
            events({"type": "block.completed", **place}),
        )
        last = reported.frames[-1]
        reported.frames = (*reported.frames[:-1], last._replace(at=5.0))
        assert len(list(growth_shown(reported))) == (kind == "text")


def test_blocks_of_an_earlier_process_may_be_shown() -> None:
    def attached(**params: Any) -> Said:
        return True, {"id": 2, "method": "kode/session/attach", "params": params}

    seen = shows("b9", "from before")
    assert list(deltas_folded(talk(attached(sessionId="s", afterSeq=7), seen))) == []
    assert len(list(deltas_folded(talk(attached(sessionId="s"), seen)))) == 1


def test_a_killed_sidecar_is_no_fault_of_the_client() -> None:
    question: Said = (False, {"id": "k1", "method": "kode/ask", "params": {}})
    for whole, faults in ((True, 1), (False, 0)):
        assert len(list(ended_in_order(talk(*HELLO, whole=whole)))) == faults
        assert len(list(answered_once(talk(*HELLO, question, whole=whole)))) == faults
    leaves: Said = (True, {"id": 3, "method": "shutdown"})
    assert list(ended_in_order(talk(*HELLO, leaves, whole=False))) == []


def test_talk_before_initialize() -> None:
    (fault,) = shaken_hands(talk(*HELLO, early=("kode/ping",)))
    assert fault.text == "kode/ping came before `initialize`"
    assert list(shaken_hands(talk(*HELLO, early=("initialize",)))) == []  # a version was refused
