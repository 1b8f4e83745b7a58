"""A turn in Emacs with eglot: it tells LF for a file with CRLF, and its changes late."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.editors.emacs_driver import emacs
from tests.support.foreign import KODE, play

TURN = Path(__file__).with_name("eglot_turn.el")


@pytest.mark.parametrize("final_newline", [True, False], ids=["newline", "no newline"])
@pytest.mark.parametrize("kode", [KODE, None], ids=["kode", "plain"])
async def test_a_turn_in_eglot(  # E1 E3
    tmp_path: Path, kode: Mapping[str, Any] | None, final_newline: bool
) -> None:
    result = await play(
        [*emacs(), "--load", str(TURN)],
        tmp_path,
        kode=kode,
        final_newline=final_newline,
        environment={"HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"},
    )
    assert result["modified"]
