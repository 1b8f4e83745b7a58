"""A model host that looks at what it is asked instead of playing a recording in order."""

from collections.abc import Callable
from typing import Any

from kode_sidecar.devtools.demo.model_server import (
    ModelServer,
    RecordedRequest,
    RecordedResponse,
    Recording,
)

Respond = Callable[[dict[str, Any]], RecordedResponse]


class AnsweringModel(ModelServer):
    """`respond(body)` makes the answer, so that many sessions can talk at once."""

    def __init__(self, respond: Respond, models: tuple[str, ...] = ("kimi-k2.6",)) -> None:
        super().__init__(Recording((), models=models), paced=False)
        self._respond = respond

    def _chat(self, request: RecordedRequest) -> RecordedResponse:
        if request.body["model"] not in self._recording.models:
            return super()._chat(request)
        self.chats.append(request)
        return self._respond(request.body)


def user_texts(body: dict[str, Any]) -> list[str]:
    """What the user has said, oldest first."""
    return [m["content"] for m in body["messages"] if m["role"] == "user"]
