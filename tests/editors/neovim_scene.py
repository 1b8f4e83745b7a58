"""A project that a model has something to say about, with the plugin open in it."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.devtools.demo.model_server import ModelServer
from tests.editors.neovim_driver import Neovim
from tests.support.model_script import DemoCall, tool_call

MENU = "// 菜单 🍵\r\nexport const 价 = { 龙井: 38 };\r\n\r\nexport const tax = 0;\r\n"
RECEIPT = "// 小票\r\nlet 合计 = 1;\r\nkeep();\r\nmore();\r\nlet end = 1;\r\n"


@dataclass
class Scene:
    """A project, the model, and Neovim in it."""

    root: Path
    model: ModelServer
    nvim: Neovim

    def asked(self, index: int) -> str:
        """What the model was asked in its `index`th request, as one text."""
        return json.dumps(self.model.chats[index].body, ensure_ascii=False)


Play = Callable[..., AbstractAsyncContextManager[Scene]]
"""`async with play(*answers)`: Neovim, and a model that says these in order, or what `respond`
makes of each question; all else are options of the plugin.
"""


def lay_out(root: Path) -> None:
    """A repository with two files of CR LF, Chinese and emoji."""
    (root / ".git").mkdir(parents=True)
    (root / "菜单.js").write_bytes(MENU.encode())
    (root / "receipt.js").write_bytes(RECEIPT.encode())


def proposal(path: str, *edits: tuple[str, str]) -> DemoCall:
    """A call that proposes edits, each (old, new)."""
    reported = [{"old": old, "new": new} for old, new in edits]
    return tool_call("propose_edit", {"path": path, "edits": reported}, call_id=f"edit-{path}")
