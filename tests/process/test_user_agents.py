"""An agent of the user's own over the real process."""

import os
from pathlib import Path

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text
from tests.support.sidecar import sidecar

pytestmark = pytest.mark.program

CONFIG = """\
agents:
  reviewer: {base: coder, instructions: 只看不改。, tools: [read_file, explore]}
  quiet: {tools: []}
  broken: {rounds: 3}
"""


async def test_sessions_may_be_held_with_it(tmp_path: Path) -> None:  # A5 A15
    home = Path(os.environ["KODE_HOME"])
    home.mkdir(parents=True)
    (home / "config.yaml").write_text(CONFIG, encoding="utf-8")
    responses = [answer(text("one")), answer(text("two"))]
    async with sidecar(responses, roots=[tmp_path]) as world:
        reviewer = await world.session(agent="reviewer")
        await world.turn(reviewer, "look")
        names = [tool["function"]["name"] for tool in world.asked()["tools"]]
        assert names == ["read_file", "explore"]
        assert world.asked()["messages"][0]["content"].endswith("\n\n只看不改。")
        quiet = await world.session(agent="quiet")
        await world.turn(quiet, "hm")
        assert not world.asked().get("tools")
        with pytest.raises(RpcError, match="at `agents") as caught:
            await world.session(agent="broken")
        assert caught.value.code == -33020
