"""Imports the HTTP library where it is needed: apart, for reports and jobs load no server."""

import sys
from typing import Any, cast


def import_http_client() -> Any:
    """The module `providers.http_client`, behind httpx and ssl."""
    # Where click is installed, httpx would load a command line with rich and pygments: 6 MB.
    cast(dict[str, Any], sys.modules).setdefault("httpx._main", None)
    from kode_sidecar.infrastructure.providers import http_client  # noqa: PLC0415

    return http_client
