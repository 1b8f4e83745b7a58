"""The handshake: what `initialize` may contain, its answer, and what is handed over afterwards.

Plain data and the standard library only, so that the process can answer before heavy imports.
Tests compare it with the types of `protocol.initialize` and with the answer of pygls.
"""

from collections.abc import Callable, Iterator

from kode_sidecar.core.protocol.base_protocol import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    FrameDecoder,
    LineDecoder,
)
from kode_sidecar.core.protocol.generated import (
    EDITOR_SETTINGS,
    REQUESTS,
    SCHEMA_SHA256,
    USER_SETTINGS,
)
from kode_sidecar.errors import KodeError

Object = dict[str, object]
Leaf = type | tuple[str, ...] | list[type]
"""A JSON type, one of several words, or a list of one type."""

Shape = Leaf | dict[str, "Shape"]
"""A leaf, or an object with these members."""

PATH = "$.initializationOptions.kode"
SETTINGS = f"{PATH}.settings"
"""An empty list is accepted here: Lua encodes an empty table as one."""

_OPTIONS: dict[str, Shape] = {
    "protocolVersions": [str],
    "client": {"name": str, "version": str},
    "locale": str,
    "trusted": bool,
    "settings": {**EDITOR_SETTINGS},
    "delivery": {"maxInlineBytes": int, "omit": [str]},
    "capabilities": {
        "permission": dict,
        "ask": dict,
        "changeSetReview": dict,
        "openDocument": dict,
        "saveDocuments": dict,
        "movedHunks": dict,
        "editor": {
            "diagnostics": dict,
            "definition": dict,
            "references": dict,
            "symbols": dict,
            "hover": dict,
            "rename": dict,
        },
    },
}
_REQUIRED = frozenset({"name"})  # in an object that is present; elsewhere null means absent


def check_options(options: object) -> None:
    """Check the options. Raises KodeError `InvalidParams` naming the first wrong value."""
    _check_members(options, _OPTIONS, PATH)


def unknown_members(options: object) -> list[str]:
    """Return the paths of unknown members, which are ignored: misspelled, or from the future.

    Names that begin with `_` are the client's own.
    """
    return list(_unknown(options, _OPTIONS, PATH))


def _unknown(value: object, shape: Shape, path: str) -> Iterator[str]:
    if isinstance(shape, dict):
        for name, member in as_object(value).items():
            known = shape.get(name)
            if known is None and not name.startswith("_"):
                yield f"{path}.{name}"
            elif known is not None:
                yield from _unknown(member, known, f"{path}.{name}")


def invalid(path: str, wrong: str = "wrong type") -> KodeError:
    """Return an `InvalidParams` about one JSON path."""
    return KodeError("InvalidParams", f"{wrong} at `{path}`", details={"path": path})


def as_object(value: object) -> Object:
    """Return `value` if it is a JSON object, else an empty one."""
    if isinstance(value, dict):
        return value  # type: ignore[reportUnknownVariableType]
    return {}


