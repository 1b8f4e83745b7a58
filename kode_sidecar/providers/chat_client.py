"""`ModelClient` for the host of one provider: which model, how often, and what failed."""

import asyncio
import random
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from kode_sidecar.domain.error_info import ErrorInfo, error_info
from kode_sidecar.domain.model_event import (
    AttemptDropped,
    ModelEvent,
    ModelNotice,
    ResponseFailed,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import ModelRequest
from kode_sidecar.providers.attempt import Attempt
from kode_sidecar.providers.dialects import DIALECTS
from kode_sidecar.providers.model_choice import ModelChoice
from kode_sidecar.providers.model_list import (
    MAX_MODELS_BYTES,
    MODELS_PATH,
    OfferedModel,
    read_models,
)
from kode_sidecar.providers.provider_config import ProviderConfig
from kode_sidecar.providers.provider_errors import ProviderErrors
from kode_sidecar.providers.registry import RetiredModels, SessionRetiredModels
from kode_sidecar.providers.retry import RetryPolicy

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.providers.http_client import HttpClient

Sleep = Callable[[float], Awaitable[None]]

# The list of models only adorns a notice; an answer does not wait longer for it.
_LIST_SECONDS = 5.0


class ChatClient:
    """Answers of one provider. Lives as long as the process; streams may run side by side.

    `open_http` builds the HTTP client on first use, or in `warm`. What concerns the user only
    once, such as a retired model, is told once.
    """

    def __init__(
        self,
        config: ProviderConfig,
        open_http: "Callable[[ProviderConfig], HttpClient]",
        *,
        retired: RetiredModels | None = None,
        retry: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._config = config
        self._open_http = open_http
        self._retired = retired or SessionRetiredModels()
        self._retry = retry or RetryPolicy(random.random)
        self._sleep = sleep
        self._http: HttpClient | None = None
        self._opening = threading.Lock()
        self._told: set[ModelNotice] = set()

    def missing(self) -> ErrorInfo | None:
        """What keeps this model from being asked at all; None if ready."""
        return self._config.missing()

    def warm(self) -> "HttpClient":
        """Build the HTTP client now; may run in a thread. Raises KodeError `ConfigInvalid`."""
        with self._opening:
            if self._http is None:
                self._http = self._open_http(self._config)
            return self._http

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()

    def encode(self, request: ModelRequest) -> tuple[str, bytes]:
        """The model that a request would go to now, and the body it would go with.

        Raises KodeError `ConfigInvalid`.
        """
        choice = ModelChoice(request.model, self.warm().host, self._config, self._retired)
        profile = choice.profile
        return profile.id, DIALECTS[profile.dialect].encode_request(request, profile).body

    async def list_models(self) -> list[OfferedModel]:
        """The models the host serves to this key. Raises KodeError."""
        http = self.warm()
        headers = {"authorization": f"Bearer {self._config.api_key}"}
        async with http.stream("GET", MODELS_PATH, None, headers) as response:
            body = await response.read_all(MAX_MODELS_BYTES)
        if response.status == 200:
            return read_models(body, http.host)
        errors = ProviderErrors(http.host, self._config.api_key)
        error = errors.response(response.status, response.headers, body, "list")
        raise KodeError(error.code, error.message, http_status=response.status)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """See `ModelClient.stream`."""
        if missing := self.missing():
            yield [ResponseFailed(missing)]
            return
        try:
            http = self.warm()
        except KodeError as error:
            yield [ResponseFailed(error_info(error))]
            return
        choice = ModelChoice(request.model, http.host, self._config, self._retired)
        errors = ProviderErrors(http.host, self._config.api_key)
        failed = shown = 0
        while True:
            profile = choice.profile
            dialect = DIALECTS[profile.dialect]
            body, dropped = dialect.encode_request(request, profile)
            decoder = dialect.new_decoder(request, profile, errors)
            attempt = Attempt(decoder, errors, [*choice.notices(), *dropped], self._told)
            headers = dialect.headers(self._config.api_key)
            answer = attempt.batches(http, profile.id, dialect.path, headers, body)
            async with aclosing(answer) as batches:
                async for batch in batches:
                    if batch:
                        yield batch
            error = attempt.error
            if error is None:
                return
            if error.code == "ModelNotFound" and not attempt.started:
                if choice.next_after_unknown(await self._offered()):
                    continue
                error = choice.none_left(error)
            failed += 1
            shown += attempt.shown
            delay = self._retry.next_delay(failed, error, shown)
            if delay is None:
                yield [*attempt.usage, ResponseFailed(error)]
                return
            if attempt.started:
                yield [AttemptDropped(error.message)]
            await self._sleep(delay)

    async def _offered(self) -> list[OfferedModel]:
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                return await self.list_models()
        except (KodeError, TimeoutError):
            return []
