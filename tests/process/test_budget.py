"""A budget over the wire: the turn ends with it, and goes on when there is room. F11"""

import json
from pathlib import Path

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, sidecar

pytestmark = pytest.mark.program

CONFIG = """
budget: {currency: USD, day: 0.5}
providers:
  kimi:
    models:
      - {id: kimi-k2.6, price: {input: 1.0, cached: 0.1, output: 4.0}}
logical_models: {ide-chat: [kimi/kimi-k2.6]}
"""


async def test_a_turn_ends_with_its_budget_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 2_000)
    (tmp_path / "config.yaml").write_text(CONFIG)
    read = answer(tool_call("read_file", {"path": "a.txt"}))
    environment = {"KODE_CONFIG": str(tmp_path / "config.yaml")}
    async with sidecar(
        [read] * 5 + [answer(text("ok"))] * 3, roots=[tmp_path], environment=environment
    ) as world:
        session = await world.session()
        first = await world.turn(session, "go", budget={"currency": "USD", "turn": 0.0001})
        assert first.stop_reason == "budget"
        assert world.model.chats == []
        # Nothing follows that looks as if there were room again.
        (updated,) = [e for e in world.events() if e["type"] == "budget.updated"]
        assert updated["forecast"] > 0
        assert updated["state"] == "reached"
        assert {use["scope"] for use in updated["uses"]} == {"turn", "day"}
        last = next(e for e in world.events() if e["type"] == "turn.completed")
        assert last["error"]["code"] == "BudgetReached"
        assert "The budget of this turn" in last["error"]["message"]

        second = await world.turn(session, "", budget={"currency": "USD", "turn": 0.2})
        assert second.stop_reason in ("end_turn", "max_tool_rounds")
        asked = [chat.body["max_completion_tokens"] for chat in world.model.chats]
        assert all(0 < tokens <= 0.2 / 4.0 * 1e6 for tokens in asked)
        with pytest.raises(RpcError, match=r"\$\.budget\.currency"):
            await world.start(session, "go", budget={"currency": "CNY", "turn": 1.0})
        with pytest.raises(RpcError, match=r"\$\.budget\.currency: write three capital"):
            await world.start(session, "go", budget={"currency": "usd", "turn": 1.0})
        with pytest.raises(RpcError, match=r"\$\.budget\.turn"):
            await world.start(session, "go", budget={"currency": "USD", "turn": -1.0})
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        assert json.dumps(world.journal(session)).count('"budget.updated"') >= 1
