"""Logs in to a server by the user's browser, which is redirected back to this machine."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from kode_sidecar.infrastructure.mcp.contracts import (
    NO_ACCESS,
    Authorize,
    McpHost,
    ServerConfig,
    server_error,
)
from kode_sidecar.infrastructure.mcp.server import Server
from kode_sidecar.infrastructure.mcp.server_store import RememberedLists

Show = Callable[[str], Awaitable[None]]
"""Shows the user an address to open in a browser."""

LOGIN_SECONDS = 600.0
"""How long the user has to agree in the browser."""

_HOST, _PORT, _PATH = "127.0.0.1", 33418, "/callback"
_MOST_BYTES = 16_384
_PAGE = (
    b"<!doctype html><meta charset=utf-8><title>kode-sidecar</title>"
    b"<p>Go back to where you began: it says how it went. This page can be closed.</p>"
)
_ANSWER = (
    b"HTTP/1.1 %s\r\ncontent-type: text/html\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
)


async def log_in(
    config: ServerConfig,
    tokens: Path,
    show: Show,
    now: Callable[[], float],
    seconds: float = LOGIN_SECONDS,
) -> int:
    """Log in to a server, save its token in a file, and return how many tools it has.

    Calls `show` only if the server asks for a log-in. Raises KodeError `ToolFailed`.
    """
    # Imported late: it loads httpx, which servers that are programs do not need.
    from kode_sidecar.infrastructure.mcp.oauth import OAuth, TokenFile  # noqa: PLC0415

    async with _Callback() as callback:

        async def visit(address: str) -> str:
            await show(address)
            try:
                async with asyncio.timeout(seconds):
                    return await callback.visited
            except TimeoutError:
                text = f"was not agreed to within {seconds:g} seconds."
                raise server_error(config.name, text, "unauthorized") from None

        login = OAuth(
            config,
            TokenFile(tokens),
            visit,
            redirect_uri=callback.address,
            client=config.login_client,
        )
        server = Server(
            config,
            McpHost(),
            RememberedLists(None),
            environment={},
            now=now,
            access=(NO_ACCESS[0], login.authorize),
        )
        try:
            return len((await server.listing()).tools)
        finally:
            await server.close()


def kept_login(config: ServerConfig, tokens: Path) -> Authorize | None:
    """Return the authorization by a stored token, which asks nobody; None without a `url`."""
    if not config.url:
        return None
    from kode_sidecar.infrastructure.mcp.oauth import OAuth, TokenFile  # noqa: PLC0415

    return OAuth(config, TokenFile(tokens), None).authorize


class _Callback:
    """Listens for the one request by which the browser delivers the answer."""

    def __init__(self) -> None:
        self.address = ""
        self.visited: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> "_Callback":
        try:
            self._server = await asyncio.start_server(self._answer, _HOST, _PORT)
        except OSError:  # the port is in use: any other will do (RFC 8252, 7.3)
            self._server = await asyncio.start_server(self._answer, _HOST, 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://{_HOST}:{port}{_PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.read(_MOST_BYTES)).split(b"\r\n", 1)[0].decode("ascii", "replace")
        method, _, target = line.partition(" ")
        target = target.partition(" ")[0]
        known = method == "GET" and urlsplit(target).path == _PATH
        status = b"200 OK" if known else b"404 Not Found"
        page = _PAGE if known else b""
        writer.write(_ANSWER % (status, len(page), page))
        writer.close()
        if known and not self.visited.done():
            self.visited.set_result(target)
