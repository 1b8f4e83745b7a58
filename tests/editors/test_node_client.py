"""A turn in a Node client made of the parts that VS Code's own client is made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.foreign import KODE, play
from tests.support.node_tools import node, node_modules

TURN = Path(__file__).with_name("node_turn.js")


@pytest.mark.parametrize("final_newline", [True, False], ids=["newline", "no newline"])
@pytest.mark.parametrize("kode", [KODE, None], ids=["kode", "plain"])
async def test_a_turn_in_node(  # E1 E3
    tmp_path: Path, kode: Mapping[str, Any] | None, final_newline: bool
) -> None:
    await play(
        [*node(), str(TURN)],
        tmp_path,
        kode=kode,
        final_newline=final_newline,
        environment={"NODE_PATH": str(node_modules())},
    )
