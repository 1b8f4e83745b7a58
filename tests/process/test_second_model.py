"""A second model: scouts and summaries ask it, and fall back on the session's with a reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import Recording
from tests.support.model_script import answer, failure, text
from tests.support.scout_model import explore, is_scout, read, report, scout_model
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

OWN, OTHER = "kimi-k2.6", "kimi-k2.7-code"
_NO_KEY = "{base_url: 'http://127.0.0.1:9/v1', api_key_env: [NOBODY_HAS_THIS_KEY]}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("import os\n", "utf-8")
    return folder


def settings(folder: Path, models: str) -> Mapping[str, str]:
    """A config that names models for tasks, and a provider without a key."""
    file = folder / "config.yaml"
    file.write_text(f"models: {models}\nproviders: {{keyless: {_NO_KEY}}}\n", "utf-8")
    return {"KODE_CONFIG": str(file), "KODE_LOCALE": "en"}


def reasons(world: World, session: SessionFold) -> list[str]:
    events = world.journal(session)
    return [one["message"] for one in events if one.get("code") == "OtherModelTaken"]


async def explored(world: World) -> tuple[SessionFold, Mapping[bool, set[str]]]:
    """Run a turn with a scout; the models that scouts (True) and the main agent were asked by."""
    session = await world.session(model=OWN)
    turn = await world.turn(session, "look")
    assert turn.stop_reason == "end_turn"
    asked: dict[bool, set[str]] = {True: set(), False: set()}
    for chat in world.model.chats:
        asked[is_scout(chat.body)].add(chat.body["model"])
    return session, asked


def looking() -> Any:
    main = [answer(explore("one")), answer(text("Now I know."))]
    return scout_model(main, {"one": [answer(read()), answer(report("it is there"))]}, (OWN, OTHER))


async def test_scouts_ask_the_model_that_the_settings_name(tmp_path: Path, project: Path) -> None:
    environment = settings(tmp_path, f"{{scouts: {OTHER}}}")
    async with sidecar(roots=[project], environment=environment, model=looking()) as world:
        session, asked = await explored(world)
        assert asked == {True: {OTHER}, False: {OWN}}
        assert reasons(world, session) == []


async def test_scouts_whose_model_has_no_key_ask_the_sessions(
    tmp_path: Path, project: Path
) -> None:
    environment = settings(tmp_path, "{scouts: keyless/small}")
    async with sidecar(roots=[project], environment=environment, model=looking()) as world:
        session, asked = await explored(world)
        assert asked == {True: {OWN}, False: {OWN}}
        (reason,) = reasons(world, session)
        assert "keyless/small cannot be asked" in reason
        assert "NOBODY_HAS_THIS_KEY" in reason


@pytest.mark.parametrize("works", [True, False])
async def test_summaries_ask_their_model_and_then_the_sessions(
    tmp_path: Path, project: Path, works: bool
) -> None:
    refused = failure(400, "invalid_request_error", "this model takes no such request")
    summaries = [answer(text("the gist"))] if works else [refused, answer(text("the gist"))]
    script = [answer(text("a " * 600)), answer(text("b")), *summaries]
    environment = settings(tmp_path, f"{{summaries: {OTHER}}}")
    recording = Recording(tuple(script), models=(OWN, OTHER))
    async with sidecar(recording=recording, roots=[project], environment=environment) as world:
        session = await world.session(model=OWN)
        await world.turn(session, "one")
        await world.turn(session, "two")
        target = {"sessionId": session.session_id}
        await world.client.request("kode/context/compact", target, HANG_SECONDS)
        asked = [chat.body["model"] for chat in world.model.chats]
        assert asked == [OWN, OWN, OTHER] if works else [OWN, OWN, OTHER, OWN]
        found = reasons(world, session)
        assert len(found) == (0 if works else 1)
        assert all(f"{OTHER} did not sum up" in one for one in found)
        stored = world.messages(session)
        (summary,) = [one for one in stored if one["meta"].get("origin") == "compaction"]
        assert "the gist" in str(summary["content"])
