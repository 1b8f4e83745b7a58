"""How long the first request of a session is, with all tools that there can be."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import answer, text
from tests.support.sidecar import sidecar
from tests.support.word_servers import capabilities

MOST = 12_000


def bytes_of(part: Any) -> int:
    return len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode())


def report(body: Mapping[str, Any]) -> None:
    """Print what the request is made of, which is shown where the test fails."""
    system, tools = body["messages"][0], body["tools"]
    sizes = {tool["function"]["name"]: bytes_of(tool) for tool in tools}
    print("all", bytes_of(body), "system", bytes_of(system), "tools", bytes_of(tools), sizes)  # noqa: T201


@pytest.mark.parametrize("locale", ["en", "zh"])
@pytest.mark.parametrize("agent", ["ide-helper", "coder", "reviewer"])
async def test_the_first_request_is_short(agent: str, locale: str, tmp_path: Path) -> None:
    handshake = {"kode_options": capabilities(), "locale": locale}
    environment = {"KODE_LOCALE": locale}
    script = [answer(text("hi"))]
    async with sidecar(
        script, roots=[tmp_path], handshake=handshake, environment=environment
    ) as world:
        session = await world.session(agent=agent, model="kimi-k2.6")
        await world.turn(session, "hi")
        body = world.asked()
    report(body)
    assert bytes_of(body) <= MOST
