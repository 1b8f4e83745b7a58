"""The model keeps a plan that the user sees, in each client that has cards and after a restart."""

from pathlib import Path
from typing import Any

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, sidecar


def plan(*items: tuple[str, str]) -> dict[str, Any]:
    return {"items": [{"text": reported, "state": state} for reported, state in items]}


async def test_a_plan_is_told_kept_and_shown_by_its_card(tmp_path: Path) -> None:
    first = plan(("读 😀\u202e菜单", "in_progress"), ("change it\n\nnow", "pending"))
    last = plan(("读 😀菜单", "done"), ("change it", "in_progress"))
    script = [
        answer(tool_call("update_plan", first)),
        answer(tool_call("update_plan", plan(("a", "in_progress"), ("b", "in_progress")))),
        answer(tool_call("update_plan", last)),
        answer(text("Done.")),
    ]
    async with sidecar(script, roots=[tmp_path], handshake={"trusted": True}) as world:
        session = await world.session(agent="coder")
        await world.turn(session, "go")
        reported = [event for event in world.events() if event["type"] == "plan.updated"]
        assert [[item["text"] for item in event["items"]] for event in reported] == [
            ["读 😀菜单", "change it now"],
            ["读 😀菜单", "change it"],
        ]
        calls = [block for block in session.blocks.values() if block.type == "tool_use"]
        assert calls[0].block["title"] == "Plan: 0 of 2 done · 读 😀菜单"
        assert calls[2].block["title"] == "Plan: 1 of 2 done · change it"
        assert reported[0]["blockId"] == calls[0].id
        results = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert results[0] == "[>] 读 😀菜单\n[ ] change it now"
        assert "At most one step" in results[1]
        params = {"sessionId": session.session_id}
        await world.client.request("kode/session/detach", params, HANG_SECONDS)
        again = await world.client.request("kode/session/attach", params, HANG_SECONDS)
        assert again["plan"] == reported[1]["items"]


async def test_the_small_agent_has_no_plan_to_keep(tmp_path: Path) -> None:  # A5
    async with sidecar([answer(text("ok"))], roots=[tmp_path]) as world:
        await world.turn(await world.session(agent="ide-helper"), "hi")
        names = {tool["function"]["name"] for tool in world.asked(0)["tools"]}
        assert "update_plan" not in names
