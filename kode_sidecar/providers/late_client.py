"""A model that can be asked before its HTTP library is loaded: the question waits."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.model_event import ModelEvent
from kode_sidecar.kernel.contracts import ModelClient, ModelRequest


class LateClient:
    """`ModelClient` in front of one that comes later.

    `missing` answers at once, from the settings: a prompt without a key fails before anything
    is loaded.
    """

    def __init__(self, missing: Callable[[str], ErrorInfo | None]) -> None:
        self._missing = missing
        self._client: ModelClient | None = None
        self._ready = asyncio.Event()

    def attach(self, client: ModelClient) -> None:
        """The client is there; waiting questions go on."""
        self._client = client
        self._ready.set()

    def missing(self, model: str) -> ErrorInfo | None:
        """See `ModelClient.missing`."""
        return self._missing(model)

    async def loaded(self) -> None:
        """Wait until the client is there."""
        await self._ready.wait()

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """See `ModelClient.stream`."""
        return self._client.stream(request) if self._client else self._later(request)

    async def _later(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        await self._ready.wait()
        assert self._client is not None
        async with aclosing(self._client.stream(request)) as batches:
            async for batch in batches:
                yield batch
