"""A conversation grows too long within a turn and is summed up; later it is summed up by hand."""

from tests.support.model_script import TokenUsage, answer, text, thinking, tool_call
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage

FILES = {"a.py": "A = 1\n", "b.py": "B = 2\n"}
ENVIRONMENT = {"KODE_CONTEXT_WINDOW": "20000", "KODE_MAX_TOKENS": "2000"}
LISTS = tool_call("list_files", {"directory": "."})
RESPONSES = (
    answer(text("one " * 3_000, size=3_000), usage=TokenUsage(prompt=9_000, completion=3_000)),
    answer(thinking("?"), LISTS, usage=TokenUsage(prompt=18_500)),
    answer(text("# Task\nlist and report"), usage=TokenUsage(prompt=18_700, completion=20)),
    answer(LISTS, usage=TokenUsage(prompt=5_000)),
    answer(text("two"), usage=TokenUsage(prompt=5_200)),
    answer(text("# Task\nlisted and reported"), usage=TokenUsage(prompt=5_300, completion=20)),
    answer(text("three"), usage=TokenUsage(prompt=3_000)),
)


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6", agent="coder")
    await world.turn(session, "Talk a lot.")
    await world.turn(session, "Now list the files.")
    await world.client.request(
        "kode/context/compact", {"sessionId": session.session_id}, HANG_SECONDS
    )
    await world.turn(session, "And now?")
