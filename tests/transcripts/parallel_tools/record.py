"""Eight calls that read in one answer: they race each other, the model gets them in order."""

from tests.support.model_script import answer, text, tool_call
from tests.support.transcripts import Stage

FILES = {f"part{number}.py": f"NUMBER = {number}\n" * (1 + 400 * number) for number in range(4)}
RESPONSES = (
    answer(
        *(
            tool_call("read_file", {"path": f"part{number}.py"}, call_id=f"read:{number}")
            for number in range(4)
        ),
        tool_call("search_code", {"query": "NUMBER = 2"}, call_id="search:4"),
        tool_call("list_files", {"directory": "."}, call_id="list:5"),
        tool_call("search_code", {"query": "nowhere at all"}, call_id="search:6"),
        tool_call("read_file", {"path": "missing.py"}, call_id="read:7"),
    ),
    answer(text("Four parts.")),
)


async def play(stage: Stage) -> None:
    session = await stage.world.session(model="kimi-k2.6")
    await stage.world.turn(session, "Read them all.")
