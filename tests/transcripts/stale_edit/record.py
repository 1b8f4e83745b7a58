"""The user types into one of two proposed hunks: it is a conflict, the other one moves along."""

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set
from tests.support.transcripts import Stage

FILES = {"menu.js": "// 菜单 😀\r\nlet tea = '旧 𠮷';\r\n\r\nkeep();\r\nlet end = 1;\r\n"}
EDITS = [
    {"old": "let tea = '旧 𠮷';", "new": "let tea = '新 😀';"},
    {"old": "let end = 1;", "new": "let end = 3; // 完"},
]
RESPONSES = (
    answer(tool_call("propose_edit", {"path": "menu.js", "edits": EDITS})),
    answer(text("Proposed.")),
    answer(text("The first one met your own words.")),
)


async def play(stage: Stage) -> None:
    world = stage.world
    buffer = world.editor.open(stage.project / "menu.js", language_id="javascript")
    session = await world.session(model="kimi-k2.6")
    await world.turn(session, "Newer, please.")
    world.editor.type(buffer, 0, "// 刚刚\r\n")
    world.editor.type(buffer, buffer.text.index("旧"), "我的")
    decided = await world.decide(only_change_set(session))
    assert (len(decided["conflicts"]), len(decided["applied"])) == (1, 1)
    await world.turn(session, "What became of it?")
