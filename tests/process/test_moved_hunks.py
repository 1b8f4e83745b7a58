"""Hunks that the user's typing moves: a client that wants it is notified, and need not ask."""

from pathlib import Path
from typing import Any

from kode_sidecar.terminal.client.handshake import KODE_CAPABILITIES
from tests.support.model_script import answer, text, tool_call
from tests.support.normal_form import notifications
from tests.support.sidecar import HANG_SECONDS, World, sidecar

WANTS: dict[str, Any] = {
    "kode_options": {"capabilities": {**KODE_CAPABILITIES, "movedHunks": {}, "saveDocuments": {}}}
}
LINES = [f"line {number} 行\n" for number in range(9)]
EDITS = [{"old": LINES[at], "new": f"changed {at}\n"} for at in (2, 6)]


def script() -> list[Any]:
    call = tool_call("propose_edit", {"path": "a.py", "edits": EDITS})
    return [
        answer(tool_call("read_file", {"path": "a.py"})),
        answer(call),
        answer(text("Done.")),
    ]


def moved(world: World) -> list[dict[str, Any]]:
    """The files of all notifications so far."""
    return [
        file
        for method, params in notifications(world.client.frames)
        if method == "kode/changeSet/moved"
        for view in params["changeSets"]
        for file in view["files"]
    ]


def lines(file: dict[str, Any]) -> list[int]:
    return [hunk["range"]["start"]["line"] for hunk in file["hunks"]]


async def test_a_client_is_notified_where_hunks_are_when_the_user_types(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("".join(LINES).encode())
    async with sidecar(script(), roots=[tmp_path], handshake=WANTS) as world:
        buffer = world.editor.open(tmp_path / "a.py")
        session = await world.session(mode="review")
        await world.turn(session, "Change it.")
        assert moved(world) == []
        world.editor.type(buffer, 0, "# mine\n")
        world.editor.type(buffer, buffer.text.index("line 4"), "# 茶\n# tea\n")
        seen = lambda: [one for one in moved(world) if one["version"] == buffer.version]  # noqa: E731
        await world.watch.until(lambda: bool(seen()), HANG_SECONDS)
        (file,) = seen()
        assert lines(file) == [3, 9]
        assert {hunk["state"] for hunk in file["hunks"]} == {"proposed"}
        assert "newText" not in file["hunks"][0]


async def test_edits_to_keep_are_reported_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("".join(LINES).encode())
    async with sidecar(script(), roots=[tmp_path], handshake=WANTS) as world:
        session = await world.session(mode="keep")
        await world.turn(session, "Change it.")
        seen = lambda: [one for one in moved(world) if len(one["hunks"]) == 2]  # noqa: E731
        await world.watch.until(lambda: bool(seen()), HANG_SECONDS)
        assert lines(seen()[-1]) == [2, 6]
        assert [hunk["kept"] for hunk in seen()[-1]["hunks"]] == [False, False]
