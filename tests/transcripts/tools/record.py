"""The model looks around before it answers: a list, a file, a search, one after another."""

from tests.support.model_script import answer, text, tool_call
from tests.support.transcripts import Stage

FILES = {
    "src/menu.py": "PRICE = 12\n\n\ndef total(cups):\n    return cups * PRICE\n",
    "a.md": "茶\n",
}
RESPONSES = (
    answer(text("First the files."), tool_call("list_files", {"directory": "."})),
    answer(tool_call("read_file", {"path": "src/menu.py"})),
    answer(tool_call("search_code", {"query": "PRICE"})),
    answer(tool_call("read_file", {"path": "gone.py"})),
    answer(text("`total` multiplies by PRICE.")),
)


async def play(stage: Stage) -> None:
    session = await stage.world.session(model="kimi-k2.6")
    await stage.world.turn(session, "How is the total made?")
