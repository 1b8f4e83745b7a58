"""The client's end of the wire, against a scripted process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import Client, ConnectionLost, RpcError
from kode_sidecar.terminal.client.handshake import Handshake

CEILING = 30.0
ROOT = Path(__file__).resolve().parents[3]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.echo_sidecar", *arguments]


async def spawn(*arguments: str) -> Client:
    return await Client.spawn(command(*arguments), cwd=ROOT)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with asyncio.timeout(CEILING), await spawn() as connected:
        yield connected


async def test_a_request_gets_its_answer_and_text_survives(client: Client) -> None:
    params = {"text": "CRLF\r\n 中文 🍵 \u2028", "jsonrpc": "2.0"}
    assert await client.request("echo", params) == params
    # A lone surrogate goes out as an escape.
    assert await client.request("echo", {"text": "\ud83c"}) == {"text": "\ud83c"}


async def test_pipelined_answers_find_their_requests(client: Client) -> None:
    calls = [client.start("echo", {"n": number}) for number in range(300)]
    answers = await asyncio.gather(*(call.answer for call in calls))
    assert [answer["n"] for answer in answers] == list(range(300))


async def test_an_error_answer_is_an_rpc_error(client: Client) -> None:
    with pytest.raises(RpcError) as caught:
        await client.request(
            "fail", {"code": -33014, "message": "no key", "data": {"code": "AuthRequired"}}
        )
    assert caught.value.code == -33014
    assert caught.value.data == {"code": "AuthRequired"}


async def test_initialize_says_what_the_editor_can_do(client: Client, tmp_path: Path) -> None:
    handshake = Handshake(roots=[tmp_path], position_encodings=["utf-8"], locale="zh-CN")
    result = await client.initialize(handshake)
    seen = result["capabilities"]["seen"]
    assert seen["processId"] == os.getpid()
    assert seen["rootUri"] == tmp_path.as_uri() == seen["workspaceFolders"][0]["uri"]
    assert seen["capabilities"]["general"]["positionEncodings"] == ["utf-8"]
    assert seen["initializationOptions"]["kode"]["locale"] == "zh-CN"
    assert "initializationOptions" not in Handshake(kode=False).params()


async def test_requests_of_the_server_are_answered(client: Client) -> None:
    async def configuration(params: Any) -> list[Any]:
        return [params["items"]]

    async def broken(params: Any) -> None:
        raise ValueError("oh")

    client.handle("workspace/configuration", configuration)
    client.handle("broken", broken)
    ask = {"method": "workspace/configuration", "params": {"items": [1]}}
    assert (await client.request("ask", ask))["result"] == [[1]]
    assert (await client.request("ask", {"method": "broken"}))["error"]["code"] == -32603
    assert (await client.request("ask", {"method": "nobody"}))["error"]["code"] == -32601


async def test_notifications_come_in_order_and_every_frame_is_logged(client: Client) -> None:
    seen: list[int] = []
    stop = client.subscribe(lambda method, params: seen.append(params["number"]))
    await client.request("flood", {"count": 50})
    assert seen == list(range(50))
    stop()
    await client.request("flood", {"count": 1})
    assert len(seen) == 50
    directions = [frame.direction for frame in client.frames]
    assert directions == ["out", *["in"] * 51, "out", "in", "in"]
    assert client.frames[1].message()["params"]["number"] == 0


async def test_a_late_answer_is_cancelled_and_told(client: Client) -> None:
    cancelled: list[Any] = []
    client.subscribe(lambda method, params: cancelled.append((method, params)))
    with pytest.raises(TimeoutError, match="silent"):
        await client.request("silent", timeout=0.01)
    waiting = asyncio.create_task(client.request("silent"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await client.request("echo", 1)
    assert cancelled == [("cancelled", {"id": 1}), ("cancelled", {"id": 2})]


async def test_a_paused_client_stops_the_server_not_the_sender(client: Client) -> None:
    client.process.pause_reading()
    flood = client.start("flood", {"count": 2000})
    client.notify("echo-nothing")
    await client.process.drain()
    assert not flood.answer.done()
    client.process.resume_reading()
    await flood.answer


async def test_a_dead_process_fails_what_waits_and_says_why() -> None:
    async with asyncio.timeout(CEILING):
        client = await spawn()
        with pytest.raises(ConnectionLost) as caught:
            await client.request("die", {"more": "x" * 200_000})
        assert caught.value.exit_code == 3
        assert len(caught.value.stderr_tail) == 64 * 1024
        with pytest.raises(ConnectionLost):
            client.notify("echo")
        assert await client.close() == 3


async def test_output_that_is_no_lsp_loses_the_connection() -> None:
    async with asyncio.timeout(CEILING):
        client = await spawn()
        with pytest.raises(ConnectionLost, match="could not be handled"):
            await client.request("garbage")
        await client.close()


async def test_raw_bytes_are_sent_as_they_are(client: Client) -> None:
    body = b'{"jsonrpc":"2.0","id":77,"method":"echo","params":"raw"}'
    client.send_raw(b"content-length:%d\r\n\r\n" % len(body))
    client.send_raw(body)
    await client.request("echo")
    assert {"jsonrpc": "2.0", "id": 77, "result": "raw"} in [
        frame.message() for frame in client.frames if frame.direction == "in"
    ]


async def test_close_ends_cleanly_or_by_force() -> None:
    async with asyncio.timeout(CEILING):
        polite, stubborn = await spawn(), await spawn("--stubborn")
        await asyncio.gather(polite.request("echo"), stubborn.request("echo"))
        assert await polite.close() == 0
        assert await stubborn.close(seconds=0.05) != 0
        assert stubborn.process.exit_code is not None
