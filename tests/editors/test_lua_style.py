"""The Lua of the plugin and of its tests is as StyLua writes it.

`python3 -m tests.editors.test_lua_style` writes it so.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.editors.neovim_driver import PLUGIN
from tests.support.node_tools import node, node_modules

HERE = Path(__file__).parent
PINS = HERE / "lua_style"


def stylua(*options: str) -> str:
    """The names of the files that are not as StyLua writes them."""
    inits = (HERE / "neovim_init.lua", HERE.parent / "servers/acp" / "codecompanion_init.lua")
    files = [*PLUGIN.rglob("*.lua"), *inits]
    done = subprocess.run(
        [
            *node(),
            str(PINS / "style.cjs"),
            *options,
            str(PLUGIN / ".stylua.toml"),
            *map(str, files),
        ],
        env={**os.environ, "NODE_PATH": str(node_modules(PINS))},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_lua_is_formatted() -> None:
    assert stylua() == ""


if __name__ == "__main__":
    sys.stdout.write(stylua("--write"))
