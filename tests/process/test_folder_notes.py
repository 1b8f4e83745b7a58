"""Notes of folders: they reach the model once, with the result that first touches the folder."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

_INNER = "Name tests after 句子 in here."
_OUTER = "Indent with tabs below src."


def read(path: str) -> Any:
    return tool_call("read_file", {"path": path})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    inner = tmp_path / "project" / "src" / "inner"
    inner.mkdir(parents=True)
    (inner / "AGENTS.md").write_text(f"{_INNER}\n", "utf-8")
    (inner.parent / "CLAUDE.md").write_text(f"{_OUTER}\n", "utf-8")
    for name in ("a.py", "b.py"):
        (inner / name).write_text(f"{name} = 1\n", "utf-8")
    return tmp_path / "project"


def results(world: World) -> list[str]:
    """The results of tools in the newest request."""
    return [one["content"] for one in world.asked()["messages"] if one["role"] == "tool"]


def times_said(world: World) -> list[int]:
    whole = "\n".join(results(world))
    return [whole.count(words) for words in (_OUTER, _INNER)]


async def test_they_come_once_with_the_first_result_and_anew_when_changed(project: Path) -> None:
    both = answer(read("src/inner/a.py"), read("src/inner/b.py"))
    script = [both, answer(text("1")), answer(read("src/inner/a.py")), answer(text("2"))]
    again = [answer(read("src/inner/b.py")), answer(text("3"))]
    async with sidecar([*script, *again], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "one")
        first, second = results(world)
        assert first.index(_OUTER) < first.index(_INNER) < first.index("a.py = 1")
        assert (_OUTER in second, _INNER in second, "b.py = 1" in second) == (False, False, True)
        assert _INNER not in str(world.asked()["messages"][0]), "what a host has cached stays"
        await world.turn(session, "two")
        assert times_said(world) == [1, 1]
        (project / "src/inner/AGENTS.md").write_text("Sing.\n", "utf-8")
        await world.turn(session, "three")
        assert times_said(world) == [1, 1]
        assert results(world)[-1].count("Sing.") == 1


async def test_a_session_that_is_opened_again_knows_what_it_was_given(project: Path) -> None:
    script = [answer(read("src/inner/a.py")), answer(text("1"))]
    async with sidecar(script, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "one")
        home = {"KODE_HOME": str(world.home)}
        await world.client.close(HANG_SECONDS)
    script = [answer(read("src/inner/b.py")), answer(text("2"))]
    async with sidecar(script, roots=[project], environment=home) as world:
        params = {"sessionId": session.session_id}
        reported = await world.client.request("kode/session/attach", params, HANG_SECONDS)
        await world.turn(world.watch.session(session.session_id, reported["seq"]), "two")
        assert times_said(world) == [1, 1]
        assert "b.py = 1" in results(world)[-1]


async def test_folders_that_are_not_trusted_say_nothing(project: Path) -> None:
    script = [answer(read("src/inner/a.py")), answer(text("1"))]
    async with sidecar(script, roots=[project], handshake={"trusted": False}) as world:
        session = await world.session()
        await world.turn(session, "one")
        assert times_said(world) == [0, 0]
        assert "a.py = 1" in results(world)[0]
