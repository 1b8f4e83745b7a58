"""Opens HTTP connections; imports the HTTP library only when the first one is needed."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kode_sidecar.core.settings import WebSettings
from kode_sidecar.infrastructure.providers.endpoint import OpenHost
from kode_sidecar.infrastructure.providers.memory_http import MemoryHost

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.infrastructure.http.client import HttpClient
    from kode_sidecar.infrastructure.http.foreign import ForeignHttp


def import_http_client() -> Any:
    """Import and return our module `http.client`, which imports httpx and ssl."""
    # Where click is installed, httpx would load a command line with rich and pygments: 6 MB.
    cast(dict[str, Any], sys.modules).setdefault("httpx._main", None)
    from kode_sidecar.infrastructure.http import client  # noqa: PLC0415

    return client


def open_hosts() -> OpenHost:
    """Return a function that opens connections, all with one TLS context."""
    http = import_http_client()
    return partial(http.HttpClient, tls=http.system_tls())


def open_web_http(web: WebSettings) -> "ForeignHttp":
    """Open what reads pages of the web. Call it on a thread: it imports the library."""
    import_http_client()
    from kode_sidecar.infrastructure.http.foreign import ForeignHttp  # noqa: PLC0415

    return ForeignHttp(web.hosts, "web.hosts", ports=(80, 443, *web.ports), plain=True)


def open_memory_http(host: MemoryHost) -> "HttpClient":
    """Open the HTTP client of a memory service. Call it on a thread: it imports the library."""
    http = import_http_client()
    return http.HttpClient(host, tls=http.system_tls())
