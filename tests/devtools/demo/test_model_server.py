"""The recorded model: real HTTP, real chunks, Moonshot's shapes."""

import asyncio
import json
from random import Random
from typing import Any

import httpx
import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.model_script import (
    TokenUsage,
    answer,
    broken_off,
    cut_at_random,
    failure,
    hold,
    text,
    thinking,
    tool_call,
)

CEILING = 30.0
KEY = {"Authorization": "Bearer sk-secret"}


def chat(model: str = "kimi-k2.6") -> dict[str, Any]:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi 茶"}]}


def http(server: ModelServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=server.base_url, headers=KEY, trust_env=False, timeout=CEILING
    )


def chunks(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line]
    assert lines.pop() == b"[DONE]"
    return [json.loads(line) for line in lines]


async def test_answers_come_in_order_over_one_connection() -> None:
    recording = Recording((answer(text("one")), answer(text("two"))))
    async with ModelServer(recording) as server, http(server) as client:
        bodies = [(await client.post("/chat/completions", json=chat())).content for _ in range(2)]
        assert bodies == [response.body for response in recording.responses]
        first, second = server.chats
        assert first.headers["authorization"] == "Bearer ***"
        assert first.body == chat()
        assert second.outcome == "answered"
        again = await client.post("/chat/completions", json=chat())
        assert again.status_code == 400
        assert "holds 2 answers and this is question 3" in again.json()["error"]["message"]


async def test_a_retired_model_is_404_and_the_list_says_what_is_served() -> None:
    async with ModelServer(Recording((answer(text("hi")),))) as server, http(server) as client:
        gone = await client.post("/chat/completions", json=chat("kimi-k2-turbo-preview"))
        assert gone.status_code == 404
        assert gone.json()["error"]["type"] == "resource_not_found_error"
        served = await client.get("/models")
        assert [model["id"] for model in served.json()["data"]] == ["kimi-k2.6"]
        assert (await client.post("/chat/completions", json=chat())).status_code == 200
        assert len(server.chats) == 1
        elsewhere = await client.get("/elsewhere")
        assert elsewhere.json()["error"]["type"] == "url_not_found"
        async with httpx.AsyncClient(base_url=server.base_url, trust_env=False) as stranger:
            assert (await stranger.get("/models")).status_code == 401


async def test_the_wire_has_kimis_shape() -> None:
    response = answer(
        thinking("hm, 茶"),
        text("Let me look 🍵"),
        tool_call("read_file", {"path": "a.js"}),
        tool_call("search_code", {"query": "茶"}),
        usage=TokenUsage(10, 5, 8),
    )
    first, *middle, last, counted = chunks(response.body)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    deltas = [chunk["choices"][0]["delta"] for chunk in middle]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "hm, 茶"
    assert "".join(delta.get("content", "") for delta in deltas) == "Let me look 🍵"
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert [call["id"] for call in calls if "id" in call] == ["read_file:0", "search_code:1"]
    arguments = "".join(call["function"]["arguments"] for call in calls if call["index"] == 1)
    assert json.loads(arguments) == {"query": "茶"}
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["choices"][0]["usage"] == counted["usage"]
    assert counted["choices"] == []
    assert counted["usage"]["cached_tokens"] == 8


async def test_pieces_are_chunks_wherever_they_are_cut() -> None:
    response = cut_at_random(answer(text("茶馆 🍵"), thinking("…")), Random(7))
    async with ModelServer(Recording((response,))) as server:
        port = int(server.base_url.rsplit(":", 1)[1].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps(chat()).encode()
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: x\r\nContent-Length: %d\r\n\r\n"
        )
        writer.write(head % len(body) + body)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        pieces: list[bytes] = []
        while size := int(await reader.readline(), 16):
            pieces.append((await reader.readexactly(size + 2))[:-2])
        writer.close()
    assert pieces == [piece.data for piece in response.pieces]
    assert b"".join(pieces) == response.body


async def test_a_held_answer_waits_and_a_gone_client_is_noticed() -> None:
    script = answer(text("before", size=9), hold("gate"), text("after", size=9))
    async with (
        asyncio.timeout(CEILING),
        ModelServer(Recording((script, script))) as server,
        http(server) as client,
    ):
        waiting = asyncio.create_task(client.post("/chat/completions", json=chat()))
        await server.reached("gate")
        waiting.cancel()
        await asyncio.wait([waiting])
        await server.chats[0].finished.wait()
        assert server.chats[0].outcome == "client_gone"
        server.release("gate")
        whole = await client.post("/chat/completions", json=chat())
        assert whole.content == script.body


async def test_failures_and_broken_streams() -> None:
    script = (
        failure(429, "rate_limit_reached_error", "try again after 1 seconds", {"Retry-After": "1"}),
        broken_off(answer(text("never whole")), keep=2),
    )
    async with ModelServer(Recording(script)) as server, http(server) as client:
        limited = await client.post("/chat/completions", json=chat())
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "1")
        with pytest.raises(httpx.TransportError):
            await client.post("/chat/completions", json=chat())
