"""Right clients that the judge once blamed: they resume, show a snapshot, are asked again, end."""

from kode_sidecar.devtools.grading.document_rules import refused_untouched
from kode_sidecar.devtools.grading.message_rules import answered_once, order_kept
from kode_sidecar.devtools.grading.shown_rules import deltas_folded
from tests.devtools.grading.talks import Json, Said, talk

DECIDE: Json = {
    "changeSetId": "c",
    "decisions": [{"hunkId": "h", "action": "accept"}],
    "seenSeq": 5,
}


def faults(*requests: tuple[str, Json]) -> list[str]:
    """What is wrong with the order of these requests."""
    frames = [
        (True, {"id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(requests)
    ]
    return [fault.text for fault in order_kept(talk(*frames))]


def test_what_the_earlier_process_told_is_known() -> None:  # F7
    attach: tuple[str, Json] = ("kode/session/attach", {"sessionId": "s", "afterSeq": 5})
    prompt: tuple[str, Json] = ("kode/turn/start", {"sessionId": "s", "input": []})
    assert faults(attach, prompt, ("kode/changeSet/decide", DECIDE)) == []


def test_without_it_nothing_is_known() -> None:  # F7
    prompt: tuple[str, Json] = ("kode/turn/start", {"sessionId": "s", "input": []})
    assert len(faults(prompt, ("kode/changeSet/decide", DECIDE))) == 4


def test_a_text_of_a_snapshot_may_be_shown() -> None:  # F7
    snapshot: Json = {"content": [{"type": "text", "id": "b1", "text": "as it was"}]}

    def shows(text: str) -> list[str]:
        show: Json = {"method": "kode/editor/didShow", "params": {"blockId": "b1", "text": text}}
        attach: Json = {"id": 1, "method": "kode/session/attach", "params": {}}
        reported = talk((True, attach), (False, {"id": 1, "result": snapshot}), (True, show))
        return [fault.text for fault in deltas_folded(reported)]

    assert shows("as it was") == []
    assert len(shows("as it never was")) == 1


def test_a_refused_edit_may_be_done_when_it_is_sent_again() -> None:  # F7
    def apply(number: str, version: int) -> Json:
        start, end = {"line": 0, "character": 0}, {"line": 0, "character": 3}
        edits: list[Json] = [{"range": {"start": start, "end": end}, "newText": "ONE"}]
        document: Json = {"textDocument": {"uri": "file:///a", "version": version}, "edits": edits}
        params: Json = {"edit": {"documentChanges": [document]}}
        return {"id": number, "method": "workspace/applyEdit", "params": params}

    def change(version: int, text: str) -> Json:
        params: Json = {"textDocument": {"uri": "file:///a", "version": version}}
        changes: Json = {"contentChanges": [{"text": text}]}
        return {"method": "textDocument/didChange", "params": {**params, **changes}}

    document: Json = {"uri": "file:///a", "version": 1, "text": "one\n"}
    opened: Json = {"method": "textDocument/didOpen", "params": {"textDocument": document}}
    again: list[Said] = [
        (True, opened),
        (False, apply("k3", 1)),
        (True, change(2, "one\nx")),
        (True, {"id": "k3", "result": {"applied": False}}),
        (False, apply("k4", 2)),
        (True, change(3, "ONE\nx")),
        (True, {"id": "k4", "result": {"applied": True}}),
    ]
    assert list(refused_untouched(talk(*again))) == []
    lied: list[Said] = [*again[:2], (True, change(2, "ONE\n")), again[3]]
    assert len(list(refused_untouched(talk(*lied)))) == 1


def test_a_question_at_the_end_needs_no_answer() -> None:  # F7
    question: Said = (False, {"id": "k1", "method": "kode/editor/diagnostics", "params": {}})
    ends: Said = (True, {"id": 1, "method": "shutdown"})
    goes_on: Said = (True, {"id": 1, "method": "kode/session/list", "params": {}})
    assert list(answered_once(talk(question, ends))) == []
    assert list(answered_once(talk(ends, question, (True, {"method": "exit"})))) == []
    assert len(list(answered_once(talk(question, goes_on, ends)))) == 1
    assert len(list(answered_once(talk(question)))) == 1
