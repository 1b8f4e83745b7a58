"""`/login`: the user agrees in the browser, and the client is told when that is over."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.infrastructure.mcp.test_login import address as address  # the server that wants a log-in
from tests.support.acp_client import AcpError, Json, prompt_params
from tests.support.acp_world import AcpWorld, acp_world
from tests.support.model_script import answer, text, tool_call

URL: Json = {"elicitation": {"url": {}}}
ADD = tool_call("mcp", {"action": "call", "server": "web", "tool": "add", "arguments": {}})


@asynccontextmanager
async def world(
    folder: Path, patch: pytest.MonkeyPatch, address: str, capabilities: Json
) -> AsyncIterator[AcpWorld]:
    config = folder / "config.yaml"
    config.write_text(json.dumps({"mcp": {"web": {"url": address}}}))
    patch.setenv("KODE_CONFIG", str(config))
    responses = [answer(ADD), answer(text("Done."))]
    async with acp_world(folder, patch, responses, capabilities=capabilities) as started:
        yield started


async def browse(place: str) -> None:
    async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as browser:
        assert "can be closed" in (await browser.get(place)).text


async def test_a_log_in_is_asked_for_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async with world(tmp_path, monkeypatch, address, URL) as started:
        client = started.client
        client.answer_form = lambda _: {"action": "accept"}
        session_id = await client.new(started.project)
        number = await client.send("session/prompt", prompt_params(session_id, "/login web"))
        ((method, asked),) = await client.until(lambda: client.asked)
        assert (method, asked["mode"]) == ("elicitation/create", "url")
        assert asked["message"] == "Log in to web"
        assert client.reported == []
        await browse(asked["url"])
        assert (await client.wait_for(number))["stopReason"] == "end_turn"
        assert client.reported == [
            ("elicitation/complete", {"elicitationId": asked["elicitationId"]})
        ]
        assert client.said() == "web lets you in, and has 1 tools."
        await client.prompt(session_id, "Add")
        (result,) = [m for m in started.asked()["messages"] if m["role"] == "tool"]
        assert "no such method" in str(result["content"])  # so it was let in


async def test_a_client_that_opens_no_addresses_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async with world(tmp_path, monkeypatch, address, {}) as started:
        client = started.client
        session_id = await client.new(started.project)
        number = await client.send("session/prompt", prompt_params(session_id, "/login web"))
        await client.until(lambda: "http" in client.said())
        await browse(next(word for word in client.said().split() if word.startswith("http")))
        await client.wait_for(number)
        assert client.said().endswith("web lets you in, and has 1 tools.")
        assert client.reported == []


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_does_not_want_to_is_not_logged_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, action: str
) -> None:
    async with world(tmp_path, monkeypatch, address, URL) as started:
        started.client.answer_form = lambda _: {"action": action}
        session_id = await started.client.new(started.project)
        assert await started.client.prompt(session_id, "/login web") == {"stopReason": "cancelled"}
        assert started.client.reported == []


async def test_a_cancel_ends_the_wait_for_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async with world(tmp_path, monkeypatch, address, URL) as started:
        client = started.client
        client.answer_form = lambda _: {"action": "accept"}
        session_id = await client.new(started.project)
        number = await client.send("session/prompt", prompt_params(session_id, "/login web"))
        await client.until(lambda: client.asked)
        await client.notify("session/cancel", {"sessionId": session_id})
        assert await client.wait_for(number) == {"stopReason": "cancelled"}


async def test_only_known_servers_at_an_address_are_logged_in_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async with world(tmp_path, monkeypatch, address, URL) as started:
        session_id = await started.client.new(started.project)
        with pytest.raises(AcpError, match="No server of yours at an address is called other"):
            await started.client.prompt(session_id, "/login other")
        with pytest.raises(AcpError, match="Name a server"):
            await started.client.prompt(session_id, "/login")
