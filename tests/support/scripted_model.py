"""A model that plays what it was given: for tests and for runs without a provider."""

from collections.abc import AsyncGenerator, Sequence

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.model_event import ModelEvent, ResponseFailed
from kode_sidecar.core.kernel.contracts import ModelRequest

Script = Sequence[Sequence[ModelEvent]]
"""One answer: batches of events, as `ModelClient.stream` yields them."""


class ScriptedModel:
    """`ModelClient` that gives one script per question, in order, and keeps the questions."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.requests: list[ModelRequest] = []

    def missing(self, model: str) -> ErrorInfo | None:
        """Nothing is ever missing."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """The next script; a question too many is answered with a failure."""
        self.requests.append(request)
        if not self._scripts:
            error = failure("Provider", "The script has no answer left: add one for each question.")
            yield [ResponseFailed(error)]
            return
        for batch in self._scripts.pop(0):
            yield batch
