"""The host refuses: a filtered question, a wrong key, a request that is not sound."""

from tests.support.model_script import answer, failure, text
from tests.support.transcripts import Stage

FILES = {"menu.py": "PRICE = 12\n"}
RESPONSES = (
    failure(400, "content_filter", "The request was rejected because it was considered high risk"),
    failure(401, "invalid_authentication_error", "Invalid Authentication"),
    failure(400, "invalid_request_error", "tokens exceed the limit"),
    answer(text("This one is fine.")),
)


async def play(stage: Stage) -> None:
    session = await stage.world.session(model="kimi-k2.6")
    reasons = [(await stage.world.turn(session, f"Question {n}")).stop_reason for n in range(4)]
    assert reasons == ["error", "error", "error", "end_turn"]