def as_list(value: object) -> list[object]:
    """Return `value` if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []  # type: ignore[reportUnknownVariableType]


def _check(value: object, shape: Shape, path: str) -> None:
    if isinstance(shape, dict):
        _check_members(value, shape, path)
    elif isinstance(shape, tuple):
        if value not in shape:
            raise invalid(path, f"expected one of {', '.join(shape)}")
    elif isinstance(shape, list):
        items = as_list(value)
        if items is not value:
            raise invalid(path)
        for index, item in enumerate(items):
            _check(item, shape[0], f"{path}[{index}]")
    elif type(value) is not shape:  # a boolean is an integer in Python but not in JSON
        raise invalid(path)


def _check_members(value: object, members: dict[str, Shape] | dict[str, Leaf], path: str) -> None:
    options = as_object(value)
    if options is not value and not (value == [] and path == SETTINGS):
        raise invalid(path)
    for name, shape in members.items():
        member = options.get(name)
        if member is not None:
            _check(member, shape, f"{path}.{name}")
        elif name in _REQUIRED:
            raise invalid(f"{path}.{name}", "missing or null")


SERVER_NAME = "kode-sidecar"
PROTOCOL_VERSIONS = ("1.0", "0.9")
"""Versions served, newest first. 0.9 and 1.0 use the same messages; the changelog has the moves."""

DOCTOR_COMMAND = "kode.doctor"
"""A command of `workspace/executeCommand` for clients without `kode/*`."""

PLAIN_COMMANDS = (
    *("kode.ask", "kode.verb", "kode.send", "kode.accept", "kode.reject", "kode.show"),
    *("kode.undo", "kode.stop", "kode.chat", "kode.sessions", "kode.model", "kode.finding"),
)
CODE_ACTION_KINDS = ("quickfix", "refactor.rewrite", "source.kode")
"""Both are for clients that send no `initializationOptions.kode`."""

POSITION_ENCODINGS = ("utf-8", "utf-16", "utf-32")
TEXT_SYNC_INCREMENTAL = 2  # LSP TextDocumentSyncKind

LIMITS: dict[str, int] = {
    "maxHeaderBytes": MAX_HEADER_BYTES,
    "maxBodyBytes": MAX_BODY_BYTES,
    "maxQueuedBytes": 64 * 1024 * 1024,
    "maxRequestsInFlight": 10_000,
}
"""`maxQueuedBytes`: output that a client may leave unread before the process exits."""

# Names of keys, hosts and proxies elsewhere: an editor that passes one made a mistake.
_FOREIGN_NAMES = (
    *("key", "keys", "token", "secret", "password", "authorization", "headers", "url", "host"),
    *("hosts", "endpoint", "tls", "verify", "trustenv", "permissions", "command"),
)
_FORBIDDEN_NAMES = frozenset(name.replace("_", "") for name in (*USER_SETTINGS, *_FOREIGN_NAMES))
_FORBIDDEN_ENDINGS = ("apikey", "baseurl", "proxy", "proxies", "authtoken", "secret", "password")


def initialize_result(params: Object, server_version: str) -> Object:
    """Return the answer to `initialize`.
    Raises KodeError: `InvalidParams` naming the JSON path, `UnsupportedVersion`, or
    `ConfigInvalid` for settings that an editor may not pass.
    """
    if not isinstance(params.get("capabilities"), dict | None):
        raise invalid("$.capabilities")
    client = as_object(params.get("capabilities"))
    version = _check_kode(params)
    capabilities = _server_capabilities(client)
    if is_plain(params):
        _add_plain_features(capabilities)
    capabilities["experimental"] = {
        "kode": {
            "protocolVersion": version,
            "server": {"name": SERVER_NAME, "version": server_version},
            "schemaSha256": SCHEMA_SHA256,
            "limits": LIMITS,
            "capabilities": _kode_capabilities(),
        }
    }
    server_info: Object = {"name": SERVER_NAME, "version": server_version}
    return {"capabilities": capabilities, "serverInfo": server_info}


def is_plain(params: Object) -> bool:
    """Return whether the client is without a plugin: it says nothing of kode."""
    return as_object(params.get("initializationOptions")).get("kode") is None


def kode_options(params: Object) -> Object:
    """Return `initializationOptions.kode`, empty if the client sent none."""
    options = params.get("initializationOptions")
    return as_object(as_object(options).get("kode"))


def editor_settings(params: Object) -> Object:
    """Return the settings the editor passed, limited to those it may set."""
    settings = as_object(kode_options(params).get("settings"))
    return {name: settings[name] for name in EDITOR_SETTINGS if settings.get(name) is not None}


def position_encoding(client_capabilities: Object) -> str:
    """Return the client's first supported choice, else `utf-16` (LSP 3.17 `positionEncodings`)."""
    offered = as_object(client_capabilities.get("general")).get("positionEncodings")
    for name in as_list(offered):
        if isinstance(name, str) and name in POSITION_ENCODINGS:
            return name
    return "utf-16"


NOTEBOOK_SYNC: Object = {"notebookSelector": [{"notebook": "*"}], "save": True}
"""All notebooks: those of another kind than Jupyter's are not edited as text."""


