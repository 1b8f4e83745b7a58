"""`ModelClient` for all providers: chooses the model, retries, and reports the failure."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from kode_sidecar.core.domain.error_info import ErrorInfo, error_info
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    AttemptLost,
    ModelEvent,
    ModelNotice,
    ResponseFailed,
    RetryPlanned,
)
from kode_sidecar.core.kernel.contracts import ModelClient, ModelRequest
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.attempt import Attempt, RawAnswer
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.endpoint import Endpoint, OpenHost
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.rate_limiter import (
    MAX_RETRY_AFTER,
    RateLimiter,
    RetryPolicy,
    is_loading,
    is_stall,
)
from kode_sidecar.infrastructure.providers.registry import (
    HostMemory,
    ModelChoice,
    Registry,
    RetiredModels,
    SessionHosts,
    SessionRetiredModels,
    Target,
)
from kode_sidecar.infrastructure.providers.sendable_history import pictures

Sleep = Callable[[float], Awaitable[None]]
# The list of models only completes a notice, so an answer does not wait longer for it.
_LIST_SECONDS = 5.0
# A host names one thing that it refuses at a time; one that always finds another never answers.
_MOST_FIXES = 3


class DeferredClient:
    """`ModelClient` that takes requests before the HTTP library is loaded and lets them wait.

    `missing` answers at once, from the settings: a prompt without a key fails before anything
    is loaded.
    """

    def __init__(self, missing: Callable[[str], ErrorInfo | None]) -> None:
        self._missing = missing
        self._client: ModelClient | None = None
        self._ready = asyncio.Event()

    def attach(self, client: ModelClient) -> None:
        """Set the client; waiting requests continue."""
        self._client = client
        self._ready.set()

    def missing(self, model: str) -> ErrorInfo | None:
        """Return the error that prevents any request to this model; None if ready."""
        return self._missing(model)

    async def loaded(self) -> None:
        """Wait until the client is attached."""
        await self._ready.wait()

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Yield batches of events, the first one after the client is attached."""
        return self._client.stream(request) if self._client else self._later(request)

    async def _later(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        await self._ready.wait()
        assert self._client is not None
        async with aclosing(self._client.stream(request)) as batches:
            async for batch in batches:
                yield batch


class ChatClient:
    """Streams answers of all providers. Lives as long as the process; streams may run in parallel.

    The dialect of a model's profile decides how requests are written. `open_host` builds an HTTP
    client on first use, or in `warm`. Each notice, such as a retired model, is sent once. `hosts`
    remembers what hosts say of their models. `now` and `sleep` count seconds.
    """

    def __init__(
        self,
        registry: Registry,
        open_host: OpenHost,
        *,
        retired: RetiredModels | None = None,
        hosts: HostMemory | None = None,
        retry: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = registry
        self._open_host = open_host
        self._retired = retired or SessionRetiredModels()
        self._hosts = hosts or SessionHosts()
        self._listing: set[asyncio.Task[None]] = set()
        self._retry = retry or RetryPolicy(random.random)
        self._sleep = sleep
        self._now = now
        self._endpoints: dict[str, Endpoint] = {}
        self._limiters: dict[tuple[str, str], RateLimiter] = {}
        self._reported: set[ModelNotice] = set()

    def missing(self, model: str) -> ErrorInfo | None:
        """Return the error that prevents any request to this model; None if ready."""
        return self.registry.targets(model)[0].config.missing()

    def warm(self, model: str) -> None:
        """Build the HTTP client for a model now; may run in a thread. No network.

        Raises KodeError `ConfigInvalid`.
        """
        self.endpoint(self.registry.targets(model)[0].config).http()

    def endpoint(self, config: ProviderConfig) -> Endpoint:
        """Return the one endpoint of a provider. Raises KodeError `ConfigInvalid`."""
        found = self._endpoints.get(config.name)
        if found is None:
            key = (config.host(), config.api_key)
            limiter = self._limiters.setdefault(key, RateLimiter(self._now, self._sleep))
            found = Endpoint(config, self._open_host, limiter, self._hosts)
            found = self._endpoints.setdefault(config.name, found)
        return found

    def masked(self, data: bytes) -> bytes:
        """Return `data` with every key in use masked, because hosts repeat keys."""
        for config in self.registry.providers.values():
            if config.api_key:
                data = data.replace(config.api_key.encode(), b"***")
        return data

    async def aclose(self) -> None:
        """Close all connections."""
        for task in self._listing:
            task.cancel()
        await asyncio.gather(*self._listing, return_exceptions=True)
        for endpoint in self._endpoints.values():
            await endpoint.aclose()

    def encode(self, request: ModelRequest) -> tuple[str, bytes]:
        """Return the model that would get a request now, and the request's body.

        Raises KodeError `ConfigInvalid`.
        """
        target = self._choice_for(request).target
        model = self.endpoint(target.config).described(target.model)
        return model.id, DIALECTS[model.dialect].encode_request(request, model).body

    def models(self, name: str) -> list[ModelProfile]:
        """Return the models of a name in the order they are tried, as hosts describe them."""
        return [self._described(target) for target in self._choice(name).targets]

    def _choice_for(self, request: ModelRequest) -> ModelChoice:
        """Return the models to ask: with pictures, those that see come first."""
        choice = self._choice(request.model)
        if pictures(request.messages):
            choice.ask_first(lambda target: self._described(target).images)
        return choice

    def _choice(self, name: str) -> ModelChoice:
        return ModelChoice(name, self.registry, self._retired, self._hosts)

    async def stream(
        self, request: ModelRequest, raw: RawAnswer | None = None
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Yield the events of an answer in batches, including those of repeated attempts.

        The last event says how it ended; only cancellation is raised. `raw` collects the bytes of
        the last attempt.
        """
        choice = self._choice_for(request)
        started = self._now()
        failed = loading = shown = fixed = 0
        adapted: list[ModelNotice] = []
        patience: float | None = None
        while True:
            try:
                endpoint = self._ready(choice.target)
            except KodeError as error:
                yield [ResponseFailed(error_info(error))]
                return
            model = endpoint.described(choice.target.model)
            notices = [*choice.notices(), *adapted]
            attempt = Attempt(endpoint, model, request, self._reported, notices, patience)
            async with aclosing(attempt.batches(raw)) as batches:
                async for batch in batches:
                    if batch:
                        yield batch
            error = attempt.error
            if error is None:
                self._learn_list(endpoint)
                return
            if error.code == "ModelNotFound" and not attempt.started:
                if choice.next_after_unknown(await _offered(endpoint)):
                    continue
                error = choice.none_left(error)
            if attempt.refusal is not None and not error.retryable and fixed < _MOST_FIXES:
                notice = endpoint.learn_limits(model, attempt.refusal)
                if notice is not None:
                    adapted.append(notice)
                    fixed += 1
                    continue
            endpoint.learn_window(model, error)
            failed += 1
            if is_stall(error) and not attempt.started and endpoint.limiter.learn_queue():
                text = f"{error.message} It answered others meanwhile: waiting for its turn."
                yield [RetryPlanned(text, 0.0, failed + 1, error.code)]
                started = self._now()
                continue
            loading += is_loading(error)
            shown += attempt.shown
            retry = self._retry.waiting(endpoint.timeouts(model).silence)
            delay = retry.next_delay(failed - loading, error, shown, self._now() - started)
            _slow_all(endpoint.limiter, error, delay)
            lost = [AttemptLost(attempt.lost)] if attempt.lost else []
            if delay is None:
                said = attempt.usage if attempt.lost and not attempt.lost.estimated else lost
                yield [*said, ResponseFailed(error)]
                return
            dropped = [AttemptDropped(error.message)] if attempt.started else []
            yield [*dropped, *lost, RetryPlanned(error.message, delay, failed + 1, error.code)]
            await self._sleep(delay)
            patience = retry.patience(error, self._now() - started)

    async def listed(self) -> None:
        """Wait for the lists of models being fetched in the background."""
        await asyncio.gather(*self._listing)

    def _learn_list(self, endpoint: Endpoint) -> None:
        """Fetch in the background the list of models of a host that has just answered."""
        if endpoint.wants_list:
            task = asyncio.create_task(endpoint.remember_list())
            self._listing.add(task)
            task.add_done_callback(self._listing.discard)

    def _described(self, target: Target) -> ModelProfile:
        try:
            return self.endpoint(target.config).described(target.model)
        except KodeError:  # reported by the request itself
            return target.model

    def _ready(self, target: Target) -> Endpoint:
        """Return the endpoint of a target, ready for requests. Raises KodeError."""
        if missing := target.config.missing():
            raise KodeError(missing.code, missing.message, details=missing.details)
        endpoint = self.endpoint(target.config)
        endpoint.http()
        return endpoint


def _slow_all(limiter: RateLimiter, error: ErrorInfo, delay: float | None) -> None:
    """Pause all requests with this key after a rate limit, unless the wait is too long."""
    if error.code != "RateLimited" or not error.retryable:
        return
    asked = (error.retry_after_ms or 0) / 1000
    if delay is not None:
        limiter.pause(delay)
    elif asked <= MAX_RETRY_AFTER:
        limiter.pause(asked)


async def _offered(endpoint: Endpoint) -> list[str] | None:
    """Return the ids that the host offers; None if it does not say so in time."""
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            return [model.id for model in await endpoint.list_models()]
    except (KodeError, TimeoutError):
        return None
