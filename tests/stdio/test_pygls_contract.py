"""The names of pygls that `server.language_server` leans on. pygls is pinned; this says why."""

import inspect
from importlib.metadata import version

from lsprotocol import types
from msgspec import Raw
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from kode_sidecar.servers.lsp.codec import IncomingMessage
from kode_sidecar.servers.lsp.language_server import KodeProtocol, build_language_server
from kode_sidecar.servers.lsp.requests import IncomingRequests
from kode_sidecar.servers.lsp.standard_lane import (
    STANDARD_NOTIFICATIONS,
    STANDARD_REQUESTS,
    Features,
)

FAST_LANE = {
    *("initialize", "shutdown", "exit"),
    *(f"textDocument/{name}" for name in ("didOpen", "didChange", "didSave", "didClose")),
    *(f"notebookDocument/{name}" for name in ("didOpen", "didChange", "didClose")),
}


def server() -> tuple[KodeProtocol, list[bytes], list[str]]:
    sent: list[bytes] = []
    logged: list[str] = []
    requests = IncomingRequests(sent.append, lambda line, _: logged.append(line))
    protocol = build_language_server(
        {"capabilities": {}},
        Features(),
        requests=requests,
        put=sent.append,
        log=lambda line, _: logged.append(line),
    )
    return protocol, sent, logged


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(LanguageServerProtocol, name)).parameters)


def test_versions_are_the_pinned_ones() -> None:
    assert version("pygls") == "2.1.1"
    assert version("lsprotocol") == "2025.0.0"


def test_what_is_overridden_or_called_is_there() -> None:
    assert parameters("_send_response") == ["self", "msg_id", "result", "error"]
    assert parameters("_send_handler_result") == ["self", "future", "msg_id"]
    assert parameters("_send_data") == ["self", "data"]
    assert parameters("_handle_cancel_notification") == ["self", "msg_id"]
    assert parameters("_serialize_message") == ["self", "data"]
    assert parameters("structure_message") == ["self", "data"]
    assert parameters("handle_message") == ["self", "message"]
    assert parameters("send_request")[:3] == ["self", "method", "params"]
    assert list(inspect.signature(LanguageServer.report_server_error).parameters) == [
        *("self", "error", "source")
    ]
    protocol, _, _ = server()
    assert protocol._request_futures == {}
    assert protocol._result_types == {}


def test_the_lane_knows_what_pygls_serves() -> None:
    protocol, _, _ = server()
    served = {*protocol.fm.features, *protocol.fm.builtin_features}
    assert served == {*STANDARD_NOTIFICATIONS} | STANDARD_REQUESTS | FAST_LANE
    for method in STANDARD_REQUESTS:
        assert "id" in inspect.signature(types.METHOD_TO_TYPES[method][0]).parameters
    for method in STANDARD_NOTIFICATIONS:
        assert "id" not in inspect.signature(types.METHOD_TO_TYPES[method][0]).parameters


def test_requests_leave_nothing_behind() -> None:
    protocol, sent, logged = server()
    params = Raw(b'{"command":"nope"}')
    for number in range(2_000):
        method = "workspace/executeCommand"
        protocol.handle(IncomingMessage(jsonrpc="2.0", id=number, method=method, params=params))
    assert protocol._request_futures == {}
    assert protocol._result_types == {}
    assert len(sent) == 2_000
    assert not logged
