"""A prompt is asked anew as a sibling, the head moves, and a session begins from the middle."""

from tests.support.model_script import answer, text
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage

FILES = {"menu.py": "PRICE = 12\n"}
RESPONSES = tuple(answer(text(f"Answer {number}.")) for number in range(1, 5))


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6", title="Forks")
    target = {"sessionId": session.session_id}
    await world.turn(session, "First question")
    await world.turn(session, "Second question")
    tree = await world.client.request("kode/tree/get", target, HANG_SECONDS)
    first, answered, second, *_ = (node["messageId"] for node in tree["nodes"])
    await world.turn(session, "Second question, better put", parentId=answered)
    await world.client.request("kode/tree/setHead", {**target, "messageId": second}, HANG_SECONDS)
    forked = await world.client.request(
        "kode/session/fork", {**target, "messageId": answered}, HANG_SECONDS
    )
    attached = await world.client.request(
        "kode/session/attach", {**forked, "access": "write"}, HANG_SECONDS
    )
    assert [message["role"] for message in attached["messages"]] == ["user", "assistant"]
    other = world.watch.session(forked["sessionId"], attached["seq"])
    await world.turn(other, "Third question")
    listed = await world.client.request("kode/session/list", {"all": True}, HANG_SECONDS)
    assert len(listed["sessions"]) == 2
    assert first
