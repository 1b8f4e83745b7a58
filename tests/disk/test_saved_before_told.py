"""What a process asks of the system in order: nothing is acknowledged before it is saved (O3)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kode_sidecar.infrastructure.records.messages import StorageName
from tests.support.model_script import answer, text
from tests.support.program import SERVE
from tests.support.sidecar import HANG_SECONDS, sidecar
from tests.support.strace import LINUX_ONLY, Call, read_log, strace

pytestmark = LINUX_ONLY

CALLS = ("write", "writev", "pwrite64", "fsync", "fdatasync", "rename")
MESSAGES: dict[StorageName, str] = {"jsonl": "messages.jsonl>", "sqlite": "messages.sqlite-wal>"}
JOURNAL = "journal.jsonl>"


class Log:
    """The calls of a process; each question goes on where the last answer was."""

    def __init__(self, path: Path) -> None:
        self._calls: Iterator[Call] = iter(sorted(read_log(path), key=lambda call: call.began))
        self._seen: list[Call] = []

    def reported(self, *words: str) -> Call:
        """The next write to the client with these words."""
        for call in self._calls:
            self._seen.append(call)
            if call.name.startswith("write") and "<pipe:" in call.text and has(call, *words):
                return call
        raise AssertionError(f"the client was never told {words}")

    def saved(self, before: Call, file: str, *words: str, at: int = 0) -> bool:
        """Were these words written to a file, `at` other times before, and synced before that?"""
        written = [call for call in self._seen if "write" in call.name and has(call, file, *words)]
        assert written, f"{words} never reached {file}"
        return any(
            call.name in ("fsync", "fdatasync")
            and has(call, file, "= 0")
            and written[at].ended < call.began
            and call.ended < before.began
            for call in self._seen
        )


def has(call: Call, *words: str) -> bool:
    return all(word in call.text for word in words)


@pytest.mark.program
async def test_each_acknowledgement_comes_after_its_fsync(
    tmp_path: Path, storage: StorageName
) -> None:
    path = tmp_path / "strace.log"
    below = strace(path, CALLS, (), "-y", "-s", "9000", "--seccomp-bpf")  # much faster
    responses = [answer(text("ANSWER-1")), answer(text("ANSWER-2"))]
    async with sidecar(responses, roots=[tmp_path], command=[*below, *SERVE]) as world:
        session = await world.session()
        await world.turn(session, "PROMPT-1")
        await world.turn(session, "PROMPT-2")
        await world.client.request(
            "kode/session/update", {"sessionId": session.session_id, "title": "TITLE"}, HANG_SECONDS
        )
        await world.client.close(HANG_SECONDS)
    log, messages = Log(path), MESSAGES[storage]
    created = log.reported(r"\"sessionId\":", r"\"seq\":0")
    assert log.saved(created, "/.meta.json.", session.session_id)
    for number in (1, 2):
        accepted = log.reported(r"\"result\":", r"\"turnId\":", r"\"messageId\":")
        assert log.saved(accepted, messages, f"PROMPT-{number}")
        assert log.saved(accepted, JOURNAL, "turn.started", at=number - 1)
        ended = log.reported("turn.completed")
        assert log.saved(ended, messages, f"ANSWER-{number}")
        assert log.saved(ended, JOURNAL, "turn.completed", at=number - 1)
    updated = log.reported("session.updated", "TITLE")
    assert log.saved(updated, JOURNAL, "TITLE")
    assert log.saved(updated, "/.meta.json.", "TITLE")
