"""A file whose encoding only the editor knows is opened there, and its text is used."""

from pathlib import Path

import pytest

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set, sidecar

SAVED = "第一行\r\n第二行\r\n"
CAN_OPEN = {"capabilities": {"permission": {}, "openDocument": {}}}


@pytest.mark.parametrize("kode", [CAN_OPEN, {}], ids=["opens", "does not"])
async def test_a_gbk_file_is_read_and_edited_as_the_editor_shows_it(  # E3
    tmp_path: Path, kode: dict[str, object]
) -> None:
    (tmp_path / "旧.txt").write_bytes(SAVED.encode("gbk"))
    edit = {"path": "旧.txt", "edits": [{"old": "第二行", "new": "第二行，改"}]}
    script = [
        answer(tool_call("read_file", {"path": "旧.txt"})),
        answer(tool_call("propose_edit", edit)),
        answer(text("Done.")),
    ]
    hands = {"kode_options": kode}
    async with sidecar(script, roots=[tmp_path], handshake=hands) as world:
        world.editor.load = lambda path: path.read_bytes().decode("gbk")
        session = await world.session()
        await world.turn(session, "改")
        results = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        if not kode:
            assert all("neither" in one or "not UTF-8" in one for one in results)
            assert session.change_sets == {}
            return
        assert "第二行" in results[0]
        assert (await world.decide(only_change_set(session)))["verified"] is True
        (buffer,) = world.editor.buffers
        assert buffer.text == SAVED.replace("第二行", "第二行，改")
        assert (tmp_path / "旧.txt").read_bytes() == SAVED.encode("gbk")
