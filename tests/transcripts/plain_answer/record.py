"""One prompt, one answer, thought about first."""

from tests.support.model_script import TokenUsage, answer, text, thinking
from tests.support.transcripts import Stage

FILES = {"menu.py": "PRICE = 12\n"}
RESPONSES = (
    answer(
        thinking("A greeting. 打个招呼。"),
        text("你好！ This is the tea house 🍵. What shall we change?"),
        usage=TokenUsage(prompt=1_200, completion=30, cached=1_000, reasoning=9),
    ),
)


async def play(stage: Stage) -> None:
    session = await stage.world.session(title="Greeting", model="kimi-k2.6")
    await stage.world.turn(session, "你好 🙏")
