"""Routes each ACP method to its handler, and gives errors the codes of ACP."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.sessions import AcpSessions
from kode_sidecar.servers.acp.tool_cards import Json
from kode_sidecar.servers.acp.types import (
    AuthenticateRequest,
    CancelNotification,
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    ResumeSessionRequest,
    SetSessionConfigOptionRequest,
    SetSessionModeRequest,
)
from kode_sidecar.servers.lsp import Connection

_AUTH_REQUIRED = -32000
_NOT_FOUND = -32002
# Errors for which ACP defines a number; all others keep our own.
_WORDS = {
    "kode/session/attach": "the editor that has it",
    "kode/turn/cancel": "session/cancel",
    "kode/turn/start": "session/prompt",
    "kode/session/": "session/",
}
"""What errors of the layers below call the methods of our own protocol, and what that is here."""
_NUMBERS = {"AuthRequired": _AUTH_REQUIRED, "SessionNotFound": _NOT_FOUND}


def serve_acp(
    connection: Connection,
    sessions: AcpSessions,
    authenticate: Callable[[AuthenticateRequest], Awaitable[Json]],
    logout: Callable[[dict[str, Any]], Json],
) -> None:
    """Serve every method that a client may call."""
    requests: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
        "authenticate": (AuthenticateRequest, authenticate),
        "logout": (dict, logout),
        "session/new": (NewSessionRequest, sessions.new),
        "session/load": (LoadSessionRequest, sessions.load),
        "session/resume": (ResumeSessionRequest, sessions.resume),
        "session/list": (ListSessionsRequest, sessions.listed),
        "session/close": (CloseSessionRequest, sessions.close),
        "session/delete": (DeleteSessionRequest, sessions.delete),
        "session/fork": (ForkSessionRequest, sessions.fork),
        "session/prompt": (PromptRequest, sessions.prompt),
        "session/set_mode": (SetSessionModeRequest, sessions.set_mode),
        "session/set_config_option": (SetSessionConfigOptionRequest, sessions.set_option),
    }
    for method, (params, handler) in requests.items():
        connection.on_request(method, params, _numbered(handler))
    connection.on_notification("session/cancel", CancelNotification, sessions.cancel)


def _numbered(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `handler` with its errors numbered as in ACP."""

    async def handle(params: Any) -> Any:
        try:
            result = handler(params)
            return await result if inspect.isawaitable(result) else result
        except KodeError as error:
            error.rpc_code = _NUMBERS.get(error.code, error.rpc_code)
            for ours, theirs in _WORDS.items():
                error.message = error.message.replace(ours, theirs)
            raise

    return handle
