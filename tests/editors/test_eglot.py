"""A turn in Emacs with eglot: it tells LF for a file with CRLF, and its changes late."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.foreign import KODE, not_available, play

TURN = Path(__file__).with_name("eglot_turn.el")
HAS_EGLOT = "(progn (package-initialize) (kill-emacs (if (require 'eglot nil t) 0 1)))"


def emacs() -> list[str]:
    """An Emacs that has eglot: of its own since 29, before as a package."""
    found = shutil.which("emacs") or not_available("emacs is missing")
    command = [found, "--batch"]
    if subprocess.run([*command, "--eval", HAS_EGLOT], capture_output=True).returncode != 0:
        not_available("this Emacs has no eglot; on Debian 12 that is elpa-eglot")
    return command


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
