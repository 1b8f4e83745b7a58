"""`initialize`: the static answer equals pygls' own, and every refusal says what to do."""

import itertools
from dataclasses import replace
from typing import Any, cast

import pytest
from lsprotocol import types
from pygls.protocol import default_converter

from kode_sidecar import __version__
from kode_sidecar.core.protocol.handshake import (
    DOCTOR_COMMAND,
    EDITOR_SETTINGS,
    PLAIN_COMMANDS,
    PROTOCOL_VERSIONS,
    USER_SETTINGS,
    editor_settings,
    initialize_result,
)
from kode_sidecar.core.protocol.methods import PROTOCOL_VERSION
from kode_sidecar.core.settings.values import EDITOR_NAMES, NAMES
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp.language_server import build_language_server
from kode_sidecar.servers.lsp.requests import IncomingRequests
from kode_sidecar.servers.lsp.standard_lane import Features
from kode_sidecar.servers.plain import features as plain

POSITION_ENCODINGS: list[Any] = [
    None,
    [],
    ["utf-8"],
    ["utf-16", "utf-8"],
    ["utf-32", "utf-16"],
    ["x-unknown", "utf-8"],
    ["x-unknown"],
]
SYNCHRONIZATIONS: list[Any] = [
    None,
    {},
    {"willSave": True},
    {"willSave": False, "willSaveWaitUntil": True},
    {"didSave": True, "dynamicRegistration": True, "willSaveWaitUntil": False},
]
FILE_OPERATIONS: list[Any] = [
    None,
    {},
    {"didCreate": True, "willCreate": True, "didRename": True, "willDelete": False},
]
NOTEBOOKS: list[Any] = [None, {"synchronization": {"dynamicRegistration": True}}]
RENAMES: list[Any] = [None, {"prepareSupport": True}]


def client_capabilities() -> list[dict[str, Any]]:
    """Encodings by synchronisations, and the rest by one another."""
    pairs = [*itertools.product(POSITION_ENCODINGS, SYNCHRONIZATIONS, [None], [None], [None])]
    plain: list[Any] = [{}]
    rest = itertools.product(POSITION_ENCODINGS[:1], plain, FILE_OPERATIONS, NOTEBOOKS, RENAMES)
    cases: list[dict[str, Any]] = [{}]
    for encodings, synchronization, operations, notebook, rename in [*pairs, *rest]:
        case = {
            "general": present(positionEncodings=encodings),
            "textDocument": present(synchronization=synchronization, rename=rename),
            "workspace": present(fileOperations=operations),
            **present(notebookDocument=notebook),
        }
        cases.append(case)
    return cases


def present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


async def command(arguments: Any) -> None:
    """Never run here."""


def register(server: Any) -> None:
    """Register the features of clients without a plugin; no request is served here."""
    plain.register(server, cast(Any, None), cast(Any, None), cast(Any, None))


@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "kode"])
def test_the_static_answer_is_what_pygls_says(is_plain: bool) -> None:
    converter = default_converter()
    logged: list[str] = []
    sent: list[bytes] = []
    commands = [DOCTOR_COMMAND, *PLAIN_COMMANDS] if is_plain else [DOCTOR_COMMAND]
    features = Features(commands=dict.fromkeys(commands, command))
    if is_plain:
        features = replace(features, register=register)
    requests = IncomingRequests(sent.append, lambda line, _: logged.append(line))
    for capabilities in client_capabilities():
        params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": capabilities}
        if not is_plain:
            params["initializationOptions"] = {"kode": {}}
        protocol = build_language_server(
            params, features, requests=requests, put=sent.append, log=lambda _line, _error: None
        )
        theirs = converter.unstructure(
            types.InitializeResult(
                capabilities=protocol.server_capabilities, server_info=protocol.server_info
            )
        )
        ours: Any = initialize_result(params, __version__)
        del ours["capabilities"]["experimental"]
        assert ours == theirs, capabilities
    assert not logged
    assert not sent  # pygls' own answer stays inside


def test_the_newest_version_is_that_of_the_table() -> None:
    assert PROTOCOL_VERSIONS[0] == PROTOCOL_VERSION


def test_the_settings_are_those_of_the_settings_room() -> None:
    # A11
    assert tuple(EDITOR_NAMES) == tuple(EDITOR_SETTINGS)
    assert set(NAMES) - set(EDITOR_NAMES.values()) == set(USER_SETTINGS)


def kode(**options: Any) -> dict[str, Any]:
    return {"capabilities": {}, "initializationOptions": {"kode": options}}


def refusal(params: dict[str, Any]) -> KodeError:
    with pytest.raises(KodeError) as caught:
        initialize_result(params, __version__)
    return caught.value


@pytest.mark.parametrize(
    "name",
    [
        *USER_SETTINGS,
        *("apiKey", "API_KEY", "kimiApiKey", "baseUrl", "base-url", "httpProxy", "https_proxy"),
        *("host", "token", "headers", "logDir", "storageRoot", "permissions"),
    ],
)
def test_settings_an_editor_may_not_pass(name: str) -> None:
    # W12, W14: named, never repeated
    error = refusal(kode(settings={"mode": "auto", name: "sk-secret"}))
    assert error.rpc_code == -33020
    assert name in error.message
    assert error.details == {"settings": [name]}
    assert "sk-secret" not in str(error.as_data())
    nested = refusal(kode(settings={"provider": {name: "sk-secret"}}))
    assert nested.details == {"settings": [f"provider.{name}"]}


def test_allowed_and_unknown_settings_pass() -> None:
    settings = {"mode": "auto", "fileEncoding": "gbk", "model": None, "colour": "red"}
    params = kode(settings=settings)
    initialize_result(params, __version__)
    assert editor_settings(params) == {"mode": "auto", "fileEncoding": "gbk"}


def test_protocol_versions() -> None:
    result: Any = initialize_result(kode(protocolVersions=["7.0", "0.9"]), __version__)
    assert result["capabilities"]["experimental"]["kode"]["protocolVersion"] == "0.9"
    initialize_result(kode(), __version__)
    error = refusal(kode(protocolVersions=["7.0"]))
    assert error.rpc_code == -33022
    assert error.details == {"supportedVersions": ["1.0", "0.9"]}
    assert refusal(kode(protocolVersions=[])).rpc_code == -33022


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"capabilities": 5}, "$.capabilities"),
        ({"initializationOptions": {"kode": []}}, "$.initializationOptions.kode"),
        (kode(protocolVersions="0.9"), "$.initializationOptions.kode.protocolVersions"),
        (kode(settings=[1]), "$.initializationOptions.kode.settings"),
        (kode(trusted="yes"), "$.initializationOptions.kode.trusted"),
        (kode(locale=7), "$.initializationOptions.kode.locale"),
    ],
)
def test_wrong_types_name_the_path(params: dict[str, Any], path: str) -> None:
    error = refusal(params)
    assert error.rpc_code == -32602
    assert path in error.message
    assert error.details == {"path": path}


def test_foreign_initialization_options_are_left_alone() -> None:
    initialize_result(kode(settings=[]), __version__)  # an empty table of Lua
    initialize_result({"capabilities": {}, "initializationOptions": ["x"]}, __version__)
    initialize_result({"initializationOptions": {"kode": None}}, __version__)
    initialize_result({"capabilities": None}, __version__)