def _server_capabilities(client: Object) -> Object:
    sync: Object = {"openClose": True, "change": TEXT_SYNC_INCREMENTAL, "save": True}
    asked = as_object(as_object(client.get("textDocument")).get("synchronization"))
    for name in ("willSave", "willSaveWaitUntil"):
        if asked.get(name) is not None:
            sync[name] = False
    notebooks = client.get("notebookDocument")
    return {
        "positionEncoding": position_encoding(client),
        "textDocumentSync": sync,
        **({"notebookDocumentSync": NOTEBOOK_SYNC} if notebooks is not None else {}),
        "executeCommandProvider": {"commands": [DOCTOR_COMMAND]},
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
            "fileOperations": {},
        },
    }


def _add_plain_features(capabilities: Object) -> None:
    """Announce what `servers.plain` serves."""
    capabilities["executeCommandProvider"] = {"commands": [DOCTOR_COMMAND, *PLAIN_COMMANDS]}
    capabilities["codeActionProvider"] = {"codeActionKinds": list(CODE_ACTION_KINDS)}
    capabilities["codeLensProvider"] = {"resolveProvider": False}


def _kode_capabilities() -> Object:
    """Return the requests as a tree: `kode/turn/start` becomes `{"turn": {"start": {}}}`."""
    tree: Object = {}
    for method in REQUESTS:
        node = tree
        for part in method.split("/")[1:]:
            if part not in node:
                node[part] = {}
            node = as_object(node[part])
    return tree


def _check_kode(params: Object) -> str:
    """Check `kode` options and return the protocol version to speak. Raises KodeError."""
    reported = as_object(params.get("initializationOptions")).get("kode")
    kode = kode_options(params)
    if reported is not None:
        check_options(reported)
    forbidden = _forbidden_settings(kode.get("settings"), "")
    if forbidden:
        raise KodeError(
            "ConfigInvalid",
            f"an editor may not set {', '.join(forbidden)}: set it in the environment"
            " (such as KIMI_API_KEY) or in your own config.yaml",
            details={"settings": forbidden},
        )
    offered = kode.get("protocolVersions")
    for version in PROTOCOL_VERSIONS:
        if offered is None or version in as_list(offered):
            return version
    raise KodeError(
        "UnsupportedVersion",
        f"this sidecar speaks protocol {', '.join(PROTOCOL_VERSIONS)}:"
        " update the editor plugin or the sidecar",
        details={"supportedVersions": list(PROTOCOL_VERSIONS)},
    )


def _forbidden_settings(value: object, prefix: str) -> list[str]:
    """Return the dotted names under `value` that an editor may not set."""
    found: list[str] = []
    for name, child in as_object(value).items():
        plain = name.replace("_", "").replace("-", "").replace(".", "").lower()
        if plain in _FORBIDDEN_NAMES or plain.endswith(_FORBIDDEN_ENDINGS):
            found.append(prefix + name)
        else:
            found += _forbidden_settings(child, f"{prefix}{name}.")
    return found


class Handover:
    """What the entry point hands over to the full server once `initialize` is answered.

    `params` and `result` are those of `initialize`, `handshake` its two messages, and before them
    the latest that came too early. `bodies` arrived right after it, and `decoder` may hold the
    beginning of the next; its `failure` may be set.
    `unpacker_id` is the process that unpacked this one-file program, read early because that
    process may exit at any time; None for any other program.
    `wait_drained` blocks until all output of the entry point is written: call it before the next
    write.
    """

    __slots__ = (
        "bodies",
        "decoder",
        "fd_in",
        "fd_out",
        "handshake",
        "params",
        "result",
        "unpacker_id",
        "wait_drained",
    )

    def __init__(
        self,
        fd_in: int,
        fd_out: int,
        params: dict[str, object],
        result: dict[str, object],
        handshake: tuple[bytes, ...],
        decoder: FrameDecoder | LineDecoder,
        bodies: list[bytes],
        wait_drained: Callable[[], None],
        unpacker_id: int | None,
    ) -> None:
        self.fd_in = fd_in
        self.fd_out = fd_out
        self.params = params
        self.result = result
        self.handshake = handshake
        self.decoder = decoder
        self.bodies = bodies
        self.unpacker_id = unpacker_id
        self.wait_drained = wait_drained
