"""One provider in use: its connections, its pace, and what it says of its models."""

import threading

from kode_sidecar.errors import KodeError
from kode_sidecar.providers.dialects import DIALECTS
from kode_sidecar.providers.host import Host, OpenHost
from kode_sidecar.providers.model_list import (
    MAX_MODELS_BYTES,
    MODELS_PATH,
    OfferedModel,
    read_models,
)
from kode_sidecar.providers.profiles import ModelProfile, with_facts
from kode_sidecar.providers.provider_config import ProviderConfig
from kode_sidecar.providers.rate_limiter import RateLimiter


class Endpoint:
    """Lives as long as the process. `limiter` is shared by all endpoints of one key.

    Raises KodeError `ConfigInvalid` for an address that is none.
    """

    def __init__(self, config: ProviderConfig, open_host: OpenHost, limiter: RateLimiter) -> None:
        self.config = config
        self.errors = config.errors()
        self.limiter = limiter
        self._open_host = open_host
        self._http: Host | None = None
        self._opening = threading.Lock()
        self._offered: dict[str, OfferedModel] = {}

    def http(self) -> Host:
        """The HTTP client, built on first use, in any thread. Raises KodeError `ConfigInvalid`."""
        with self._opening:
            if self._http is None:
                self._http = self._open_host(self.config)
            return self._http

    def headers(self, model: ModelProfile) -> dict[str, str]:
        """The headers of a request, key included."""
        return self.config.headers(dict(DIALECTS[model.dialect].headers(self.config.api_key)))

    def described(self, model: ModelProfile) -> ModelProfile:
        """`model` with what the host last said of it."""
        offered = self._offered.get(model.id)
        if offered is None:
            return model
        return with_facts(
            model,
            context_window=offered.context_length,
            images=offered.supports_image_in,
            reasoning=offered.supports_reasoning,
        )

    async def list_models(self) -> list[OfferedModel]:
        """The models the host serves to this key. Raises KodeError."""
        http = self.http()
        headers = self.headers(self.config.profile.model("list"))
        async with http.stream("GET", MODELS_PATH, None, headers) as response:
            body = await response.read_all(MAX_MODELS_BYTES)
        if response.status != 200:
            error = self.errors.response(response.status, response.headers, body, "list")
            raise KodeError(error.code, error.message, http_status=response.status)
        models = read_models(body, self.errors.host, self.config.url_name)
        self._offered = {model.id: model for model in models}
        return models

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()
