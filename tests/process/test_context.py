"""The model's window over the real process: summing up, undoing it, and the exact next request."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.fsync_gate import FsyncGate
from tests.support.kimi_rules import refusals
from tests.support.model_script import (
    TokenUsage,
    answer,
    failure,
    hold,
    text,
    thinking,
    tool_call,
)
from tests.support.program import BUILT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]
WINDOW = 20_000
SMALL = {"KODE_CONTEXT_WINDOW": str(WINDOW), "KODE_LOCALE": "en"}
CODER = {"agent": "coder", "model": "kimi-k2.6"}
NEARLY_FULL = TokenUsage(prompt=18_500, completion=100)
OVERFLOW = failure(
    400,
    "invalid_request_error",
    "Invalid request: Your request exceeded model token limit : 262144 (requested: 270000)",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "long.py").write_text("value = 'wert'  # 值\n" * 400, encoding="utf-8")
    return folder


async def ask(world: World, method: str, **params: Any) -> Json:
    return await world.client.request(f"kode/{method}", params, HANG_SECONDS)


async def refused(world: World, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await ask(world, method, **params)
    return caught.value


async def inspect(world: World, session: SessionFold, prompt: str = "", **params: Any) -> Json:
    content = [{"type": "text", "text": prompt}] if prompt else []
    params = {"sessionId": session.session_id, "input": content, "body": True, **params}
    return await ask(world, "context/inspect", **params)


def events(world: World, session: SessionFold, kind: str) -> list[Json]:
    return [event for event in world.journal(session) if event["type"] == kind]


def last_text(session: SessionFold) -> str:
    return list(session.messages.values())[-1].text


def said(body: Mapping[str, Any]) -> list[str]:
    return [message.get("content", "") for message in body["messages"]]


async def test_inspect_shows_the_very_bytes_that_are_sent_next(project: Path) -> None:  # C10
    responses = [
        answer(thinking("hm"), tool_call("read_file", {"path": "long.py"})),
        answer(text("It has 400 lines."), usage=TokenUsage(prompt=9_000, completion=50)),
        answer(text("第二")),
        answer(text("third")),
    ]
    async with sidecar(responses, roots=[project], handshake={"trusted": True}) as world:
        (project / "AGENTS.md").write_text("Use tabs.\n", encoding="utf-8")
        session = await world.session(**CODER)
        shown = await inspect(world, session, "read long.py")
        assert "counted" not in shown
        await world.turn(session, "read long.py")
        assert world.model.chats[0].data.decode() == shown["body"]

        options = {"koding": True, "kodingContext": "Chapter 风格"}
        shown = await inspect(world, session, "写下来", mode="plan", options=options)
        await world.turn(session, "写下来", mode="plan", options=options)
        sent = world.model.chats[2].data
        assert sent.decode() == shown["body"]
        assert (shown["bytes"], shown["sha256"]) == (len(sent), hashlib.sha256(sent).hexdigest())
        assert shown["model"] == "kimi-k2.6"
        assert (shown["window"], shown["fits"]) == (262_144, True)
        parts = shown["segments"]
        origins = [part["origin"] for part in parts]
        history = ["system", "tools", "prompt", "answer", "result", "answer"]
        assert origins == [*history, "reminder", "reminder", "prompt"]  # the mode comes first
        assert sum(part["tokens"] for part in parts) == shown["tokens"]
        # The host has counted all up to its last answer, which a changed mode leaves alone.
        assert [part.get("counted", False) for part in parts] == [True] * 6 + [False] * 3
        assert 9_050 < shown["tokens"] < 9_500
        written = [message["id"] for message in world.messages(session)][:4]
        assert [part["messageId"] for part in parts[2:6]] == written

        branch = {"parentId": written[0]}
        shown = await inspect(world, session, "again", **branch)
        await world.turn(session, "again", **branch)
        assert world.model.chats[3].data.decode() == shown["body"]


async def test_inspect_of_a_running_turn_shows_its_next_step(project: Path) -> None:
    responses = [
        answer(text("wait"), hold("steered"), text(" for it")),
        answer(text("done")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(**CODER)
        turn_id = await world.start(session, "go")
        await world.model.reached("steered")
        await ask(
            world,
            "turn/steer",
            sessionId=session.session_id,
            turnId=turn_id,
            input=[{"type": "text", "text": "faster"}],
        )
        shown = await inspect(world, session)
        assert [part["origin"] for part in shown["segments"]][2:] == ["prompt", "steer"]
        world.model.release("steered")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)


# C11: once at 92 %, a valid request after it, undone byte for byte
async def test_history_is_summed_up_once_when_the_window_is_nearly_full(project: Path) -> None:
    responses = [
        answer(text("one " * 3_000), usage=TokenUsage(prompt=9_000, completion=3_000)),
        answer(thinking("?"), tool_call("list_files", {"directory": "."}), usage=NEARLY_FULL),
        answer(text("# Task\nlist and report"), usage=TokenUsage(prompt=18_700, completion=20)),
        answer(tool_call("list_files", {"directory": "."}), usage=TokenUsage(prompt=5_000)),
        answer(text("two"), usage=TokenUsage(prompt=5_200)),
        answer(text("three")),
    ]
    async with sidecar(responses, roots=[project], environment=SMALL) as world:
        session = await world.session(**CODER)
        await world.turn(session, "talk a lot")
        turn = await world.turn(session, "now list the files")
        assert turn.stop_reason == "end_turn"
        (reported,) = events(world, session, "context.compacted")
        for request in world.model.chats:
            assert refusals(request.body) == []

        # The question for a summary begins as the last request did: hosts have that cached.
        before, question, after = (world.model.chats[at].body for at in (1, 2, 3))
        assert question["messages"][: len(before["messages"])] == before["messages"]
        assert question["tools"] == before["tools"]
        assert question["tool_choice"] == "none"
        assert "Write a summary" in said(question)[-1]

        assert said(after)[1].endswith("# Task\nlist and report")
        assert not any(content.startswith("one one") for content in said(after))
        # What is newest is kept as it was, from the prompt on.
        assert after["messages"][3:] == question["messages"][3:-1]
        assert said(after)[2] == "talk a lot", "no model stands between the user's words and it"
        assert reported["droppedMessages"] == 1
        assert reported["tokensBefore"] >= 0.92 * WINDOW > reported["tokensAfter"]

        written = world.messages(session)
        roles = " ".join(message["role"] for message in written)
        assert roles == "user assistant user assistant tool user assistant tool assistant"
        summary = written[5]
        assert summary["id"] == reported["summaryMessageId"]
        assert summary["meta"]["origin"] == "compaction"
        assert summary["parent_id"] == written[4]["id"]
        assert summary["usage"]["input_tokens"] == 18_700
        assert turn.result["usage"]["inputTokens"] == 18_500 + 18_700 + 5_000 + 5_200

        # The next turn starts with the summary, too, and asks for no other.
        await world.turn(session, "and now?")
        assert said(world.asked())[1] == said(after)[1]
        assert len(events(world, session, "context.compacted")) == 1


async def test_a_summary_is_undone_by_moving_the_head(project: Path) -> None:  # C11
    responses = [
        answer(text("one"), usage=TokenUsage(prompt=3_000, completion=10)),
        answer(text("two"), usage=NEARLY_FULL),
        answer(text("all in short")),
        answer(text("three"), usage=TokenUsage(prompt=3_000, completion=10)),
        answer(text("four")),
    ]
    async with sidecar(responses, roots=[project], environment=SMALL) as world:
        session = await world.session(**CODER)
        for prompt in ("first " * 900, "second"):
            await world.turn(session, prompt)
        whole = await inspect(world, session, "third")
        assert whole["compactionDue"]
        await world.turn(session, "third")
        (reported,) = events(world, session, "context.compacted")
        tree = await ask(world, "tree/get", sessionId=session.session_id)
        nodes = {node["messageId"]: node for node in tree["nodes"]}
        summary = nodes[reported["summaryMessageId"]]
        assert summary["origin"] == "compaction"
        assert nodes[summary["parentId"]]["text"] == "third"
        answered = nodes[summary["parentId"]]["parentId"]
        stored = world.messages(session)

        target = {"sessionId": session.session_id, "messageId": answered}
        assert await ask(world, "tree/setHead", **target) == {}
        await world.watch.until(lambda: session.head_id == answered)
        assert world.messages(session) == stored
        meta = json.loads((world.folder(session) / "meta.json").read_bytes())
        assert meta["head"] == {"id": answered, "newest": stored[-1]["id"]}
        again = await inspect(world, session, "third")
        assert again["body"] == whole["body"]
        assert "compactionDue" not in again
        # Who undoes a summary does not get another one unasked.
        await world.turn(session, "third")
        assert world.model.chats[-1].data.decode() == whole["body"]
        assert len(events(world, session, "context.compacted")) == 1
        got = await ask(world, "session/get", sessionId=session.session_id)
        assert got["headId"] == world.messages(session)[-1]["id"]


async def test_a_request_refused_for_its_length_is_made_shorter_and_sent_again(
    project: Path,
) -> None:  # C11
    responses = [
        answer(tool_call("read_file", {"path": "long.py"})),
        answer(text("read")),
        OVERFLOW,
        answer(text("short summary")),
        answer(text("at last")),
        answer(text("with all of it")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(**CODER)
        await world.turn(session, "read long.py")
        turn = await world.turn(session, "go on")
        assert (turn.stop_reason, last_text(session)) == ("end_turn", "at last")
        assert not any(m.get("is_api_error_message") for m in world.messages(session))
        (reported,) = events(world, session, "context.compacted")
        retry = world.model.chats[4]
        assert refusals(retry.body) == []
        assert said(retry.body)[-1] == "go on"
        assert len(retry.data) < len(world.model.chats[2].data)
        # Undone, an empty prompt goes on below the prompt, with the refused request.
        parent = next(
            m["parent_id"]
            for m in world.messages(session)
            if m["id"] == reported["summaryMessageId"]
        )
        await ask(world, "tree/setHead", sessionId=session.session_id, messageId=parent)
        await world.turn(session, "")
        assert world.model.chats[5].data == world.model.chats[2].data


async def test_refused_for_its_length_and_without_a_summary_it_is_trimmed(
    project: Path,
) -> None:  # C10 C11
    bad = failure(400, "invalid_request_error", "no summary today")
    responses = [answer(tool_call("read_file", {"path": "long.py"})), answer(text("read"))]
    responses += [OVERFLOW, bad, answer(text("at last"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(**CODER)
        await world.turn(session, "read long.py")
        turn = await world.turn(session, "go on")
        assert (turn.stop_reason, last_text(session)) == ("end_turn", "at last")
        (result,) = [one for one in world.asked()["messages"] if one["role"] == "tool"]
        assert result["content"].startswith("[Left out to make room:")


async def test_without_a_summary_the_turn_goes_on_trimmed(project: Path) -> None:  # C10 C11
    bad = failure(400, "invalid_request_error", "no summary today")
    responses = [
        answer(tool_call("read_file", {"path": "long.py"}), usage=TokenUsage(prompt=3_000)),
        answer(text("read it"), usage=TokenUsage(prompt=19_000, completion=50)),
        bad,
        answer(text("still here")),
    ]
    async with sidecar(responses, roots=[project], environment=SMALL) as world:
        session = await world.session(**CODER)
        await world.turn(session, "read long.py")
        turn = await world.turn(session, "next " * 300)
        assert (turn.stop_reason, last_text(session)) == ("end_turn", "still here")
        assert events(world, session, "context.compacted") == []
        codes = [notice["code"] for notice in session.notices]
        assert (codes.count("CompactionFailed"), codes.count("LeftOut")) == (1, 1)
        sent = world.asked()
        assert refusals(sent) == []
        (result,) = [message for message in sent["messages"] if message["role"] == "tool"]
        assert result["content"].startswith("[Left out to make room:")
        assert said(sent)[-1] == ("next " * 300)
        assert sent["max_completion_tokens"] < WINDOW


async def test_compact_now_and_back(project: Path) -> None:  # C11
    responses = [answer(text("a " * 600)), answer(text("b")), answer(text("the gist"))]
    responses += [answer(text("c")), answer(text("d"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(**CODER)
        target = {"sessionId": session.session_id}
        empty = await refused(world, "context/compact", **target)
        assert (empty.code, "nothing to sum up" in empty.message) == (-32602, True)
        await world.turn(session, "one")
        await world.turn(session, "two")
        whole = await inspect(world, session, "three")
        result = await ask(world, "context/compact", **target)
        (reported,) = events(world, session, "context.compacted")
        assert {name: reported[name] for name in result} == result
        assert result["tokensAfter"] < result["tokensBefore"]
        # O1: the answer comes before anything that names the summary.
        summary_id = result["summaryMessageId"].encode()
        await world.watch.until(lambda: session.messages.get(summary_id.decode()) is not None)
        naming = [frame for frame in world.client.frames if summary_id in frame.body]
        assert naming[0].message()["result"] == result
        short = await inspect(world, session, "three")
        assert [part["origin"] for part in short["segments"]][2] == "summary"
        await world.turn(session, "three")
        assert world.model.chats[-1].data.decode() == short["body"]
        tree = await ask(world, "tree/get", **target, limit=5_000)
        summary = next(n for n in tree["nodes"] if n.get("origin") == "compaction")
        await ask(world, "tree/setHead", **target, messageId=summary["parentId"])
        await world.turn(session, "three")
        assert world.model.chats[-1].data.decode() == whole["body"]


async def test_the_head_stays_while_something_runs(project: Path) -> None:
    responses = [
        answer(text("one " * 900)),
        answer(hold("later"), text("two")),
        answer(hold("gist"), text("gist")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(**CODER)
        target = {"sessionId": session.session_id}
        await world.turn(session, "one")
        first = world.messages(session)[0]["id"]
        turn_id = await world.start(session, "two")
        await world.model.reached("later")
        for method in ("tree/setHead", "context/compact"):
            error = await refused(world, method, **target, messageId=first)
            assert error.code == -33003
        world.model.release("later")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        call = world.client.start("kode/context/compact", target)
        await world.model.reached("gist")
        for method, params in (
            ("tree/setHead", {"messageId": first}),
            ("turn/start", {"input": [{"type": "text", "text": "now"}]}),
        ):
            assert (await refused(world, method, **target, **params)).code == -33003
        world.model.release("gist")
        assert (await call.answer)["droppedMessages"] > 0
        assert (await refused(world, "tree/setHead", **target, messageId="no")).code == -33002


async def test_the_head_of_an_earlier_process_is_kept_and_moved(project: Path) -> None:  # A4
    async with sidecar([answer(text("one")), answer(text("two"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "first")
        await world.turn(session, "second")
        ids = [message["id"] for message in world.messages(session)]
        target = {"sessionId": session.session_id}
        await ask(world, "tree/setHead", **target, messageId=ids[1])
        await world.client.close(HANG_SECONDS)
    async with sidecar(roots=[project], environment={"KODE_HOME": str(world.home)}) as world:
        assert (await ask(world, "session/get", **target))["headId"] == ids[1]
        listed = await ask(world, "message/list", **target)
        assert [message["id"] for message in listed["messages"]] == ids[:2]
        await ask(world, "tree/setHead", **target, messageId=None)
        tree = await ask(world, "tree/get", **target, limit=3)
        assert "headId" not in tree
        assert [node["messageId"] for node in tree["nodes"]] == ids[:3]
        rest = await ask(world, "tree/get", **target, cursor=tree["nextCursor"])
        assert [node["messageId"] for node in rest["nodes"]] == ids[3:]
        await ask(world, "tree/setHead", **target, messageId=ids[3])
        assert (await ask(world, "session/get", **target))["headId"] == ids[3]
        assert (await refused(world, "tree/setHead", **target, messageId="no")).code == -33002


@pytest.mark.parametrize("trusted", [True, False])
async def test_only_a_trusted_project_instructs(project: Path, trusted: bool) -> None:  # C12 W12
    (project / "AGENTS.md").write_text("Always\x1b[31m say 你好.\n" + "x" * 40_000, "utf-8")
    handshake = {"trusted": trusted}
    async with sidecar([answer(text("a"))] * 2, roots=[project], handshake=handshake) as world:
        session = await world.session()
        await world.turn(session, "hi")
        system = said(world.asked())[0]
        assert ("Always[31m say 你好." in system) is trusted
        assert ("[cut after 32000 of 40" in system) is trusted
        world.editor.open(project / "AGENTS.md", "Unsaved notes.\n")
        await world.turn(session, "again")
        assert said(world.asked())[0] == system, "what a host has cached stays"
        assert any("Unsaved notes." in text for text in said(world.asked())) is trusted


async def test_options_are_kept_with_the_prompt_and_told(project: Path) -> None:  # C7
    options = {"koding": True, "kodingContext": "第 3 章"}
    async with sidecar([answer(text("ok"))] * 2, roots=[project], environment=SMALL) as world:
        session = await world.session()
        await world.turn(session, "describe", options=options, meta={"origin": "sidebar"})
        reminder, prompt, _ = world.messages(session)
        assert prompt["meta"]["options"] == options
        assert prompt["meta"]["origin"] == "sidebar"
        assert reminder["meta"]["origin"] == "reminder"
        reported = said(world.asked())
        assert "AGENTS.md" in reported[1]
        assert reported[1].endswith("第 3 章")
        assert reported[2] == "describe"
        wrong = await refused(
            world,
            "turn/start",
            sessionId=session.session_id,
            input=[],
            options={"koding": "yes"},
        )
        assert wrong.data["details"]["path"] == "$.options.koding"


@pytest.mark.parametrize(
    ("locale", "words"), [("en", "Propose it as an edit of `AGENTS.md`"), ("zh", "的修改提出来")]
)
async def test_an_answer_for_the_notes_becomes_a_proposed_hunk(
    project: Path, locale: str, words: str
) -> None:  # C7
    notes = {"action": "create", "path": "AGENTS.md", "content": "# Notes\n"}
    script = [answer(tool_call("propose_file", notes)), answer(text("I proposed the notes."))]
    async with sidecar(script, roots=[project], handshake={"locale": locale}) as world:
        session = await world.session()
        await world.turn(session, "write it down", options={"koding": True})
        assert words in said(world.asked(0))[1]
        (question,) = world.editor.asked
        assert (question["title"], "+# Notes" in question["diff"]) == ("Create AGENTS.md", True)


async def test_cancelling_while_history_is_summed_up_ends_the_turn(project: Path) -> None:  # O8
    responses = [
        answer(text("one " * 900), usage=NEARLY_FULL),
        answer(hold("gist"), text("never")),
        answer(text("two")),
        answer(text("three")),
    ]
    async with sidecar(responses, roots=[project], environment=SMALL) as world:
        session = await world.session(**CODER)
        await world.turn(session, "one")
        turn_id = await world.start(session, "two")
        await world.model.reached("gist")
        target = {"sessionId": session.session_id}
        assert await ask(world, "turn/cancel", **target) == {"cancelled": True}
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert [m["role"] for m in world.messages(session)] == ["user", "assistant", "user"]
        assert session.anomalies == []


async def test_a_summary_that_nobody_waits_for_is_given_up(project: Path) -> None:
    responses = [
        answer(text("one " * 900)),
        answer(text("two")),
        answer(hold("first"), text("never")),
        OVERFLOW,
        answer(text("the gist")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(**CODER)
        target = {"sessionId": session.session_id}
        await world.turn(session, "one")
        await world.turn(session, "two")
        call = world.client.start("kode/context/compact", target)
        await world.model.reached("first")
        world.client.notify("$/cancelRequest", {"id": call.id})
        with pytest.raises(RpcError) as caught:
            await call.answer
        assert caught.value.code == -32800
        # It left nothing, and the next one is not in its way; too long a question is cut.
        assert len(world.messages(session)) == 4
        # Of both messages before it the user's stays.
        assert (await ask(world, "context/compact", **target))["droppedMessages"] == 1
        assert len(world.model.chats[4].data) < len(world.model.chats[3].data)
        usage = await ask(world, "usage/get", **target, by=["session"])
        assert usage["total"]["answers"] == 3


async def test_a_failed_turn_is_tried_again_without_a_word(project: Path) -> None:
    bad = failure(400, "invalid_request_error", "not today")
    async with sidecar([bad, answer(text("now"))], roots=[project]) as world:
        session = await world.session(**CODER)
        assert (await world.turn(session, "go")).stop_reason == "error"
        turn = await world.turn(session, "")
        assert (turn.stop_reason, last_text(session)) == ("end_turn", "now")
        assert world.model.chats[1].data == world.model.chats[0].data


async def test_a_session_is_deleted_and_the_process_ends_while_it_is_summed_up(
    project: Path,
) -> None:
    responses = [answer(text("one")), answer(text("two")), answer(hold("a")), answer(text("one"))]
    responses += [answer(text("two")), answer(hold("b"))]
    async with sidecar(responses, roots=[project]) as world:
        for name in ("a", "b"):
            session = await world.session(**CODER)
            await world.turn(session, "one")
            await world.turn(session, "two")
            call = world.client.start("kode/context/compact", {"sessionId": session.session_id})
            await world.model.reached(name)
            if name == "a":
                await ask(world, "session/delete", sessionId=session.session_id)
                with pytest.raises(RpcError):
                    await call.answer
                assert not world.folder(session).exists()
        assert await world.client.close(HANG_SECONDS) == 0


@pytest.mark.skipif(BUILT is not None, reason="a frozen program takes no faults")
async def test_a_moved_head_and_a_summary_are_saved_before_the_answer(
    project: Path,
) -> None:  # O3
    responses = [answer(text("one")), answer(text("two")), answer(text("gist"))]
    async with (
        FsyncGate() as gate,
        sidecar(responses, roots=[project], environment=gate.environment) as world,
    ):
        session = await world.session(**CODER)
        target = {"sessionId": session.session_id}
        await world.turn(session, "one")
        await world.turn(session, "two")
        first = world.messages(session)[0]["id"]
        for method, params in (("context/compact", {}), ("tree/setHead", {"messageId": first})):
            gate.shut()
            call = world.client.start(f"kode/{method}", {**target, **params})
            async with asyncio.timeout(HANG_SECONDS):
                await gate.held()
            await ask(world, "ping")
            assert not call.answer.done()
            gate.open()
            async with asyncio.timeout(HANG_SECONDS):
                await call.answer
        await world.watch.until(lambda: session.head_id == first, HANG_SECONDS)
        assert session.anomalies == []


async def test_inspect_says_what_is_cached_and_what_the_next_prompt_costs(project: Path) -> None:
    first = TokenUsage(prompt=9_000, completion=10)
    script = [
        answer(text("one"), usage=first),
        answer(text("two"), usage=TokenUsage(prompt=9_200, completion=10, cached=8_960)),
    ]
    async with sidecar(script, roots=[project]) as world:
        session = await world.session(**CODER)
        new = await inspect(world, session, "hi")
        assert "cached" not in new
        assert new["cost"]["amount"] == new["cost"]["uncached"] > 0
        for prompt, size in (("one", 9_000), ("two", 9_200)):
            await world.turn(session, prompt)
            shown = await inspect(world, session, "and")
            assert shown["cached"]["tokens"] == size < shown["tokens"]
            asked = world.messages(session)[-1]["created_at"]
            until = datetime.fromisoformat(shown["cached"]["until"])
            assert until - datetime.fromisoformat(asked) == timedelta(minutes=5)
            fresh, cached = 0.95, 0.16
            rest = shown["tokens"] - size
            assert shown["cost"] == {
                "amount": pytest.approx((rest * fresh + size * cached) / 1e6),
                "uncached": pytest.approx(shown["tokens"] * fresh / 1e6),
                "currency": "USD",
            }
        other = await inspect(world, session, "and", model="kimi-k3")
        assert "cached" not in other, "another model's host has none of it"


async def test_a_host_that_never_reads_from_a_cache_is_said_to_have_none(project: Path) -> None:
    script = [answer(text("word"), usage=TokenUsage(prompt=9_000 + n)) for n in range(2)]
    async with sidecar(script, roots=[project]) as world:
        session = await world.session(**CODER)
        await world.turn(session, "one")
        await world.turn(session, "two")
        shown = await inspect(world, session, "and")
        assert "cached" not in shown
        assert shown["cost"]["amount"] == shown["cost"]["uncached"]
