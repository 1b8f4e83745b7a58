"""How a provider is reached. Light to import: a missing key is told before HTTP is loaded."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from kode_sidecar.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.builtin_providers import KIMI, KNOWN_HOSTS
from kode_sidecar.providers.profiles import ProviderProfile
from kode_sidecar.providers.provider_errors import ProviderErrors

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(frozen=True)
class HttpTimeouts:
    """Seconds (W9). There is no total limit.

    `first_byte` runs from the request to the head of the response, connecting included; `idle`
    from one delta to the next, keep-alive comments not counted.
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 120.0
    write: float = 30.0


@dataclass(frozen=True)
class ProviderConfig:
    """One provider as the user set it up: `base_url` may differ from its profile's."""

    base_url: str
    api_key: str = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    timeouts: HttpTimeouts = HttpTimeouts()
    profile: ProviderProfile = KIMI

    @property
    def name(self) -> str:
        """The provider's name, as in `name/model`."""
        return self.profile.name

    @property
    def url_name(self) -> str:
        """What the user sets to move the provider elsewhere."""
        return self.profile.base_url_env or f"providers.{self.name}.base_url"

    def host(self) -> str:
        """Raises KodeError `ConfigInvalid`."""
        return host_of(self.base_url, self.url_name)

    def errors(self) -> ProviderErrors:
        """What reads this provider's refusals. Raises KodeError `ConfigInvalid`."""
        host = self.host()
        own = self.profile if self.base_url == self.profile.base_url else None
        known = KNOWN_HOSTS.get(host, own)
        return ProviderErrors(
            host,
            self.api_key,
            key_name=(self.profile.api_key_env or (f"providers.{self.name}.api_key_env",))[0],
            url_name=self.url_name,
            console=known.console if known else "",
            sibling=known.sibling if known else "",
        )

    def headers(self, dialect: dict[str, str]) -> dict[str, str]:
        """Those of the dialect as this provider wants them."""
        headers = {**dialect, **{k.lower(): v for k, v in self.profile.headers.items()}}
        auth = self.profile.auth
        if auth is None and self.api_key:
            return headers
        for name in ("authorization", "x-api-key"):
            headers.pop(name, None)
        if auth is not None and self.api_key:
            headers[auth.header.lower()] = auth.prefix + self.api_key
        return headers

    def missing(self) -> ErrorInfo | None:
        """What keeps every request from being sent: no key, or an address we do not talk to."""
        try:
            self.host()
        except KodeError as error:
            return error_info(error)
        names = self.profile.api_key_env
        if self.api_key or not names:
            return None
        errors = self.errors()
        source = f" Keys are made at {errors.console}." if errors.console else ""
        others = f" (or {', '.join(names[1:])})" if names[1:] else ""
        return failure(
            "AuthRequired",
            f"There is no API key for {errors.host}: set {names[0]}{others} in the "
            f"environment, or in the .env file of the state folder, and restart.{source}",
        )


@lru_cache(64)
def host_of(base_url: str, setting: str = "KIMI_BASE_URL") -> str:
    """The host of a base URL, with its port if that is not the usual one.

    Raises KodeError `ConfigInvalid` for anything but https, or http to this machine.
    """
    try:
        url = urlsplit(base_url)
        host, port = url.hostname, url.port
    except ValueError:
        url, host, port = urlsplit(""), None, None
    if not host or url.scheme not in ("http", "https") or url.username is not None:
        text = f"{setting} is no web address: set it to one such as https://api.moonshot.cn/v1"
        raise KodeError("ConfigInvalid", text)
    if url.scheme == "http" and not _LOOPBACK.fullmatch(host):
        text = f"Plain http goes to this machine only: use https for {host} in {setting}."
        raise KodeError("ConfigInvalid", text)
    return host if port is None else f"{host}:{port}"
