"""A turn in Neovim, from 0.7 (Debian 12) on, by nothing but its own LSP client."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.foreign import KODE, play, require

TURN = Path(__file__).with_name("neovim_turn.lua")


@pytest.mark.parametrize("final_newline", [True, False], ids=["newline", "no newline"])
@pytest.mark.parametrize("kode", [KODE, None], ids=["kode", "plain"])
async def test_a_turn_in_neovim(  # E1 E3
    tmp_path: Path, kode: Mapping[str, Any] | None, final_newline: bool
) -> None:
    command = [require("nvim"), "--headless", "-u", "NONE", "-i", "NONE", "-n"]
    own = {
        f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    result = await play(
        [*command, "-c", f"luafile {TURN}"],
        tmp_path,
        kode=kode,
        final_newline=final_newline,
        environment=own,
    )
    assert result["modified"]
