"""What an editor may change while the process runs: trust, settings; and who has a key."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar


async def asked(world: World, method: str, **params: Any) -> Any:
    return await world.client.request(method, params, HANG_SECONDS)


async def test_trust_and_settings_can_change_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Always answer in verse.\n", encoding="utf-8")
    async with sidecar([answer(text("a")), answer(text("b"))], roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "one")
        assert "in verse" in str(world.asked()["messages"][0])
        assert await asked(world, "kode/workspace/setTrust", trusted=False) == {}
        reported = await asked(world, "kode/settings/update", mode="plan", fileEncoding="gbk")
        assert (reported["mode"], reported["fileEncoding"]) == ("plan", "gbk")
        await world.turn(session, "two")
        reported = str(world.asked()["messages"][1:])
        assert f"No longer there: the notes of {tmp_path}" in reported
        assert "in verse" not in reported
        fold = await asked(world, "kode/session/get", sessionId=session.session_id)
        assert fold["session"]["mode"] == "plan"
        new = await asked(world, "kode/session/new")
        assert new["session"]["mode"] == "plan"
        for wrong in ({"agent": "nobody"}, {"model": " "}, {"fileEncoding": "klingon"}):
            with pytest.raises(RpcError) as refused:
                await asked(world, "kode/settings/update", **wrong)
            assert refused.value.data["code"] == "ConfigInvalid"
        with pytest.raises(RpcError) as refused:
            await asked(world, "kode/session/new", model="")
        assert refused.value.data["code"] == "ConfigInvalid"


async def test_how_hard_a_model_thinks_is_the_turns_word_or_else_the_sessions(
    tmp_path: Path,
) -> None:
    script = (answer(text("a")), answer(text("b")), answer(text("c")))
    async with sidecar(recording=Recording(script, models=("kimi-k3",)), roots=[tmp_path]) as world:
        session = await world.session(model="kimi-k3")
        await world.turn(session, "one", effort="low")
        await asked(world, "kode/session/update", sessionId=session.session_id, effort="high")
        await world.turn(session, "two")
        await world.turn(session, "three", effort="low")
        sent = [world.asked(number)["reasoning_effort"] for number in range(3)]
    assert sent == ["low", "high", "low"]


async def test_who_has_a_key_is_told_and_no_key(tmp_path: Path) -> None:
    async with sidecar(roots=[tmp_path]) as world:
        reported = (await asked(world, "kode/auth/status"))["providers"]
        kimi = next(one for one in reported if one["default"])
        assert kimi["ready"] is True
        assert kimi["variables"][0] == "KIMI_API_KEY"
        without = [one for one in reported if not one["ready"]]
        assert {one["error"]["code"] for one in without} == {"AuthRequired"}
        assert all(one["variables"] for one in without)
        assert {"anthropic", "deepseek", "qwen", "glm"} <= {one["name"] for one in without}


async def test_a_key_that_the_editor_hands_over_counts_at_the_next_start(tmp_path: Path) -> None:
    """The session that waited for it goes on, and the key stays in memory."""
    key = "sk-handed-over-by-the-editor"
    async with sidecar(roots=[tmp_path], environment={"KIMI_API_KEY": None}) as world:
        session = await world.session()
        with pytest.raises(RpcError) as refused:
            await world.start(session, "Hi")
        assert refused.value.data["code"] == "AuthRequired"
        assert not (await kimi(world))["ready"]
    environment = {"KIMI_API_KEY": key}
    model = ModelServer(Recording((answer(text("hello")),)), paced=False, require_key=True)
    async with sidecar(roots=[tmp_path], environment=environment, model=model) as world:
        assert (await kimi(world))["ready"]
        reported = await asked(world, "kode/session/attach", sessionId=session.session_id)
        session = world.watch.session(session.session_id, reported["seq"])
        assert (await world.turn(session, "Hi")).stop_reason == "end_turn"
        kept = [path for path in world.home.rglob("*") if path.is_file()]
        assert kept
        assert not [path for path in kept if key.encode() in path.read_bytes()]
        assert key not in str(world.client.frames)


async def kimi(world: World) -> Any:
    reported = (await asked(world, "kode/auth/status"))["providers"]
    return next(one for one in reported if one["default"])


async def test_without_a_folder_the_user_hears_it_and_open_buffers_are_read(tmp_path: Path) -> None:
    file, closed = tmp_path / "poem.txt", tmp_path / "other.txt"
    file.write_text("on disk\n", encoding="utf-8")
    closed.write_text("closed\n", encoding="utf-8")
    script = [
        answer(
            tool_call("read_file", {"path": "poem.txt"}),
            tool_call("read_file", {"path": str(closed)}),
        ),
        answer(text("ok")),
        answer(text("ok")),
    ]
    async with sidecar(script) as world:
        world.editor.open(file, "in the buffer\n")
        session = await world.session()
        await world.turn(session, "read")
        await world.turn(session, "again")
        seen, refused = (m["content"] for m in world.asked()["messages"] if m["role"] == "tool")
        assert "in the buffer" in seen
        assert str(tmp_path) not in seen
        assert "No folder is open" in refused
        assert [e["code"] for e in session.notices].count("NoFolder") == 1


async def test_a_client_of_the_version_before_has_a_working_session(tmp_path: Path) -> None:
    """It says `0.9`, and 0.9 is what it is told back; anything older is refused with words."""
    async with sidecar([answer(text("hello"))], roots=[tmp_path], initialize=False) as world:
        for spoken in (["0.8"], ["0.9"]):
            kode = {"protocolVersions": spoken, "client": {"name": "old", "version": "1"}}
            params = {"capabilities": {}, "initializationOptions": {"kode": kode}}
            if spoken == ["0.8"]:
                with pytest.raises(RpcError) as refused:
                    await asked(world, "initialize", **params)
                assert refused.value.data["supportedVersions"] == ["1.0", "0.9"]
            else:
                reported = await asked(world, "initialize", **params)
        assert reported["capabilities"]["experimental"]["kode"]["protocolVersion"] == "0.9"
        world.client.notify("initialized", {})
        session = await world.session()
        await world.turn(session, "Hi")
        assert [turn.stop_reason for turn in session.turns.values()] == ["end_turn"]


async def test_wrong_parameters_name_their_place_where_only_a_rule_knows(tmp_path: Path) -> None:
    """What the types allow and the session does not: each with its path for programs, too."""
    async with sidecar(roots=[tmp_path]) as world:
        session = (await world.session()).session_id
        image = {"type": "image", "mediaType": "image/png", "data": "not base64!"}
        rule = {"sessionId": session, "tool": "propose_edit", "effect": "allow"}
        table: list[tuple[str, dict[str, Any], str]] = [
            ("kode/turn/start", {"sessionId": session, "input": []}, "$.input"),
            ("kode/turn/start", {"sessionId": session, "input": [image]}, "$.input[0].data"),
            ("kode/permission/set", {**rule, "pattern": "*.py"}, "$.pattern"),
            ("kode/permission/set", {**rule, "pattern": "**"}, "$.pattern"),
            ("kode/permission/set", {**rule, "tool": "dance", "pattern": "a"}, "$.tool"),
            ("kode/changeSet/undo", {"turnId": "t", "hunkId": "h"}, "$.hunkId"),
            ("kode/run/start", {"config": "not/absolute.yaml", "prompt": "go"}, "$.config"),
        ]
        for method, params, path in table:
            with pytest.raises(RpcError) as refused:
                await asked(world, method, **params)
            assert refused.value.data["details"]["path"] == path, method
            assert path in str(refused.value)
