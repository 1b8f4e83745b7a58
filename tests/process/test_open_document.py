"""What the editor has open: texts whose encoding only it knows, and very large ones."""

from pathlib import Path

import pytest

from tests.support.model_script import answer, text, tool_call
from tests.support.pings import Pings
from tests.support.sidecar import HANG_SECONDS, only_change_set, sidecar
from tests.support.strace import LINUX_ONLY

SAVED = "第一行\r\n第二行\r\n"
LARGE = {
    "code": "    return some_function(argument, other)  # why\n" * 230_000,
    "CRLF": "abc def ghi\r\n" * 850_000,
    "CJK": "值 = 茶 + 😀 wort\n" * 500_000,
    "nothing but line ends": "\n" * 11_000_000,
}
"""About 11 MB each."""
MOST_PING_SECONDS = 0.25
"""So long may the loop work before it answers a ping right behind one."""
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


@LINUX_ONLY
async def test_a_ping_right_behind_a_large_buffer_is_answered(tmp_path: Path) -> None:
    async with sidecar([answer(text("Hello."))], roots=[tmp_path]) as world:
        await world.turn(await world.session(), "all is loaded")
        pings, worked = Pings(world), dict[str, float]()
        for name, content in LARGE.items():
            before = pings.work()
            world.editor.open(tmp_path / f"{name}.txt", content)
            await world.client.request("kode/ping", {}, HANG_SECONDS)
            worked[name] = pings.work() - before
        print({name: f"{seconds * 1000:.0f} ms" for name, seconds in worked.items()})  # noqa: T201
    assert max(worked.values()) < MOST_PING_SECONDS, worked
