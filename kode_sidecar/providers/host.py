"""A model host as the rest of the providers sees it: over HTTP, or from a recording."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kode_sidecar.providers.provider_config import ProviderConfig


class HostResponse(Protocol):
    """An answer whose body is still to be read; see `http_client.HttpResponse`."""

    status: int
    headers: Mapping[str, str]

    def note_progress(self) -> None: ...

    async def read(self) -> bytes: ...

    async def read_all(self, limit: int) -> bytes: ...

    async def drain(self, seconds: float) -> None: ...


class Host(Protocol):
    """Where requests go; see `http_client.HttpClient`."""

    def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
    ) -> AbstractAsyncContextManager[HostResponse]: ...

    async def aclose(self) -> None: ...


OpenHost = Callable[[ProviderConfig], Host]
