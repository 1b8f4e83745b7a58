"""Recordings that were made before timers and threads were noted by the event loop still play."""

from pathlib import Path

import pytest

from kode_sidecar.devtools.recording.replay import play
from kode_sidecar.devtools.recording.transcript import CallDone, TimerRang, read_transcript
from tests.support.program import PROGRAM
from tests.support.transcripts import PATIENCE

FOLDER = Path(__file__).with_name("format_1")


@pytest.mark.program
@pytest.mark.parametrize("name", ["edits_decide_undo", "hung_scout"])
async def test_a_recording_of_format_1_plays(name: str) -> None:  # E6
    tape = FOLDER / f"{name}.jsonl"
    transcript = read_transcript(tape)
    assert transcript.head.format == 1
    assert (await play(tape, transcript, PROGRAM, PATIENCE)).difference is None


def test_its_lines_keep_their_numbers_and_get_the_names_of_today() -> None:
    tape = FOLDER / "hung_scout.jsonl"
    lines = read_transcript(tape).lines
    assert len(lines) == len(tape.read_bytes().splitlines())
    assert [line.seconds for line in lines if isinstance(line, TimerRang)] == [600.0]
    saves = [line for line in lines if isinstance(line, CallDone) and line.name == "Saver.sync"]
    assert saves
    assert {line.number for line in saves} == {None}
