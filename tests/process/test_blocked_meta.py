"""A session whose `meta.json` is no file is listed, opens, and goes on."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.files import link
from tests.support.model_script import answer, text
from tests.support.sidecar import HANG_SECONDS, sidecar


@pytest.mark.parametrize("what", ["folder", "full folder", "loop", "broken link"])
async def test_what_stands_in_its_place(what: str, tmp_path: Path) -> None:
    home = {"KODE_HOME": str(tmp_path / "home"), "KODE_LOG_DIR": str(tmp_path / "logs")}
    async with sidecar([answer(text("One."))], environment=home) as world:
        session = await world.session()
        await world.turn(session, "first")
        folder = tmp_path / "home" / "conversations" / session.session_id
        assert folder.is_dir()
    meta = folder / "meta.json"
    meta.unlink()
    if "folder" in what:
        meta.mkdir()
        if what == "full folder":
            shutil.copy(folder / "messages.jsonl", meta / "x")
    elif os.name != "nt":
        link(meta, meta if what == "loop" else folder / "nothing")
    async with sidecar([answer(text("Two."))], environment=home) as world:
        request = world.client.request
        listed = await request("kode/session/list", {"all": True}, HANG_SECONDS)
        assert [one["sessionId"] for one in listed["sessions"]] == [session.session_id]
        attached = await request(
            "kode/session/attach", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert len(attached["messages"]) == 2
        again = world.watch.session(session.session_id, attached["seq"])
        assert (await world.turn(again, "second")).stop_reason == "end_turn"
    assert meta.is_file()
    async with sidecar(environment=home) as world:
        asked = {"sessionId": session.session_id}
        attached = await world.client.request("kode/session/attach", asked, HANG_SECONDS)
        assert len(attached["messages"]) == 4
