"""What ACP clients hand over as other programs write it: servers by any name and of any kind."""

import sys
from pathlib import Path

import pytest

from tests.support.acp_client import AcpError, Json
from tests.support.acp_world import acp_world
from tests.support.model_script import answer, text, tool_call
from tests.support.program import ROOT

ODD = ROOT / "tests" / "support" / "mcp_odd_server.py"
FILES = {"a.txt": "one\n"}
SEARCH = tool_call("mcp", {"action": "search", "query": ""})


def server(name: str, log: Path) -> Json:
    return {
        "name": name,
        "command": sys.executable,
        "args": [str(ODD), "plain", str(log)],
        "env": [],
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [("高德地图", "飞书"), ("my server", "my-server"), ("a.b", "a/b"), ("same", "same")],
)
async def test_servers_keep_the_names_of_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    script = [answer(SEARCH), answer(text("Done."))]
    async with acp_world(tmp_path, monkeypatch, script, files=FILES) as world:
        servers = [server(name, tmp_path / "log") for name in (first, second)]
        session_id = await world.client.new(world.project, mcpServers=servers)
        await world.client.prompt(session_id, "Go")
        reported = str(world.asked()["messages"][-1]["content"])
        assert f"server: {first}\n" in reported
        assert f"server: {'same (2)' if second == first else second}\n" in reported


async def test_a_server_that_cannot_be_used_costs_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [answer(SEARCH), answer(text("Done."))]
    async with acp_world(tmp_path, monkeypatch, script, files=FILES) as world:
        old: Json = {"type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse", "headers": []}
        servers = [old, server("good", tmp_path / "log")]
        session_id = await world.client.new(world.project, mcpServers=servers)
        await world.client.prompt(session_id, "Go")
        reported = str(world.asked()["messages"][-1]["content"])
        assert "server: good" in reported
        assert "The MCP server old cannot be used" in reported
        said = "".join(
            update["content"]["text"] for update in world.client.of_kind("agent_message_chunk")
        )
        assert "The MCP server old cannot be used" in said, "the user reads it, too"


async def test_a_plan_is_shown_once_also_when_a_session_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"items": [{"text": "look", "state": "done"}, {"text": "write"}]}
    script = [answer(tool_call("update_plan", steps)), answer(text("Done."))]
    async with acp_world(tmp_path, monkeypatch, script, files=FILES) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Go")
        before = len(world.client.of_kind("plan"))
        await world.client.request("session/close", {"sessionId": session_id})
        place: Json = {"cwd": str(world.project), "mcpServers": []}
        await world.client.request("session/load", {"sessionId": session_id, **place})
        shown, *again = world.client.of_kind("plan")
        assert (before, again) == (1, [shown])
        assert [one["status"] for one in shown["entries"]] == ["completed", "pending"]
        assert world.client.of_kind("tool_call") == []


async def test_no_error_names_a_method_of_another_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(tmp_path, monkeypatch, [], files=FILES) as world:
        place: Json = {"cwd": str(world.project), "mcpServers": []}
        unknown = "ses_00000000000000000000000000"
        more: dict[str, Json] = {"set_mode": {"modeId": "ask"}, "prompt": {"prompt": []}}
        for method in ("load", "resume", "fork", "close", "set_mode", "prompt"):
            params: Json = {"sessionId": unknown}
            params |= place if method in ("load", "resume", "fork") else {}
            params |= more.get(method, {})
            with pytest.raises(AcpError) as raised:
                await world.client.request(f"session/{method}", params)
            assert "kode/" not in str(raised.value), method
