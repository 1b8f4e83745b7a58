"""`kode/editor/didChangeContext`: what the model is told of what the user looks at."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import answer, text
from tests.support.sidecar import HANG_SECONDS, World, sidecar


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    for name in ("a.py", "b.py", ".env"):
        (folder / "src" / name).write_text("x = 1\n" * 9, encoding="utf-8")
    (tmp_path / "outside.py").write_text("secret\n", encoding="utf-8")
    return folder


def look(world: World, path: Path | None, first: tuple[int, int], last: tuple[int, int]) -> None:
    selection = {
        "start": {"line": first[0], "character": first[1]},
        "end": {"line": last[0], "character": last[1]},
    }
    params: dict[str, Any] = {"selection": selection, "visibleRange": selection}
    world.client.notify(
        "kode/editor/didChangeContext", params | {"uri": path.as_uri() if path else None}
    )


async def test_the_next_prompt_tells_it_once(project: Path) -> None:
    async with sidecar([answer(text("ok"))] * 5, roots=[project]) as world:
        session = await world.session()
        look(world, project / "src" / "a.py", (2, 0), (5, 0))
        await world.turn(session, "one")
        await world.turn(session, "two")
        look(world, project / "src" / "a.py", (7, 3), (7, 9))
        await world.turn(session, "three")
        look(world, project / "src" / "b.py", (1, 1), (1, 1))
        await world.turn(session, "four")
        look(world, None, (0, 0), (0, 0))
        await world.turn(session, "five")
        assert [m["content"] for m in world.asked()["messages"] if m["role"] == "user"] == [
            "The user looks at src/a.py in the editor; lines 3 to 5 are selected.",
            "one",
            "two",
            "The user looks at src/a.py in the editor; line 8 is selected.",
            "three",
            "The user looks at src/b.py in the editor.",
            "four",
            "five",
        ]
        first = world.messages(session)[0]
        assert first["meta"]["origin"] == "reminder"
        assert first["meta"]["editorContext"] == {
            "path": "src/a.py",
            "startLine": 3,
            "endLine": 5,
        }
        meta = await world.client.request(
            "kode/session/get", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert meta["session"]["title"] == "one"


# W11 W13
async def test_nothing_is_said_of_files_outside_or_with_credentials(
    project: Path, tmp_path: Path
) -> None:
    link = project / "link.py"
    try:
        link.symlink_to(tmp_path / "outside.py")
    except OSError:
        link.write_text("", encoding="utf-8")
    places = [tmp_path / "outside.py", project / ".." / "outside.py", project / "src" / ".env"]
    places += [link] if link.is_symlink() else []
    odd = ["untitled:Untitled-1", "git:/a.py", "src/a.py", "file:", "file:///%00", "file://h/a\n"]
    responses = [answer(text("ok"))] * (len(places) + len(odd) + 1)
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        for place in places:
            look(world, place, (0, 0), (1, 0))
            await world.turn(session, "p")
        for uri in odd:
            world.client.notify("kode/editor/didChangeContext", {"uri": uri})
            await world.turn(session, "p")
        # A notification that cannot be read changes nothing, and a negative line harms nobody.
        world.client.notify("kode/editor/didChangeContext", {"uri": 7})
        look(world, project / "src" / "a\u0085.py", (-9, 0), (-5, 0))
        await world.turn(session, "p")
        said = [m["content"][0]["text"] for m in world.messages(session) if m["role"] == "user"]
        reported = [text for text in said if text != "p"]
        assert reported == ["The user looks at src/a.py in the editor; line 1 is selected."]


async def test_a_branch_that_was_not_told_is_told(project: Path) -> None:
    async with sidecar([answer(text("ok"))] * 3, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "before")
        look(world, project / "src" / "a.py", (0, 0), (0, 0))
        await world.turn(session, "told")
        await world.turn(session, "elsewhere", parentId=None)
        said = [m["content"] for m in world.asked()["messages"] if m["role"] == "user"]
        assert said == ["The user looks at src/a.py in the editor.", "elsewhere"]
