"""What README.md tells a user of Neovim to write, followed to the letter in an empty home."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.neovim_driver import PLUGIN, require_neovim, running
from tests.support.node_tools import not_run
from tests.support.program import ROOT

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
# Each begins with a comment that says what it is for.
PROGRAM_LINE, BY_HAND, _, PACK = re.findall(r"```lua\n( *-- .*?)```", PAGE, re.DOTALL)
WAITS = """
  vim.wait(60000, function() return require('kode').statusline():find('hunks wait') ~= nil end, 20)
  return require('kode').statusline()
"""
YES = "vim.fn.confirm = function() return 1 end\n"


def checkout(folder: Path) -> Path:
    """A repository with the plugin, and the program that `dev.py demo` makes."""
    root = folder / "kode-sidecar"
    shutil.copytree(PLUGIN, root / "editors" / "nvim")
    program = root / ".venv" / "bin" / "kode-sidecar"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kode_sidecar "$@"\n')
    program.chmod(0o755)
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "editors"], [*own, "commit", "-qm", "All"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


@pytest.mark.parametrize(("suite", "lines"), [("trixie", BY_HAND), ("sid", BY_HAND), ("sid", PACK)])
async def test_who_follows_the_first_page_has_a_turn(
    tmp_path: Path, suite: str, lines: str
) -> None:  # F1
    build = require_neovim(suite)
    if shutil.which("git") is None:
        not_run("git is missing")
    root = checkout(tmp_path)
    init = tmp_path / "init.lua"
    reported = (PROGRAM_LINE + lines).replace("/path/to/kode-sidecar", str(root))
    # Nobody is there to press a key, and Neovim's own parsers lie elsewhere than when installed.
    init.write_text(f"vim.opt.rtp:append(vim.env.KODE_NVIM_LIB)\n{YES}{reported}", encoding="utf-8")
    home = {"HOME": str(tmp_path), "KODE_HOME": str(tmp_path / "state"), "KIMI_API_KEY": ""}
    async with running(build, tmp_path / "nvim", tmp_path, home, {}, init) as nvim:
        while not await nvim.lua("return vim.v.vim_did_enter == 1"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await nvim.request("nvim_command", "Kode demo")
        assert "2 hunks wait" in await nvim.lua(WAITS)
        await nvim.request("nvim_command", "Kode next")
        await nvim.request("nvim_command", "Kode accept all")
        applied = (
            "vim.wait(30000, function() return vim.bo.modified end, 20) return vim.bo.modified"
        )
        assert await nvim.lua(applied)
        await nvim.request("nvim_command", "Kode help")
        assert (await nvim.lua("return vim.api.nvim_buf_get_name(0)")).endswith("doc/kode.txt")
