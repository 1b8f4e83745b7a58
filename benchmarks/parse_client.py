"""`python -m benchmarks.parse_client URL ROUNDS`: reads the planned answer, parsed and unparsed.

A process of its own, so that its CPU time is that of reading alone. Prints one line of JSON:
seconds of CPU by what was done, one for each round.
"""

import asyncio
import json
import sys
import time
from contextlib import aclosing

import httpx

from benchmarks.model import PROMPT
from benchmarks.stream import DELTA_SIZE, FLAT_DELTAS
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.core.domain.model_event import ResponseFinished, TextDelta
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.registry import Registry

MODEL = "kimi-k2.6"


async def _parsed(client: ChatClient) -> None:
    hello = Message(id="m", session_id="s", role="user", content=(TextBlock(text=PROMPT),))
    request = ModelRequest(MODEL, "", [hello])
    last, said = None, 0
    async with aclosing(client.stream(request)) as batches:
        async for batch in batches:
            said += sum(len(event.text) for event in batch if isinstance(event, TextDelta))
            last = batch[-1]
    if not isinstance(last, ResponseFinished) or said != FLAT_DELTAS * DELTA_SIZE:
        sys.exit(f"no whole answer: {said} characters, then {last}")


async def _read(client: httpx.AsyncClient, url: str) -> None:
    """What httpx does for the same bytes when nobody looks at them."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}], "stream": True}
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        async for _ in response.aiter_raw():
            pass


async def _main(url: str, rounds: int) -> None:
    spent: dict[str, list[float]] = {"parsed": [], "read": []}
    client = ChatClient(Registry([ProviderConfig(url, "key")]), HttpClient)
    async with httpx.AsyncClient(trust_env=False, timeout=None) as plain:
        await _parsed(client)
        await _read(plain, url)
        for _ in range(rounds):
            started = time.process_time()
            await _parsed(client)
            between = time.process_time()
            await _read(plain, url)
            spent["parsed"].append(between - started)
            spent["read"].append(time.process_time() - between)
    await client.aclose()
    print(json.dumps(spent))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
