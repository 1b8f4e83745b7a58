"""The context in the user's hand: left out, pinned, restored; a compaction taken back (F12)."""

from pathlib import Path
from typing import Any

import pytest

from tests.process.test_context import (
    CODER,
    NEARLY_FULL,
    SMALL,
    ask,
    events,
    inspect,
    last_text,
    refused,
)
from tests.support.model_script import TokenUsage, answer, hold, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import World, sidecar

Json = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "long.py").write_text("value = 'wert'  # 值\n" * 200, encoding="utf-8")
    return folder


def ids(inspected: Json, origin: str) -> list[str]:
    return [one["messageId"] for one in inspected["segments"] if one["origin"] == origin]


def sent(world: World) -> list[Json]:
    """What the model was told last, but for the system prompt."""
    return world.asked()["messages"][1:]


async def edit(world: World, session: SessionFold, **params: Any) -> Json:
    return await ask(world, "context/edit", sessionId=session.session_id, **params)


async def test_what_is_left_out_is_not_sent_and_comes_back(project: Path) -> None:
    responses = [
        answer(tool_call("read_file", {"path": "long.py"})),
        answer(text("It has 200 lines.")),
        *(answer(text(name)) for name in ("two", "three", "four", "five")),
    ]
    async with sidecar(responses[:-1], roots=[project], environment=SMALL) as world:
        session = await world.session(**CODER)
        await world.turn(session, "first")
        await world.turn(session, "second")
        before = await inspect(world, session)
        (result,), (prompt, _) = ids(before, "result"), ids(before, "prompt")

        reported = await edit(world, session, leaveOut=[result], pin=[prompt])
        assert reported["edits"] == {"leftOut": [result], "pinned": [prompt]}
        assert reported["tokensAfter"] < reported["tokensBefore"] - 500
        assert 0 < reported["rereadTokens"] < reported["tokensAfter"]
        assert events(world, session, "session.updated")[-1]["contextEdits"] == reported["edits"]
        after = await inspect(world, session, "third")
        assert [one["messageId"] for one in after["leftOut"]] == [result]
        assert [one["messageId"] for one in after["segments"] if one.get("pinned")] == [prompt]
        await world.turn(session, "third")
        assert world.model.chats[-1].data.decode() == after["body"]
        (found,) = [one["content"] for one in sent(world) if one["role"] == "tool"]
        assert found.startswith("[The user left this result out")
        # Said again it changes nothing, and nothing is read anew.
        again = await edit(world, session, leaveOut=[result])
        assert (again["edits"], again["rereadTokens"]) == (reported["edits"], 0)

        unknown = await refused(
            world, "context/edit", sessionId=session.session_id, pin=[prompt, "nobody"]
        )
        assert (unknown.code, unknown.data["details"]) == (-33002, {"path": "$.pin[1]"})
        twice = await refused(
            world, "context/edit", sessionId=session.session_id, pin=[prompt], restore=[prompt]
        )
        assert (twice.code, twice.data["details"]) == (-32602, {"path": "$.restore[0]"})
        copy = await ask(world, "session/fork", sessionId=session.session_id)

    async with sidecar(responses[-2:], roots=[project], environment=SMALL) as world:
        attached = await ask(world, "session/attach", sessionId=session.session_id)
        assert attached["session"]["contextEdits"] == reported["edits"]
        fold = await world.watch.attach(copy["sessionId"])
        copied = await inspect(world, fold, "fourth")
        (left_out,) = copied["leftOut"]
        assert left_out["messageId"] in ids(copied, "result")
        assert left_out["messageId"] != result
        await world.turn(fold, "fourth")
        assert "[The user left this result out" in str(sent(world))
        # In the first one it comes back.
        fold = await world.watch.attach(session.session_id)
        back = await edit(world, fold, restore=[result, prompt])
        assert back["edits"] == {"leftOut": [], "pinned": []}
        await world.turn(fold, "fourth")
        assert "value = 'wert'" in str(sent(world))
        view = (await ask(world, "session/get", sessionId=session.session_id))["session"]
        assert "contextEdits" not in view


async def test_a_compaction_is_taken_back_below_later_messages(project: Path) -> None:
    responses = [
        answer(text("one " * 300), usage=TokenUsage(prompt=3_000, completion=10)),
        answer(text("two"), usage=NEARLY_FULL),
        answer(text("all in short")),
        answer(text("three"), usage=TokenUsage(prompt=3_000, completion=10)),
        answer(text("four")),
        answer(text("f"), hold("on")),
    ]
    async with sidecar(responses, roots=[project], environment=SMALL) as world:
        session = await world.session(**CODER)
        named = {"sessionId": session.session_id}
        none = await refused(world, "context/undoCompaction", **named)
        assert (none.code, "nothing to take back" in none.message) == (-32602, True)
        for prompt in ("first " * 900, "second", "third"):
            await world.turn(session, prompt)
        assert "one one" not in str(sent(world))
        assert "first first" in str(sent(world)), "no summary stands for the user's own words"
        (compacted,) = events(world, session, "context.compacted")
        summary = compacted["summaryMessageId"]

        reported = await ask(world, "context/undoCompaction", **named)
        assert reported["edits"]["leftOut"] == [summary]
        assert reported["tokensAfter"] > reported["tokensBefore"]
        # Everything but the system prompt and the tools is new to the host's cache.
        assert reported["rereadTokens"] > 500
        shown = await inspect(world, session, "fourth")
        assert [one["origin"] for one in shown["leftOut"]] == ["summary"]
        assert "compactionDue" not in shown  # who took one back gets none unasked
        await world.turn(session, "fourth")
        said = [one["content"] for one in sent(world) if one["role"] == "user"]
        assert [one.split()[0] for one in said] == ["first", "second", "third", "fourth"]
        assert "all in short" not in str(sent(world))
        # It is there to be put back, and nothing is edited while a turn runs.
        redone = await edit(world, session, restore=[summary])
        assert redone["tokensAfter"] < redone["tokensBefore"]
        turn = await ask(world, "turn/start", **named, input=[{"type": "text", "text": "fifth"}])
        busy = await refused(world, "context/edit", **named, leaveOut=[summary])
        assert (busy.code, busy.data["details"]) == (-33003, {"turnId": turn["turnId"]})
        await world.watch.until(lambda: last_text(session) == "f")
        assert "all in short" in str(sent(world))
        await ask(world, "turn/cancel", **named)
