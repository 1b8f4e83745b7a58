"""The stream folded: the rules of `at`, order, gaps, change sets."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.terminal.client.fold import Fold
from tests.support.session_fold import SessionFold

Json = dict[str, Any]


def event(seq: int, kind: str, **fields: Any) -> Json:
    return {"seq": seq, "ts": "2026-01-01T00:00:00.000Z", "type": kind, "turnId": "t1", **fields}


def opened() -> SessionFold:
    """A session with one open text block `b1`."""
    fold = SessionFold("s1")
    fold.event(event(1, "turn.started", messageId="m1"))
    fold.event(event(2, "message.added", messageId="m2", role="assistant", parentId="m1"))
    block = {"type": "text", "id": "b1", "text": ""}
    fold.event(event(3, "block.started", messageId="m2", blockId="b1", block=block))
    return fold


def delta(at: int, add: str, block_id: str = "b1") -> Json:
    return {"blockId": block_id, "at": at, "add": add}


def completed(seq: int, text: str) -> Json:
    block = {"type": "text", "id": "b1", "text": text}
    return event(seq, "block.completed", messageId="m2", blockId="b1", block=block)


def test_offsets_count_code_points() -> None:
    fold = opened()
    assert fold.delta(delta(0, "茶🍵")) == "茶🍵"
    assert fold.delta(delta(2, "!")) == "!"
    assert fold.messages["m2"].text == "茶🍵!"


def test_a_repeated_delta_adds_nothing_and_an_overlapping_one_its_new_end() -> None:
    fold = opened()
    fold.delta(delta(0, "abc"))
    assert fold.delta(delta(0, "abc")) == ""
    assert fold.delta(delta(1, "b")) == ""
    assert fold.delta(delta(1, "bcde")) == "de"
    assert fold.blocks["b1"].text == "abcde"


def test_after_a_lost_delta_the_completed_block_counts() -> None:
    fold = opened()
    fold.delta(delta(0, "ab"))
    assert fold.delta(delta(5, "fg")) == ""
    assert fold.blocks["b1"].lost
    assert fold.blocks["b1"].text == "ab"
    fold.event(completed(4, "abcdefg"))
    assert fold.blocks["b1"].text == "abcdefg"
    assert not fold.blocks["b1"].lost
    assert fold.anomalies == []


@given(
    st.text(max_size=30),
    st.lists(st.integers(0, 30), max_size=6),
    st.lists(st.integers(0, 8), max_size=8),
)
def test_merged_and_repeated_deltas_give_the_text(
    text: str, cuts: list[int], again: list[int]
) -> None:
    borders = sorted({0, len(text), *(cut for cut in cuts if cut <= len(text))})
    deltas = [delta(start, text[start:end]) for start, end in pairwise(borders)]
    fold = opened()
    for number, one in enumerate(deltas):
        fold.delta(one)
        for repeated in again:
            if repeated <= number:
                fold.delta(deltas[repeated])
    assert fold.blocks["b1"].text == text
    assert fold.anomalies == []


def test_a_dropped_block_disappears() -> None:
    fold = opened()
    fold.delta(delta(0, "never mind"))
    fold.event(event(4, "block.dropped", messageId="m2", blockId="b1", reason="retry"))
    assert fold.messages["m2"].blocks == []
    assert fold.delta(delta(10, "x")) == ""
    assert fold.anomalies == []


def test_gaps_are_seen_and_repetitions_ignored() -> None:  # O3
    fold = opened()
    assert not fold.event(event(2, "notice", code="x", message="again"))
    assert fold.event(event(6, "notice", code="x", message="new"))
    assert fold.gaps == [(4, 5)]
    assert [notice["message"] for notice in fold.notices] == ["new"]
    assert len(fold.anomalies) == 1


def test_events_without_seq_fold_but_do_not_count() -> None:
    fold = opened()
    result = {"type": "tool_result", "id": "b2", "toolUseId": "read_file:0"}
    fold.event(event(4, "block.started", messageId="m2", blockId="b2", block=result))
    progress = {"type": "tool.progress", "toolUseId": "read_file:0", "message": "3 of 9"}
    assert fold.event(progress)
    assert fold.blocks["b2"].progress == "3 of 9"
    assert fold.seq == 4


def test_what_the_disk_refused_is_told_twice_and_folded_once() -> None:
    """Events that are never stored come in between, and notices of both kinds."""
    fold = opened()
    unsaved = [
        event(4, "notice", code="NotSaved", message="the disk is full"),
        event(4, "model.waiting", attempt=1),
        event(4, "block.completed", messageId="m2", blockId="b1", block={"type": "text"}),
        event(5, "notice", code="x", message="a stored one"),
        event(6, "tool.progress", toolUseId="read_file:0"),
        event(6, "message.completed", messageId="m2"),
    ]
    for each in unsaved:
        assert fold.event({name: each[name] for name in each if name not in ("seq", "ts")})
    again = [unsaved[2], unsaved[3], unsaved[5]]
    assert [fold.event(each) for each in again] == [False] * 3
    assert fold.event(event(7, "notice", code="y", message="a new one"))
    assert fold.event(event(8, "notice", code="x", message="a stored one"))
    assert [notice["code"] for notice in fold.notices] == ["NotSaved", "x", "y", "x"]
    assert (fold.seq, fold.gaps, fold.anomalies) == (8, [], [])


def test_breaches_of_order_are_named() -> None:  # O2, O4, O5
    fold = opened()
    fold.event(completed(4, "a"))
    fold.event(completed(5, "a"))
    fold.delta(delta(1, "b"))
    fold.event(event(6, "permission.resolved", requestId="r1", by="user"))
    fold.event(event(7, "permission.resolved", requestId="r1", by="timeout"))
    fold.event(event(8, "turn.completed", stopReason="end_turn"))
    fold.event(event(9, "turn.completed", stopReason="end_turn"))
    assert [anomaly[:3] for anomaly in fold.anomalies] == ["O4:", "O4:", "O5:", "O2:"]


def test_unknown_events_and_blocks_are_ignored() -> None:
    fold = opened()
    fold.event(event(4, "scout.waved", scoutId="x"))
    block = {"type": "hologram", "id": "b9", "depth": 3}
    fold.event(event(5, "block.started", messageId="m2", blockId="b9", block=block))
    fold.event(event(6, "block.completed", messageId="m2", blockId="b9", block=block))
    assert fold.blocks["b9"].block["depth"] == 3
    assert fold.delta(delta(0, "x", "of-another-session")) == ""
    assert fold.anomalies == []


def test_a_block_of_a_message_that_never_came_is_shown_and_named_as_a_breach() -> None:
    fold = SessionFold("s1")
    block = {"type": "text", "id": "b1", "text": "hi"}
    fold.event(event(1, "block.completed", messageId="m9", blockId="b1", block=block))
    assert [anomaly.partition(" names ")[0] for anomaly in fold.anomalies] == [
        "block.completed",
        "O4: block b1 completed without a start",
    ]
    assert fold.messages["m9"].text == "hi"


def test_blocks_of_older_messages_need_no_id() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    fold = Fold()
    fold.page([{"id": "m1", "role": "user", "content": content}])
    blocks = [fold.blocks[block_id] for block_id in fold.messages["m1"]["blocks"]]
    assert [block["text"] for block in blocks] == ["a", "b"]


def test_a_replay_that_stops_short_is_a_breach() -> None:  # O3
    fold = SessionFold("s1")
    reported = event(1, "notice", code="x", message="y")
    fold.attach({"mode": "replay", "seq": 3, "events": [reported]})
    assert fold.anomalies == ["O3: the replay ends at 1, not at 3"]


def test_hunks_stand_file_by_file() -> None:
    fold = SessionFold("s1")
    for seq, name in enumerate("aba", 1):
        hunk = {"hunkId": f"h{seq}", "state": "proposed", "kind": "modify"}
        file = {"uri": f"file:///{name}", "path": name, "hunks": [hunk]}
        change = {"changeSetId": "c", "state": "proposed", "files": [file]}
        fold.event(event(seq, "changeSet.updated", **change))
    assert [hunk.id for hunk in fold.change_sets["c"].hunks()] == ["h1", "h3", "h2"]


def test_hunks_come_whole_once_and_then_by_state() -> None:
    fold = SessionFold("s1")
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    whole = {"hunkId": "h1", "state": "proposed", "kind": "modify", "range": place}
    texts = {"oldText": "a\n", "newText": "b\n"}
    file = {"uri": "file:///a", "path": "a", "version": 3, "hunks": [{**whole, **texts}]}
    fold.event(
        {"seq": 1, "type": "changeSet.updated", "changeSetId": "c", "state": "proposed"}
        | {"files": [file]}
    )
    later = {"uri": "file:///a", "path": "a", "hunks": [{"hunkId": "h1", "state": "applied"}]}
    fold.event(
        {"seq": 2, "type": "changeSet.updated", "changeSetId": "c", "state": "decided"}
        | {"files": [later]}
    )
    change_set = fold.change_sets["c"]
    assert change_set.state == "decided"
    assert change_set.hunks("proposed") == []
    (hunk,) = change_set.hunks("applied")
    assert hunk.info["newText"] == "b\n"
    assert change_set.files["file:///a"].path == "a"
    assert fold.anomalies == []


def test_open_questions_and_the_running_turn_are_known() -> None:
    fold = opened()
    question: Json = {
        "requestId": "r1",
        "toolUseId": "x",
        "title": "t",
        "subject": "s",
        "options": [],
    }
    fold.event(event(4, "permission.requested", **question))
    assert list(fold.questions) == ["r1"]
    assert fold.active_turn is fold.turns["t1"]
    fold.event(event(5, "permission.resolved", requestId="r1", by="user"))
    fold.event(completed(6, ""))
    fold.event(event(7, "turn.completed", stopReason="cancelled", durationMs=5))
    assert fold.questions == {}
    assert fold.active_turn is None
    assert fold.turns["t1"].stop_reason == "cancelled"
    assert fold.anomalies == []
