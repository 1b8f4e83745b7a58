"""How a provider is reached. Light to import: a missing key is told before HTTP is loaded."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kode_sidecar.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.profiles import KNOWN_HOSTS, LOGICAL_MODELS

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
    """One provider as the user set it up. `logical_models` maps a name to ids, best first."""

    base_url: str
    api_key: str = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    timeouts: HttpTimeouts = HttpTimeouts()
    logical_models: Mapping[str, Sequence[str]] = field(default_factory=lambda: LOGICAL_MODELS)

    def missing(self) -> ErrorInfo | None:
        """What keeps every request from being sent: no key, or an address we do not talk to."""
        try:
            host = host_of(self.base_url)
        except KodeError as error:
            return error_info(error)
        if self.api_key:
            return None
        known = KNOWN_HOSTS.get(host)
        source = f" Keys are made at {known.console}." if known else ""
        return failure(
            "AuthRequired",
            f"There is no API key for {host}: set KIMI_API_KEY (or MOONSHOT_API_KEY) in the "
            f"environment, or in the .env file of the state folder, and restart.{source}",
        )


def host_of(base_url: str) -> str:
    """The host of a base URL, with its port if that is not the usual one.

    Raises KodeError `ConfigInvalid` for anything but https, or http to this machine.
    """
    try:
        url = urlsplit(base_url)
        host, port = url.hostname, url.port
    except ValueError:
        url, host, port = urlsplit(""), None, None
    if not host or url.scheme not in ("http", "https") or url.username is not None:
        text = "KIMI_BASE_URL is no web address: set it to one such as https://api.moonshot.cn/v1"
        raise KodeError("ConfigInvalid", text)
    if url.scheme == "http" and not _LOOPBACK.fullmatch(host):
        text = f"Plain http goes to this machine only: use https for {host} in KIMI_BASE_URL."
        raise KodeError("ConfigInvalid", text)
    return host if port is None else f"{host}:{port}"
