"""The event log of a session."""

import json
from pathlib import Path

import pytest

from kode_sidecar.core.domain.agent_event import BlockCompleted, Notice, TurnCompleted, TurnStarted
from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.infrastructure.records.journal import Journal, read_events


def test_events_come_back_and_numbers_go_on_over_processes(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    assert journal.last_seq == 0
    events = [
        TurnStarted(seq=1, ts="t", turn_id="t1", message_id="m1", agent="coder"),
        BlockCompleted(seq=2, turn_id="t1", block_id="b", block=TextBlock(id="b", text="x\u2028")),
        TurnCompleted(seq=3, turn_id="t1", stop_reason="end_turn"),
    ]
    for event in events:
        journal.append(event)
    journal.sync()
    journal.close()

    again = Journal(path)
    assert again.last_seq == 3
    again.append(Notice(seq=4, code="x", message="y"))
    assert list(again.take_events()) == events
    assert list(again.take_events()) == []
    assert read_events(path) == ([*events, Notice(seq=4, code="x", message="y")], [])
    again.close()
    first = json.loads(path.read_bytes().split(b"\n")[0])
    assert len(first.pop("crc")) == 8
    assert first == {
        "type": "turn.started",
        "seq": 1,
        "ts": "t",
        "turnId": "t1",
        "messageId": "m1",
        "agent": "coder",
        "mode": "",
    }


def test_a_gap_is_a_bug(tmp_path: Path) -> None:  # O3
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(ValueError, match="does not follow"):
        journal.append(Notice(seq=2, code="x", message="y"))
    journal.close()


def test_damage_and_unknown_events_are_passed_over_but_numbers_never_repeat(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.jsonl"
    lines = [
        b'{"type":"notice","seq":1,"code":"a","message":"b"}',
        b'{"type":"scout.updated","seq":2,"future":true}',
        b'{"type":"notice","se',
    ]
    path.write_bytes(b"\n".join(lines))
    journal = Journal(path)
    assert journal.last_seq == 2
    journal.append(Notice(seq=3, code="c", message="\ud800"))
    events, problems = read_events(path)
    assert [event.seq for event in events] == [1, 2, 3]
    assert problems == []
    assert path.with_name("journal.jsonl.bad").read_bytes() == lines[2] + b"\n"
    journal.close()


def test_of_two_events_with_one_number_the_later_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = [
        b'{"type":"notice","seq":1,"code":"a","message":"first"}',
        b'{"type":"notice","seq":2,"code":"a","message":"taken back, as nobody thought"}',
        b'{"type":"notice","seq":2,"code":"a","message":"acknowledged"}',
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    journal = Journal(path)
    reported = [event.message for event in read_events(path)[0] if isinstance(event, Notice)]
    assert (reported, journal.last_seq) == (["first", "acknowledged"], 2)
    opened = [event.message for event in journal.take_events() if isinstance(event, Notice)]
    assert opened == reported
    journal.close()


def test_events_that_lie_in_another_order_are_told_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = [b'{"type":"notice","seq":%d,"code":"a","message":"b"}' % seq for seq in (1, 3, 2)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    journal = Journal(path)
    assert [event.seq for event in journal.take_events()] == [1, 2, 3]
    journal.close()
