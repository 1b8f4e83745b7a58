"""What a client need not ask for: mode, model, window, draft, questions, the last end."""

from pathlib import Path

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, sidecar

ASK = {"question": "Where to?", "choices": ["left", "right"]}


async def test_what_a_session_is_comes_unasked(tmp_path: Path) -> None:
    responses = [answer(tool_call("ask_user", ASK)), answer(text("ok"))]
    async with sidecar(responses, roots=[tmp_path]) as world:
        new = await world.client.request(
            "kode/session/new", {"mode": "plan", "title": "T"}, HANG_SECONDS
        )
        reported = new["session"]
        assert (reported["mode"], reported["title"], reported["draft"]) == ("plan", "T", "")
        assert reported["model"]
        session = world.watch.session(new["sessionId"], new["seq"])
        update = {"sessionId": session.session_id, "draft": "half a th"}
        await world.client.request("kode/session/update", update, HANG_SECONDS)
        listed = await world.client.request("kode/session/list", {}, HANG_SECONDS)
        assert listed["sessions"][0]["draft"] == "half a th"

        await world.turn(session, "go")
        events = world.events()
        by_type = {event["type"]: event for event in events}
        assert [event["draft"] for event in events if event["type"] == "session.updated"] == [
            "half a th"
        ]
        asked, resolved = by_type["ask.requested"], by_type["ask.resolved"]
        assert (asked["question"], asked["choices"], asked["multi"]) == (*ASK.values(), False)
        assert resolved["requestId"] == asked["requestId"]
        assert resolved["blockId"] == asked["blockId"]
        completed, usage = by_type["turn.completed"], by_type["usage.updated"]
        assert usage["context"] == completed["context"]
        assert usage["context"]["tokens"] > 0
        assert usage["context"]["window"] > usage["context"]["tokens"]
        assert set(usage["usage"]) >= {"inputTokens", "cachedTokens", "reasoningTokens"}

        snapshot = await world.client.request(
            "kode/session/attach", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert snapshot["lastTurn"]["turnId"] == completed["turnId"]
        assert snapshot["lastTurn"]["stopReason"] == "end_turn"
        assert (snapshot["pending"], snapshot["asks"]) == ([], [])
        assert snapshot["session"]["draft"] == "half a th"
