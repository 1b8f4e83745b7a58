"""Several providers side by side in the real process."""

import json
import os
from pathlib import Path

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.raw_http import (
    HEAD,
    LAST_CHUNK,
    Answer,
    RawHttpServer,
    chunk,
    event,
    refusal,
    response,
    says,
)
from tests.support.sidecar import HANG_SECONDS, read_jsonl, sidecar

KIMI_KEY = "live-key-3141592653589793"
ACME_KEY = "acme-key-2718281828459045"
OFFER = response(200, {"data": [{"id": "acme-large", "context_length": 77_000}]})


def acme_says(text: str) -> Answer:
    first = {"id": "a1", "model": "acme-large-2", "choices": [{"delta": {"thoughts": "hm"}}]}
    last = {"id": "a1", "choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
    spent = {"prompt_tokens": 1000, "completion_tokens": 100}
    usage = {"id": "a1", "choices": [], "billing": spent}
    return [HEAD, *(chunk(event(value)) for value in (first, last, usage)), LAST_CHUNK]


def config(url: str) -> str:
    return f"""
providers:
  acme:
    base_url: {url}
    api_key_env: ACME_TEST_KEY
    auth: {{header: x-acme-key, prefix: ""}}
    names: {{reasoning: thoughts, usage: billing}}
    models:
      - id: acme-large
        context_window: 50000
        price: {{input: 2, cached: 1, output: 10, currency: CNY}}
"""


async def test_each_turn_may_go_to_another_provider(tmp_path: Path) -> None:  # A2 C3 C5 W14
    home = Path(os.environ["KODE_HOME"])
    home.mkdir(parents=True)
    async with RawHttpServer(says("I am Kimi")) as kimi, RawHttpServer() as acme:
        (home / "config.yaml").write_text(config(acme.url), encoding="utf-8")
        environment = {
            "KIMI_BASE_URL": kimi.url,
            "KIMI_API_KEY": KIMI_KEY,
            "ACME_TEST_KEY": ACME_KEY,
            "KODE_MODEL": "kimi-k2.6",
        }
        async with sidecar(roots=[tmp_path], environment=environment) as world:
            session = await world.session()
            assert kimi.requests == acme.requests == [], "no network before a prompt"  # W12
            await world.turn(session, "who are you?")
            acme.answers[:] = [acme_says("I am Acme")]
            turn = await world.turn(session, "and you?", model="acme/acme-large")
            assert turn.stop_reason == "end_turn"
            assert turn.result["cost"] == {"amount": 0.003, "currency": "CNY"}
            assert "costUsd" not in turn.result
            answers = [m for m in world.messages(session) if m["role"] == "assistant"]
            assert [(m["provider"], m["model"]) for m in answers] == [
                ("kimi", "m"),
                ("acme", "acme-large-2"),
            ]
            assert [block["type"] for block in answers[1]["content"]] == ["thinking", "text"]
            (asked,) = acme.requests
            assert asked.headers["x-acme-key"] == ACME_KEY
            assert KIMI_KEY not in str(asked)
            assert ACME_KEY not in str(kimi.requests)
            # Another vendor's reasoning stays at home.
            assert "reasoning" not in json.dumps(asked.json)

            # Nor does it get its own back, so that what it thought is no part of what is counted.
            ask = {"sessionId": session.session_id, "model": "acme/acme-large"}
            seen = await world.client.request("kode/context/inspect", ask, HANG_SECONDS)
            heads = [part["head"] for part in seen["segments"] if part["origin"] == "answer"]
            assert heads == ["I am Kimi", "I am Acme"]

            acme.answers[:] = [refusal(400, "bad_request", "no", "x-request-id: r-7")]
            turn = await world.turn(session, "and now?", model="acme/acme-large")
            assert turn.result["error"]["details"]["traceId"] == "r-7"

            acme.answers[:] = [OFFER]
            listed = await world.client.request("kode/models/list", {}, HANG_SECONDS)
            row = next(row for row in listed["providers"] if row["name"] == "acme")
            (model,) = row["models"]
            assert (model["name"], model["contextWindow"]) == ("acme/acme-large", 77_000)
            assert model["price"]["currency"] == "CNY"

            with pytest.raises(RpcError, match="ANTHROPIC_API_KEY") as refused:
                await world.turn(session, "to nobody", model="anthropic/claude-opus-5")
            assert refused.value.code == -33014
        reported = [frame.body for frame in world.client.frames if frame.direction == "in"]
        for key in (KIMI_KEY, ACME_KEY):
            assert key.encode() not in b"".join(reported)
            for path in home.rglob("*"):
                assert not path.is_file() or key.encode() not in path.read_bytes(), path
        lines = read_jsonl(home / "logs" / "agent.log")
        providers = [line["provider"] for line in lines if line.get("event") == "answer"]
        assert providers == ["kimi", "acme", "acme"]
        (failed,) = [line for line in lines if line.get("error_details")]
        assert failed["error_details"]["traceId"] == "r-7", "what the host's support will ask for"
