"""One provider in use: its connections, its rate limits, and the models it lists."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol, cast

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.host_facts import NO_LIMITS, HostFacts, OfferedModel
from kode_sidecar.core.domain.model_event import ModelNotice
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpRequest, HttpTimeouts
from kode_sidecar.infrastructure.providers.dialects import DIALECTS
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, with_facts
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.rate_limiter import RateLimiter
from kode_sidecar.infrastructure.providers.refusal_fixes import Refusal, fix_of, with_limits
from kode_sidecar.infrastructure.providers.registry import HostMemory, SessionHosts

MODELS_PATH = "/models"
NOT_THERE = (404, 405, 501)
"""The statuses of an address that a host does not serve."""
# What is loaded comes first: a model may be able to read more than its host has room for.
_WINDOWS = (
    "loaded_context_length",  # LM Studio
    "n_ctx",  # llama.cpp, in `meta`
    "context_length",  # Moonshot, OpenRouter
    "max_model_len",  # vLLM, SGLang
    "max_input_tokens",  # LiteLLM, Anthropic
    "max_context_length",  # Mistral, LM Studio
    "context_window",  # Groq
)
MAX_MODELS_BYTES = 4 * 1024 * 1024


class HostResponse(Protocol):
    """An answer whose body is not read yet, over HTTP or from a recording.

    `http.response.HttpResponse` documents each method.
    """

    status: int
    headers: Mapping[str, str]

    def note_progress(self) -> None: ...

    async def read(self) -> bytes: ...

    async def read_all(self, limit: int) -> bytes: ...

    async def drain(self, seconds: float) -> None: ...


class Host(Protocol):
    """Takes requests: `http.client.HttpClient`, or a recording."""

    def stream(self, request: HttpRequest, /) -> AbstractAsyncContextManager[HostResponse]: ...

    async def aclose(self) -> None: ...


OpenHost = Callable[[ProviderConfig], Host]


def read_models(body: bytes, host: str, url_name: str = "KIMI_BASE_URL") -> list[OfferedModel]:
    """Return the models in the host's order, without unreadable entries.

    A field of an unexpected type counts as absent. Raises KodeError `Provider`.
    """
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    fields = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
    entries: object = fields.get("data", fields.get("models", answer))
    if not isinstance(entries, list):
        text = f"{host} did not answer with a list of models: check {url_name}."
        raise KodeError("Provider", text, retryable=False)
    return [model for entry in cast(list[Any], entries) if (model := _model(entry)) is not None]


def _model(entry: Any) -> OfferedModel | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, Any], entry)
    model_id = fields.get("id") or fields.get("name")
    if not isinstance(model_id, str):
        return None
    return OfferedModel(
        model_id,
        _window(fields),
        _flag(fields.get("supports_image_in")),
        _flag(fields.get("supports_reasoning")),
    )


def _window(fields: dict[str, Any]) -> int | None:
    """Return the context window of a listed model, under the name that its host has for it."""
    nested = (fields.get(name) for name in ("meta", "model_info", "limits"))
    places = [fields, *(cast(dict[str, Any], one) for one in nested if isinstance(one, dict))]
    said = (place.get(name) for name in _WINDOWS for place in places)
    found = (one for one in said if isinstance(one, int) and not isinstance(one, bool) and one > 0)
    return next(found, None)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


class Endpoint:
    """The one client of a provider; lives as long as the process.

    All endpoints of one key share `limiter`. `hosts` remembers what the host says. Raises KodeError
    `ConfigInvalid` for an invalid address.
    """

    def __init__(
        self,
        config: ProviderConfig,
        open_host: OpenHost,
        limiter: RateLimiter,
        hosts: HostMemory | None = None,
    ) -> None:
        self.config = config
        self.errors = config.errors()
        self.limiter = limiter
        self._open_host = open_host
        self._http: Host | None = None
        self._opening = threading.Lock()
        self._host = config.host()
        self._hosts = hosts or SessionHosts()

    def http(self) -> Host:
        """Return the HTTP client, built on first use, in any thread.

        Raises KodeError `ConfigInvalid`.
        """
        with self._opening:
            if self._http is None:
                self._http = self._open_host(self.config)
            return self._http

    def timeouts(self, model: ModelProfile) -> HttpTimeouts:
        """Return the timeouts of a request to a model."""
        return self.config.timeouts.of(model.timeouts)

    def headers(self, model: ModelProfile) -> dict[str, str]:
        """Return the headers of a request, including the key."""
        return self.config.headers(dict(DIALECTS[model.dialect].headers(self.config.api_key)))

    def described(self, model: ModelProfile) -> ModelProfile:
        """Return `model` as the host last described it."""
        facts = self._hosts.facts(self._host)
        offered = facts.offered(model.id)
        limits = facts.limits.get(model.id, NO_LIMITS)
        if model.context_window is None and model.id in facts.windows:
            model = with_facts(model, context_window=facts.windows[model.id])
        if offered is None:
            return with_limits(model, limits)
        model = with_facts(
            model,
            context_window=offered.context_length,
            images=offered.supports_image_in,
            reasoning=offered.supports_reasoning,
        )
        return with_limits(model, limits)

    def learn_limits(self, model: ModelProfile, refusal: Refusal) -> ModelNotice | None:
        """Remember what a refusal says of the model; return a notice if that was new."""
        known = self._hosts.facts(self._host).limits.get(model.id, NO_LIMITS)
        fix = fix_of(refusal, model, known)
        if fix is None:
            return None
        self._keep(self._hosts.facts(self._host).with_limits(model.id, fix.limits))
        return ModelNotice("RequestAdapted", fix.text)

    def learn_window(self, model: ModelProfile, error: ErrorInfo) -> None:
        """Save the context window that a refusal names; `described` uses it if none is known."""
        window = (error.details or {}).get("window")
        if error.code == "ContextOverflow" and isinstance(window, int):
            self._keep(self._hosts.facts(self._host).with_window(model.id, window))

    def _keep(self, facts: HostFacts) -> None:
        # These facts are hints: if they cannot be saved, they are learned again.
        with suppress(KodeError):
            self._hosts.keep(self._host, facts)

    @property
    def wants_list(self) -> bool:
        """Whether to fetch the host's list of models in the background."""
        return self._hosts.wants_list(self._host)

    async def remember_list(self) -> None:
        """Fetch and save the list of models; a host that fails is asked again tomorrow."""
        facts = self._hosts.facts(self._host)
        self._keep(facts.with_list(facts.models, time.time()))
        with suppress(KodeError):
            await self.list_models()

    async def list_models(self) -> list[OfferedModel]:
        """Return the models the host serves to this key. Raises KodeError."""
        http = self.http()
        headers = self.headers(self.config.profile.model("list"))
        async with http.stream(HttpRequest("GET", MODELS_PATH, headers)) as response:
            body = await response.read_all(MAX_MODELS_BYTES)
        if response.status != 200:
            error = self.errors.response(response.status, response.headers, body, "list")
            raise KodeError(error.code, error.message, http_status=response.status)
        models = read_models(body, self.errors.host, self.config.url_name)
        self._keep(self._hosts.facts(self._host).with_list(models, time.time()))
        return models

    async def has_chat_api(self) -> bool:
        """Ask for an answer to nothing, which hosts refuse free of charge. Raises KodeError.

        This distinguishes a host that has no list of models from a wrong address.
        """
        model = self.config.profile.model("none")
        path, headers = DIALECTS[model.dialect].path, self.headers(model)
        async with self.http().stream(HttpRequest("POST", path, headers, b"{}")) as response:
            body = await response.read_all(MAX_MODELS_BYTES)
        error = self.errors.response(response.status, response.headers, body, model.id)
        return response.status not in NOT_THERE or error.code == "ModelNotFound"

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()
