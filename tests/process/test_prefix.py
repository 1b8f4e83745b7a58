"""The beginning of a session's requests never changes: what changes is told where it changes."""

import json
import os
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import TokenUsage, answer, text
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.skill_files import write_skill

FIXED = "kimi-k2.6"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Use tabs.\n", "utf-8")
    return folder


def notices(world: World) -> list[str]:
    return [one["message"] for one in world.events() if one.get("code") == "ReadAnew"]


def texts(body: Mapping[str, Any]) -> list[str]:
    return [str(message.get("content")) for message in body["messages"]]


async def opened(world: World, session_id: str) -> SessionFold:
    params = {"sessionId": session_id}
    attached = await world.client.request("kode/session/attach", params, HANG_SECONDS)
    return world.watch.session(session_id, attached["seq"])


def check_grows(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Assert that a host finds all of an earlier request in its cache."""
    assert json.dumps(new["tools"]) == json.dumps(old["tools"])
    count = len(old["messages"])
    assert json.dumps(new["messages"][:count]) == json.dumps(old["messages"])


class Life:
    """One session in several processes; `bodies` are all requests."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._session_id = ""
        self.bodies: list[dict[str, Any]] = []
        self.notices: list[str] = []

    async def turn(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        handshake: Mapping[str, Any] | None = None,
        **turn: Any,
    ) -> None:
        script = [answer(text("好"), usage=TokenUsage(prompt=9_000, completion=10))]
        about = {"trusted": True, **(handshake or {})}
        async with sidecar(
            script, roots=[self._project], environment=environment, handshake=about
        ) as world:
            if self._session_id:
                session = await opened(world, self._session_id)
            else:
                session = await world.session(agent="coder", model=FIXED)
                self._session_id = session.session_id
            await self._go(world, session, turn)
            self.bodies.append(world.asked())
            self.notices += notices(world)

    async def _go(self, world: World, session: SessionFold, turn: dict[str, Any]) -> None:
        ended = await world.turn(session, f"prompt {len(self.bodies)}", **turn)
        assert ended.stop_reason == "end_turn"


async def test_no_change_of_the_surroundings_changes_what_was_sent(project: Path) -> None:
    life = Life(project)
    await life.turn(mode="plan")
    await life.turn(mode="auto")
    await life.turn(mode="auto")
    (project / "AGENTS.md").write_text("Use blanks 空格.\n", "utf-8")
    await life.turn(mode="auto", environment={"KODE_LOCALE": "en"})
    await life.turn(mode="review", handshake={"trusted": False})
    for old, new in pairwise(life.bodies):
        check_grows(old, new)
    assert life.notices == []
    reported = texts(life.bodies[-1])[1:]
    assert [sum(word in one for one in reported) for word in ("空格", "No longer there")] == [1, 1]
    assert "the notes of" in next(one for one in reported if "No longer there" in one)
    sizes = [len(body["messages"]) for body in life.bodies]
    assert sizes[2] - sizes[1] == 2, "an answer and a prompt, for nothing changed"


async def test_a_copy_begins_as_the_original(project: Path) -> None:
    script = [answer(text("好"))] * 3
    async with sidecar(script, roots=[project], handshake={"trusted": True}) as world:
        session = await world.session(agent="coder", model=FIXED)
        await world.turn(session, "one")
        (project / "AGENTS.md").write_text("Else.\n", "utf-8")
        params = {"sessionId": session.session_id}
        copy = await world.client.request("kode/session/fork", params, HANG_SECONDS)
        await world.turn(await opened(world, copy["sessionId"]), "two", mode="plan")
        check_grows(world.asked(0), world.asked(1))
        assert any("Else." in one for one in texts(world.asked(1))[1:])


async def test_a_damaged_prefix_ends_nothing(project: Path) -> None:
    life = Life(project)
    await life.turn()
    (saved,) = Path(os.environ["KODE_HOME"]).rglob("prefix.json")
    saved.write_bytes(b'{"version": 1')
    await life.turn()
    check_grows(*life.bodies)


async def test_a_model_that_changes_is_announced_with_its_price(project: Path) -> None:
    script = [answer(text("好"), usage=TokenUsage(prompt=9_000, completion=10))] * 3
    async with sidecar(script, roots=[project]) as world:
        session = await world.session(agent="coder", model=FIXED)
        await world.turn(session, "one")
        params = {"sessionId": session.session_id, "model": "kimi-k3"}
        await world.client.request("kode/session/update", params, HANG_SECONDS)
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        (reported,) = notices(world)
        found = re.fullmatch(
            r"The model is now kimi-k3, so its host reads about ([\d,]+) tokens of this "
            r"conversation anew, for about (0\.\d+) USD instead of (0\.\d+)\.",
            reported,
        )
        assert found is not None
        tokens = int(found[1].replace(",", ""))
        assert 9_000 <= tokens < 9_600
        assert float(found[2]) == pytest.approx(tokens * 3.00 / 1e6, abs=1e-4)
        assert float(found[3]) == pytest.approx(tokens * 0.30 / 1e6, abs=1e-4)
        await world.turn(session, "two")
        assert len(notices(world)) == 1, "once"
        await world.turn(session, "three", model=FIXED)
        assert len(notices(world)) == 2


async def test_the_skills_of_a_session_that_began_with_some_may_change(project: Path) -> None:
    skills = Path(os.environ["KODE_HOME"]) / "skills"
    write_skill(skills, "first", "One.\n")
    life = Life(project)
    await life.turn()
    write_skill(skills, "second", "Two.\n")
    await life.turn()
    check_grows(*life.bodies)
    assert any("`second`" in one for one in texts(life.bodies[1])[1:])
    assert life.notices == []


async def test_the_window_of_the_helper_is_told_once(project: Path) -> None:
    script = [answer(text(f"answer {n}")) for n in range(14)]
    async with sidecar(script, roots=[project]) as world:
        session = await world.session(agent="ide-helper", model=FIXED)
        for n in range(14):
            await world.turn(session, f"prompt {n}")
        (reported,) = notices(world)
        assert reported.startswith("Older messages are no longer sent")
        assert len(world.asked()["messages"]) == 22, (
            "twenty, the system prompt, and the one before an answer"
        )
