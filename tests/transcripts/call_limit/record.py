"""A scout uses up its hundred calls: the next one is refused, the report still arrives."""

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text, tool_call
from tests.support.scout_model import explore, read, report, scout_model
from tests.support.transcripts import Stage

FILES = {"app.py": "import os\n"}
LISTS = tool_call("list_files", {"directory": "."})


def busy(number: int) -> RecordedResponse:
    if number < 5:
        return answer(read(call_id=f"r:{number}"), *[LISTS] * 19)
    return answer(LISTS, report("after all", ("app.py", 1, 1, "import os")))


def model() -> AnsweringModel:
    return scout_model([answer(explore("a")), answer(text("I see."))], {"a": busy})


async def play(stage: Stage) -> None:
    session = await stage.world.session(model="kimi-k2.6")
    await stage.world.turn(session, "Explore.")
    (scout,) = session.scouts.values()
    assert (scout.state, scout.tool_calls) == ("done", 100)
