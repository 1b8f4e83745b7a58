"""What the sidecar emits, applied by others: VS Code's text document, and Neovim's LSP client."""

import asyncio
import json
import os
import random
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.text_lines import PositionEncoding
from tests.conftest import FULL
from tests.support.emitted_edits import Emitted, emitted_edits
from tests.support.foreign import require
from tests.support.node_tools import run_node
from tests.support.sidecar import HANG_SECONDS

COUNT = 3_000 if FULL else 200
HERE = Path(__file__).parent


def write(cases: list[Emitted], folder: Path) -> tuple[Path, Path]:
    source, result = folder / "cases.json", folder / "result.json"
    source.write_text(json.dumps([asdict(case) for case in cases]), encoding="utf-8")
    return source, result


async def test_the_text_document_of_vs_code_gives_the_expected_text(  # E3
    rng: random.Random, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    cases = await emitted_edits(rng, tmp_path / "root", COUNT, "utf-16")
    source, result = write(cases, tmp_path)
    done = run_node(str(HERE / "apply_edits.js"), str(source), str(result))
    assert done.returncode == 0, done.stderr
    found = json.loads(result.read_bytes())
    wrong = [(c, text) for c, text in zip(cases, found, strict=True) if text != c.expected]
    assert wrong == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_neovim_gives_the_expected_text(  # E3
    rng: random.Random, tmp_path: Path, encoding: PositionEncoding
) -> None:
    nvim = require("nvim")
    (tmp_path / "root").mkdir()
    cases = await emitted_edits(rng, tmp_path / "root", COUNT, encoding)
    shown = [Emitted(c.uri, c.encoding, _lf(c.before), c.edit, to_lf(c.expected)) for c in cases]
    source, result = write(shown, tmp_path)
    own = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "DATA", "STATE")}
    command = [nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n"]
    own |= {"EDITS_IN": str(source), "EDITS_OUT": str(result)}
    command += ["-c", f"luafile {HERE / 'apply_edits.lua'}"]
    done = await asyncio.to_thread(run, command, {**os.environ, **own})
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    found = json.loads(result.read_bytes())
    wrong = [
        (case, text)
        for case, text in zip(shown, found, strict=True)
        if text != _as_neovim_has_it(case)
    ]
    assert wrong == []


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def _lf(text: str | None) -> str | None:
    """Neovim has no line ends in its text, so a mixed file is one with line feeds to it."""
    return None if text is None else to_lf(text)


def _as_neovim_has_it(case: Emitted) -> str:
    """The expected text; an end of the last line that is there, or comes with a new buffer, stays.

    To Neovim it is an option of the buffer, which no edit of text takes away.
    """
    ends = case.before is None or case.before.endswith("\n")
    return case.expected.removesuffix("\n") + "\n" if ends else case.expected
