"""An answer breaks off after some words: they are taken back and the model is asked again."""

from tests.support.model_script import answer, broken_off, failure, text, thinking
from tests.support.transcripts import Stage

FILES = {"menu.py": "PRICE = 12\n"}
BUSY = failure(
    429, "engine_overloaded_error", "The engine is currently overloaded", {"retry-after": "0"}
)
RESPONSES = (
    broken_off(answer(thinking("Let me see."), text("It costs tw")), 6),
    answer(text("It costs twelve.")),
    BUSY,
    answer(text("Still twelve.")),
)


async def play(stage: Stage) -> None:
    session = await stage.world.session(model="kimi-k2.6")
    await stage.world.turn(session, "What does it cost?")
    await stage.world.turn(session, "And now?")
