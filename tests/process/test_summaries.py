"""Summaries over the real process: the user's words stay, and not every answer counts."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.support.kimi_rules import refusals
from tests.support.model_script import TokenUsage, answer, failure, text, thinking, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

WINDOW = 16_000
SMALL = {"KODE_CONTEXT_WINDOW": str(WINDOW)}
FULL = TokenUsage(prompt=15_500, completion=20)
HALF = TokenUsage(prompt=7_000, completion=20)
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目"
    folder.mkdir()
    for n in range(12):
        (folder / f"f{n}.txt").write_text("".join(f"{n} {i} words\n" for i in range(700)), "utf-8")
    return folder


def read(n: int, usage: TokenUsage = HALF) -> RecordedResponse:
    return answer(tool_call("read_file", {"path": f"f{n}.txt"}), usage=usage)


def summary(n: int) -> RecordedResponse:
    return answer(text(f"# Task\nsummary {n}"), usage=TokenUsage(prompt=15_000, completion=10))


def bodies(world: World) -> list[dict[str, Any]]:
    found = [chat.body for chat in world.model.chats]
    assert [why for body in found for why in refusals(body)] == []
    return found


def compactions(world: World) -> list[dict[str, Any]]:
    return [one for one in world.events() if one["type"] == "context.compacted"]


def codes(world: World) -> list[str]:
    return [one["code"] for one in world.events() if one["type"] == "notice"]


def is_question(body: dict[str, Any]) -> bool:
    return body.get("tool_choice") == "none" and "Write a summary" in json.dumps(
        body["messages"][-1]
    )


async def test_the_task_survives_every_summary_word_for_word(project: Path) -> None:
    task = "Find “the needle” 针 in all files. " + "Mind the details. " * 30
    script: list[RecordedResponse] = []
    for n in range(4):
        script += [read(2 * n), read(2 * n + 1, FULL), summary(n)]
    script += [answer(text("done"))]
    note = {"type": "resource", "uri": "file:///spec.md", "text": "attached 附件 text"}
    prompt = [{"type": "text", "text": task}, note]
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        params = {"sessionId": session.session_id, "input": prompt}
        started = await world.client.request("kode/turn/start", params, HANG_SECONDS)
        turn = await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert len(compactions(world)) >= 3
        sent = bodies(world)
    for body in sent:
        whole = json.dumps(body["messages"], ensure_ascii=False)
        assert task in json.loads(json.dumps(whole))
        assert "attached 附件 text" in whole
        assert whole.count("attached 附件 text") == 1


async def test_steering_and_older_prompts_stay_until_there_is_no_room(project: Path) -> None:
    script = [answer(text("a " * 400)), answer(text("b " * 400), usage=FULL), summary(0)]
    script += [answer(text("c"), usage=HALF)]
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        await world.turn(session, "old " * 6_000)
        await world.turn(session, "remember: blue")
        await world.turn(session, "go on")
        (reported,) = compactions(world)
        last = [str(message["content"]) for message in bodies(world)[-1]["messages"]]
        assert "remember: blue" in last
        assert not any("old old" in one for one in last)
        assert codes(world).count("LeftOut") == 1
        left_out = next(one for one in world.events() if one.get("code") == "LeftOut")
        assert left_out["message"].startswith("1 older messages of yours are only in the summary")
        assert reported["tokensAfter"] < WINDOW


CUT = answer(text("# Task\nhalf of"), finish="length")
BESIDE = answer(text("I will look first."), tool_call("read_file", {"path": "f0.txt"}))
BAD = {
    "cut": CUT,
    "filtered": answer(text("The user wants"), finish="content_filter"),
    "beside a call": BESIDE,
    "refused": answer(text("I'm sorry, but I can't help with that.")),
    "refused in Chinese": answer(text("抱歉，我无法完成这个请求。")),
    "only thoughts": answer(thinking("hm")),
    "too long": answer(text("long " * 30_000)),
}


@pytest.mark.parametrize("kind", BAD)
async def test_an_answer_that_is_no_summary_replaces_nothing(project: Path, kind: str) -> None:
    script = [read(0), read(1), answer(text("read"), usage=FULL)]
    script += [BAD[kind], summary(1), answer(text("on"), usage=HALF)]
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        await world.turn(session, "read")
        turn = await world.turn(session, "go on")
        assert turn.stop_reason == "end_turn"
        questions = [body for body in bodies(world) if is_question(body)]
        assert len(questions) == 2
        less = len(json.dumps(questions[1])) < len(json.dumps(questions[0]))
        assert less or kind == "only thoughts", "the client itself asks once more for those"
        (stored,) = [m for m in world.messages(session) if "compaction" in str(m["meta"])]
        assert "summary 1" in stored["content"][0]["text"]
        assert len(compactions(world)) == 1


async def test_a_host_that_never_sums_up_is_not_asked_each_turn(project: Path) -> None:
    script = [read(0), read(1), answer(text("read"), usage=FULL), CUT, CUT, CUT]
    script += [answer(text(f"turn {n}"), usage=FULL) for n in range(8)]
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        await world.turn(session, "read")
        for n in range(8):
            turn = await world.turn(session, f"prompt {n}")
            assert turn.stop_reason == "end_turn"
        assert sum(map(is_question, bodies(world))) <= 3
        assert compactions(world) == []
        assert codes(world).count("CompactionFailed") == 1


async def test_pictures_are_not_read_again_for_a_summary(project: Path) -> None:
    script = [answer(text("seen")), answer(text("more"), usage=FULL), summary(0)]
    script += [answer(text("on"), usage=HALF)]
    image = {"type": "image", "mediaType": "image/png", "data": PIXEL}
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        prompt = [{"type": "text", "text": "look"}, image]
        params = {"sessionId": session.session_id, "input": prompt}
        started = await world.client.request("kode/turn/start", params, HANG_SECONDS)
        await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)
        await world.turn(session, "two " * 500)
        await world.turn(session, "three")
        (question,) = [body for body in bodies(world) if is_question(body)]
        assert "image_url" not in json.dumps(question)
        assert "[a picture: image/png]" in json.dumps(question)


async def test_a_failed_summary_is_paid_for(project: Path) -> None:
    spent = TokenUsage(prompt=15_000, completion=1_000)
    bad = answer(text("# Task\nhalf"), finish="length", usage=spent)
    script = [read(0), read(1), answer(text("read"), usage=FULL), bad, bad]
    script += [failure(400, "invalid_request_error", "no"), answer(text("on"), usage=HALF)]
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        await world.turn(session, "read")
        turn = await world.turn(session, "go on")
        assert turn.result["usage"]["inputTokens"] == 2 * 15_000 + 7_000
        stored = world.messages(session)[-1]
        assert stored["lost"]["usage"]["input_tokens"] == 2 * 15_000, "and not forgotten"


async def test_the_numbers_told_are_those_of_the_next_request(project: Path) -> None:
    script = [read(0), read(1), answer(text("read"), usage=FULL), summary(0)]
    script += [answer(text("on"), usage=HALF)]
    async with sidecar(script, roots=[project], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        await world.turn(session, "read", mode="plan")
        params = {"sessionId": session.session_id}
        reported = await world.client.request("kode/context/compact", params, HANG_SECONDS)
        shown = await world.client.request(
            "kode/context/inspect", {**params, "mode": "plan"}, HANG_SECONDS
        )
        assert abs(shown["tokens"] - reported["tokensAfter"]) <= 0.02 * shown["tokens"] + 120
