"""`kode-sidecar sessions migrate`, over sessions that real processes left."""

import os
import subprocess
from pathlib import Path

import pytest

from kode_sidecar.infrastructure.records.message_storage import name_in
from kode_sidecar.infrastructure.records.messages import StorageName
from kode_sidecar.infrastructure.records.session_lock import SessionLock
from tests.process.test_sessions import ask
from tests.support.kept_messages import read_records
from tests.support.model_script import answer, text
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS, sidecar


def migrate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, "sessions", "migrate", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


async def test_sessions_move_there_and_back_and_go_on(  # A7
    tmp_path: Path, storage: StorageName
) -> None:
    other = "jsonl" if storage == "sqlite" else "sqlite"
    async with sidecar([answer(text("one")), answer(text("二"))], roots=[tmp_path]) as world:
        sessions = [await world.session(), await world.session()]
        for session in sessions:
            await world.turn(session, "prompt 茶")
        folders = [world.folder(session) for session in sessions]
        refused = migrate("--to", other)
        assert refused.returncode == 0
        assert refused.stdout.endswith(
            f"0 moved to {other}, 0 there already, 2 skipped, 0 failed\n"
        )
        assert "close it there" in refused.stdout
        assert [name_in(folder) for folder in folders] == [storage] * 2
    before = [read_records(folder) for folder in folders]
    dry = migrate("--to", other, "--dry-run")
    assert dry.stdout.endswith(f"2 to be moved to {other}, 0 there already, 0 skipped, 0 failed\n")
    assert [name_in(folder) for folder in folders] == [storage] * 2
    lock = SessionLock(folders[1])
    first = migrate("--to", other)
    lock.release()
    assert first.stdout.endswith(f"1 moved to {other}, 0 there already, 1 skipped, 0 failed\n")
    assert migrate("--to", other).stdout.endswith(
        f"1 moved to {other}, 1 there already, 0 skipped, 0 failed\n"
    )
    assert [name_in(folder) for folder in folders] == [other] * 2
    assert [read_records(folder) for folder in folders] == before
    left = {"jsonl": "messages.jsonl", "sqlite": "messages.sqlite"}[storage]
    assert not [file for folder in folders for file in folder.glob(f"*{left}*")]
    async with sidecar([answer(text("on"))], roots=[tmp_path]) as world:
        fold = await world.watch.attach(sessions[0].session_id, within=HANG_SECONDS)
        assert (await world.turn(fold, "more")).stop_reason == "end_turn"
        assert len((await ask(world, "message/list", sessionId=fold.session_id))["messages"]) == 4
    assert migrate("--to", storage).returncode == 0
    assert [name_in(folder) for folder in folders] == [storage] * 2
    assert read_records(folders[0])[:2] == before[0]
    files = {path.name for path in folders[0].iterdir()}
    assert len(files & {"messages.jsonl", "messages.sqlite"}) == 1, "nothing is left behind"
    assert storage == "sqlite" or "messages.new.jsonl" not in files


def test_what_cannot_be_moved_is_told_and_stays(tmp_path: Path) -> None:
    folder = Path(os.environ["KODE_HOME"], "conversations", "c-1")
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text('{"id": "c-1"}')
    (folder / "messages.jsonl").mkdir()
    done = migrate("--to", "sqlite")
    assert (done.returncode, done.stderr) == (1, "")
    assert "[1/1] c-1 failed: not readable: messages.jsonl" in done.stdout
    assert (folder / "messages.jsonl").is_dir()


@pytest.mark.parametrize("arguments", [(), ("--to", "csv"), ("--elsewhere",)])
def test_a_wrong_command_line_changes_nothing(arguments: tuple[str, ...]) -> None:
    done = migrate(*arguments)
    assert done.returncode == 2
    assert "usage: kode-sidecar sessions migrate" in done.stderr
    assert "compared with its original" in " ".join(migrate("--help").stdout.split())
