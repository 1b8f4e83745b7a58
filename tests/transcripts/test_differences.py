"""What differs from a recording is named: the first place, in words that find it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kode_sidecar.devtools.recording.comparison import Difference, Ids, first_difference
from kode_sidecar.devtools.recording.recording_file import read_recording
from kode_sidecar.devtools.recording.replay import play
from tests.support.program import BUILT, PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import PATIENCE, Case

PLAIN = Case("plain_answer")
EDITS = Case("edits_decide_undo")


async def difference(tape: Path, patience: float = PATIENCE) -> Difference | None:
    return (await play(tape, read_recording(tape), PROGRAM, patience)).difference


def changed(case: Case, folder: Path, lane: str, old: str, new: str) -> tuple[Path, int]:
    """The recording with one text put for another in the first line of a lane that has it."""
    lines = case.tape.read_text(encoding="utf-8").splitlines(keepends=True)
    index = next(
        number
        for number, line in enumerate(lines)
        if line.startswith(f'{{"lane":"{lane}"') and old in line
    )
    lines[index] = lines[index].replace(old, new, 1)
    tape = folder / "tape.jsonl"
    tape.write_text("".join(lines), encoding="utf-8", newline="\n")
    return tape, index + 1


async def test_one_byte_of_a_recorded_answer(tmp_path: Path) -> None:  # E6
    tape, _ = changed(PLAIN, tmp_path, "model.bytes", "tea ", "sea ")
    found = await difference(tape)
    assert found is not None
    assert "tea house" in found.was
    assert "sea house" in found.now
    assert found.at == "$.add"


async def test_one_byte_of_a_frame(tmp_path: Path) -> None:  # E6
    tape, line = changed(EDITS, tmp_path, "out", '"state":"partly_decided"', '"state":"decided"')
    found = await difference(tape)
    assert found is not None
    assert (found.line, found.at) == (line, "$.state")
    assert (found.was, found.now) == ("'decided'", "'partly_decided'")
    assert found.lane.startswith("session ")


def test_how_long_a_command_took_does_not_matter() -> None:
    was = "[python exited with 1 · 0.2 s · in .]\nnot yet"
    assert first_difference(was, was.replace("0.2", "11.9"), Ids(())) is None
    assert first_difference(was, was.replace("with 1", "with 2"), Ids(())) is not None


async def test_a_frame_that_does_not_come(tmp_path: Path) -> None:
    lines = PLAIN.tape.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"turn.completed"' in line)
    lines.insert(at + 1, lines[at].replace("end_turn", "refusal"))
    tape = tmp_path / "tape.jsonl"
    tape.write_text("".join(lines), encoding="utf-8")
    found = await difference(tape, patience=8.0)
    assert found is not None
    assert found.line == at + 2
    assert found.now.startswith("nothing; the process was silent for 8 s")


async def test_a_frame_too_many(tmp_path: Path) -> None:
    lines = PLAIN.tape.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"usage.updated"' in line)
    del lines[at]
    tape = tmp_path / "tape.jsonl"
    tape.write_text("".join(lines), encoding="utf-8")
    found = await difference(tape)
    assert found is not None
    assert (found.was, found.line) == ("nothing more", 0) or "usage.updated" in found.now


async def test_a_question_that_was_not_recorded_is_told(tmp_path: Path) -> None:
    kept = [
        line
        for line in Case("tools").tape.read_text(encoding="utf-8").splitlines(keepends=True)
        if '"ask":2' not in line
    ]
    tape = tmp_path / "tape.jsonl"
    tape.write_text("".join(kept), encoding="utf-8")
    found = await difference(tape)
    assert found is not None
    assert (found.at, found.was, found.now) == ("$.block.type", "'tool_use'", "'text'")
    assert "'block.started'" in found.message


@pytest.mark.skipif(BUILT is not None, reason="the network is forbidden by a sitecustomize")
@pytest.mark.skipif(sys.platform == "win32", reason="an event loop there needs a socket itself")
async def test_nothing_reaches_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:  # E6
    path = os.pathsep.join([str(ROOT / "tests" / "support" / "faults"), str(ROOT)])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("KODE_TEST_NO_NETWORK", "1")
    probe = "import socket; socket.create_connection(('127.0.0.1', 9))"
    probed = await asyncio.create_subprocess_exec(sys.executable, "-c", probe)
    assert await probed.wait() == 77
    for case in (PLAIN, EDITS):
        assert await difference(case.tape) is None


def command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*PROGRAM, "replay", *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )


def test_the_command_says_how_it_went(tmp_path: Path) -> None:
    done = command(PLAIN.folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "as recorded" in done.stdout
    assert done.stdout.rstrip().endswith("out")
    tape, line = changed(EDITS, tmp_path, "out", '"state":"partly_decided"', '"state":"decided"')
    done = command(tape)
    assert done.returncode == 1
    assert f"line {line} of the recording" in done.stdout
    assert "$.state" in done.stdout


def test_the_command_compares_what_the_model_is_asked(tmp_path: Path) -> None:
    for file in (PLAIN.tape, PLAIN.requests):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    golden = tmp_path / PLAIN.requests.name
    golden.write_text(golden.read_text(encoding="utf-8").replace("你好 🙏", "你好"), "utf-8")
    done = command(tmp_path)
    assert done.returncode == 1
    assert "what the model was asked by main session-1" in done.stdout
    assert "$[0].messages[1].content" in done.stdout


def test_another_build_is_played_to(tmp_path: Path) -> None:
    """It is named by its command line; one that cannot be started is told of."""
    quoted = " ".join(f"'{part}'" for part in PROGRAM) if os.name != "nt" else " ".join(PROGRAM)
    done = command(PLAIN.folder, "--against", quoted)
    assert done.returncode == 0, done.stdout + done.stderr
    done = command(PLAIN.folder, "--against", str(tmp_path / "no-such-program"))
    assert done.returncode == 2
    assert "cannot be started" in done.stderr


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"", "no whole line"),
        (b"hello\n", "is no recording"),
        (b'{"lane":"in","frame":{}}\n', "is no recording"),
        (b'{"lane":"head","format":9,"version":"9","started":"","platform":""}\n', "newer"),
        (
            b'{"lane":"head","format":1,"version":"0","started":"","platform":""}\n',
            "has the recording format 1, this program reads 2 only: record anew with "
            "`kode-sidecar serve --record FILE`.\n",
        ),
        (None, ": No such file or directory\n"),
    ],
    ids=["empty", "text", "no head", "newer", "older", "missing"],
)
def test_a_file_that_is_no_recording(tmp_path: Path, content: bytes | None, reported: str) -> None:
    tape = tmp_path / "x.jsonl"
    if content is not None:
        tape.write_bytes(content)
    done = command(tape)
    assert done.returncode == 2
    assert reported in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_recording_names_the_line(tmp_path: Path) -> None:
    lines = PLAIN.tape.read_bytes().split(b"\n")
    lines[5] = lines[5][:-9]
    tape = tmp_path / "tape.jsonl"
    tape.write_bytes(b"\n".join(lines))
    done = command(tape)
    assert done.returncode == 2
    assert "is damaged: line 6" in done.stderr
