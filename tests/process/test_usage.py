"""`kode/usage/get`: tokens and cost over messages, turns, sessions, days and models."""

import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.infrastructure.records.messages import StorageName
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.kept_messages import read_messages, write_records
from tests.support.model_script import TokenUsage, answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]
SPENT = TokenUsage(prompt=1_000, completion=200, cached=600, reasoning=50)


async def ask(world: World, method: str, **params: Any) -> Json:
    return await world.client.request(f"kode/{method}", params, HANG_SECONDS)


def brief(row: Json, *keys: str) -> tuple[Any, ...]:
    return (*(row.get(key) for key in keys), row["answers"], row["usage"]["inputTokens"])


@pytest.fixture
async def two_sessions(tmp_path: Path, storage: StorageName) -> tuple[Path, list[str]]:
    """What an earlier process left: its state folder and the ids of its sessions."""
    del storage  # its processes have it from the environment
    responses = [
        answer(tool_call("list_files", {"directory": "."}), usage=SPENT),
        answer(text("a"), usage=SPENT),
        answer(text("b"), usage=SPENT),
        answer(text("c"), usage=SPENT, model="kimi-k2.5"),
    ]
    async with sidecar(responses, roots=[tmp_path]) as world:
        first = await world.session(model="kimi-k2.6")
        await world.turn(first, "one")
        await world.turn(first, "two")
        second = await world.session(model="kimi-k2.6")
        await world.turn(second, "three")
        await world.client.close(HANG_SECONDS)
        return world.home, [first.session_id, second.session_id]


# C5
async def test_what_earlier_processes_used_is_summed_up(
    two_sessions: tuple[Path, list[str]], tmp_path: Path
) -> None:
    home, ids = two_sessions
    shift_to_day(home, ids[1], "2026-01-31T23:30:00.000Z")
    async with sidecar(roots=[tmp_path], environment={"KODE_HOME": str(home)}) as world:
        result = await ask(world, "usage/get", by=["session"])
        assert sorted(brief(row, "sessionId") for row in result["rows"]) == sorted(
            [(ids[0], 3, 3_000), (ids[1], 1, 1_000)]
        )
        total = result["total"]
        assert total["usage"] == {
            "inputTokens": 4_000,
            "outputTokens": 800,
            "totalTokens": 4_800,
            "cachedTokens": 2_400,
            "cacheWriteTokens": 0,
            "reasoningTokens": 200,
        }
        # Per million: 0.95 fresh, 0.16 cached, 4.00 out.
        one = (400 * 0.95 + 600 * 0.16 + 200 * 4.00) / 1_000_000
        assert total["costUsd"] == pytest.approx(4 * one)
        assert total["costs"] == [{"amount": pytest.approx(4 * one), "currency": "USD"}]

        turns = await ask(world, "usage/get", sessionId=ids[0], by=["turn"])
        assert sorted(row["answers"] for row in turns["rows"]) == [1, 2]
        messages = await ask(world, "usage/get", sessionId=ids[0], by=["message"])
        assert [row["answers"] for row in messages["rows"]] == [1, 1, 1]
        models = await ask(world, "usage/get", by=["model"])
        assert [brief(row, "model") for row in models["rows"]] == [
            ("kimi-k2.5", 1, 1_000),
            ("kimi-k2.6", 3, 3_000),
        ]

        days = await ask(world, "usage/get", until="2026-01-31")
        assert [brief(row, "day", "model") for row in days["rows"]] == [
            ("2026-01-31", "kimi-k2.5", 1, 1_000)
        ]
        ahead = {"utcOffsetMinutes": 480, "by": ["day"], "until": "2026-02-01"}
        days = await ask(world, "usage/get", since="2026-02-01", **ahead)
        assert [brief(row, "day") for row in days["rows"]] == [("2026-02-01", 1, 1_000)]
        later = await ask(world, "usage/get", since="2026-02-02", by=["session"])
        assert [row["sessionId"] for row in later["rows"]] == [ids[0]]
        assert (await ask(world, "usage/get", by=[]))["rows"][0]["answers"] == 4


async def test_wrong_questions_name_their_path(tmp_path: Path) -> None:
    async with sidecar(roots=[tmp_path]) as world:
        empty = await ask(world, "usage/get")
        assert (empty["rows"], empty["total"]["answers"]) == ([], 0)
        for params, path in (
            ({"since": "2026-1-1"}, "$.since"),
            ({"until": "2026-02-30"}, "$.until"),
            ({"utcOffsetMinutes": 900}, "$.utcOffsetMinutes"),
            ({"by": ["week"]}, "$.by[0]"),
        ):
            with pytest.raises(RpcError) as caught:
                await ask(world, "usage/get", **params)
            assert caught.value.code == -32602
            assert caught.value.data["details"]["path"] == path
        with pytest.raises(RpcError) as caught:
            await ask(world, "usage/get", sessionId="none")
        assert caught.value.code == -33001


def shift_to_day(home: Path, session_id: str, moment: str) -> None:
    """Let a session have happened at another time, with a damaged line in it."""
    folder = home / "conversations" / session_id
    records = [record | {"created_at": moment} for record in read_messages(folder)]
    kept = [json.dumps(record).encode() for record in records]
    write_records(folder, [*kept, b'{"usage": {"torn'])
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps(meta | {"updated_at": moment}), "utf-8")


async def test_a_stopped_turn_counts_what_its_host_charges_for(tmp_path: Path) -> None:
    words = "one two three four five "
    script = [answer(text(words * 20), hold("ever"), text("never")), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session(model="kimi-k2.6")
        turn_id = await world.start(session, "count")
        await world.watch.until(
            lambda: any(block.text == words * 20 for block in session.blocks.values()),
            HANG_SECONDS,
        )
        await ask(world, "turn/cancel", sessionId=session.session_id)
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert turn.result["estimated"] is True
        assert turn.result["usage"]["inputTokens"] > 100
        assert turn.result["usage"]["outputTokens"] == round(len(words) * 20 * 0.3)
        assert turn.result["cost"]["amount"] > 0
        (end,) = [one for one in world.events() if "lost" in one]
        assert (end["type"], end["lost"]["estimated"]) == ("message.completed", True)
        result = await ask(world, "usage/get", by=["session"])
        assert result["total"]["usage"]["totalTokens"] == turn.result["usage"]["totalTokens"]
        turn = await world.turn(session, "go on")
        assert "estimated" not in turn.result
