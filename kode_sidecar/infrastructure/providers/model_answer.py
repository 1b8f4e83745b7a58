"""One request, one whole answer: for programs that import the package and want no stream."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from itertools import count

from msgspec import Struct

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Block, Cost, LostUsage, Usage
from kode_sidecar.core.domain.model_event import FinishReason, ModelNotice, ResponseFinished
from kode_sidecar.core.kernel import MessageAssembler
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.infrastructure.providers.attempt import RawAnswer
from kode_sidecar.infrastructure.providers.chat_client import ChatClient


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """The whole answer to one request; with `error` it broke off, and `content` is a part of it.

    `asked` is the name in the request, `model` the id that the host served, `provider` whose host
    it was. `finish_reason` is ours, `raw_finish_reason` the host's own word. `raw` is the body of
    the last answer as it came, for debugging, with keys masked.
    """

    asked: str
    content: tuple[Block, ...] = ()
    usage: Usage | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    lost: LostUsage | None = None
    finish_reason: FinishReason | None = None
    raw_finish_reason: str | None = None
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    notices: tuple[ModelNotice, ...] = ()
    error: ErrorInfo | None = None
    raw: bytes = b""


async def send_message(client: ChatClient, request: ModelRequest) -> ModelAnswer:
    """Send a request and return the whole answer, equal to the collected stream of the request.

    With `request.stream` False the host is asked not to stream. A failure is returned as `error`,
    not raised.
    """
    numbers = count(1)
    assembler = MessageAssembler(lambda: f"b{next(numbers)}", "", "")
    raw = RawAnswer()
    notices: list[ModelNotice] = []
    raw_reason: str | None = None
    async with aclosing(client.stream(request, raw)) as batches:
        async for batch in batches:
            assembler.feed(batch)
            notices.extend(event for event in batch if isinstance(event, ModelNotice))
            for event in batch:
                if isinstance(event, ResponseFinished):
                    raw_reason = event.raw_reason
    if assembler.error is None:
        assembler.finish()
    else:
        assembler.abort(assembler.error.message)
    return ModelAnswer(
        asked=request.model,
        content=tuple(assembler.blocks),
        usage=assembler.usage,
        cost=assembler.cost,
        cost_usd=assembler.cost_usd,
        lost=assembler.lost,
        finish_reason=assembler.finish_reason,
        raw_finish_reason=raw_reason,
        provider=assembler.provider,
        model=assembler.model,
        response_id=assembler.response_id,
        notices=tuple(notices),
        error=assembler.error,
        raw=client.masked(bytes(raw.body)),
    )


class BlockingModels:
    """Requests whole answers in code without an event loop. Close it, or use `with`.

    Its own loop keeps connections open between requests; use it in one thread, and not inside a
    running loop. `open_client` makes the client.
    """

    def __init__(self, open_client: Callable[[], ChatClient]) -> None:
        self._runner = asyncio.Runner()
        self._client = open_client()

    def send_message(self, request: ModelRequest, *, stream: bool = True) -> ModelAnswer:
        """Send a request and return the whole answer; see the function `send_message`."""
        asked = replace(request, stream=stream)
        return self._runner.run(send_message(self._client, asked))

    def close(self) -> None:
        """Close all connections."""
        self._runner.run(self._client.aclose())
        self._runner.close()

    def __enter__(self) -> "BlockingModels":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
