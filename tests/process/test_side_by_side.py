"""Two sessions over the same files: each is told what the other one changed, and by whom."""

from pathlib import Path

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import World, sidecar


def edit(path: str, old: str, new: str) -> dict[str, object]:
    return {"path": path, "edits": [{"old": old, "new": new}]}


def said_to(world: World) -> list[str]:
    """The words of the user's side in the newest request."""
    found: list[str] = []
    for message in world.asked()["messages"]:
        if message["role"] == "user":
            content = message["content"]
            found += [content] if isinstance(content, str) else [one["text"] for one in content]
    return found


async def test_each_session_hears_what_the_other_changed_in_the_same_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "shared.py").write_bytes("价 = 1\r\nn = 2\r\n".encode())
    (tmp_path / "other.py").write_bytes(b"x = 1\n")
    script = [
        answer(tool_call("read_file", {"path": "shared.py"})),  # the first session
        answer(text("read")),
        answer(tool_call("propose_edit", edit("shared.py", "价 = 1", "价 = 100"))),  # the second
        answer(tool_call("propose_edit", edit("other.py", "x = 1", "x = 2"))),
        answer(text("changed")),
        answer(tool_call("propose_edit", edit("shared.py", "n = 2", "n = 3"))),  # the first
        answer(text("changed too")),
        answer(text("nothing is told twice")),
        answer(text("the second hears of it")),
    ]
    async with sidecar(script, roots=[tmp_path]) as world:
        world.editor.open(tmp_path / "shared.py")
        first = await world.session(mode="auto")
        second = await world.session(mode="auto")
        await world.turn(first, "Read it, please")
        await world.turn(second, "Prices 😀\nup")
        await world.turn(first, "Now change n")
        reported = said_to(world)[-2]
        assert "- shared.py (in the conversation “Prices 😀” with the same user):\n" in reported
        assert "-价 = 1\n+价 = 100\n" in reported
        assert "that you have not read:\n- other.py, in the conversation “Prices 😀”" in reported
        (buffer,) = (one for one in world.editor.buffers if one.uri.endswith("shared.py"))
        assert buffer.text == "价 = 100\r\nn = 3\r\n"
        await world.turn(first, "And?")
        assert said_to(world)[-1:] == ["And?"]
        assert "Prices" not in said_to(world)[-2] or said_to(world)[-2] == reported
        await world.turn(second, "What now?")
        received = said_to(world)[-2]
        assert "- shared.py (in the conversation “Read it, please” with the same user):" in received
        assert "+n = 3" in received
