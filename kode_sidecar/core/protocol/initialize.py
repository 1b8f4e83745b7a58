"""The types that kode adds to LSP's `initialize`.

The process answers from plain data before msgspec is imported (`protocol.handshake`); these
structs are for schema, documentation and tests, and a test compares both.
"""

from typing import Any

from msgspec import Struct

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.protocol.events import MAX_INLINE_BYTES
from kode_sidecar.core.protocol.session import Mode


class ClientInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program at the other end, for logs and bug reports."""

    name: str
    version: str | None = None


class EditorSettings(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Defaults an editor may set for its sessions; unknown names are ignored.

    `agent` names an agent, `model` a logical model or an id of the provider, `locale` is the
    language of the prompts (`zh` or `en`), `file_encoding` the encoding of files that are not
    UTF-8. `save_accepted`: a file that was saved before an accepted edit is saved after it. Only
    the user may set keys, hosts, proxies and folders: with one of them `initialize` answers
    `ConfigInvalid`.
    """

    mode: Mode | None = None
    agent: str | None = None
    model: str | None = None
    locale: str | None = None
    file_encoding: str | None = None
    save_accepted: bool | None = None


class EditorQueries(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requests `kode/editor/*` that the client answers; an object means yes."""

    diagnostics: dict[str, Any] | None = None
    definition: dict[str, Any] | None = None
    references: dict[str, Any] | None = None
    symbols: dict[str, Any] | None = None
    hover: dict[str, Any] | None = None
    rename: dict[str, Any] | None = None


class ClientCapabilities(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the client can do beyond LSP; an object, even an empty one, means yes.

    `permission`: it answers `kode/permission/request`, `ask`: it answers `kode/ask`; otherwise the
    user is asked by `window/showMessageRequest`. `open_document`: it answers `kode/openDocument`.
    `save_documents`: it answers `kode/saveDocuments`; without it accepted edits stay unsaved until
    the user saves them. `moved_hunks`: it follows `kode/changeSet/moved`. `editor`: the requests to
    language servers that it answers.
    `change_set_review` is reserved: announce it if it is true, nothing depends on it yet.
    """

    permission: dict[str, Any] | None = None
    ask: dict[str, Any] | None = None
    change_set_review: dict[str, Any] | None = None
    open_document: dict[str, Any] | None = None
    save_documents: dict[str, Any] | None = None
    moved_hunks: dict[str, Any] | None = None
    editor: EditorQueries | None = None


class Delivery(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How the client wants large texts to be sent.

    Texts in tool results and in `kode/message/list` of more than `max_inline_bytes` (in UTF-8, at
    least 1024) are sent as their beginning and a `Blob`. `omit` names what is not sent at all:
    `kode/delta`, and types of events that are not stored, such as `tool.progress`.
    """

    max_inline_bytes: int | None = MAX_INLINE_BYTES
    omit: tuple[str, ...] | None = None


class KodeInitializeOptions(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`initializationOptions.kode` of the client's `initialize`.

    `protocol_versions` are the versions it speaks; absent means the newest. `locale` is the
    language of its user interface. `trusted` says that the user trusts this workspace.
    """

    protocol_versions: tuple[str, ...] | None = None
    client: ClientInfo | None = None
    locale: str | None = None
    trusted: bool | None = False
    settings: EditorSettings | None = None
    delivery: Delivery | None = None
    capabilities: ClientCapabilities | None = None


class ServerInfo(Struct, frozen=True, kw_only=True):
    """The sidecar's name and version."""

    name: str
    version: str


class ServerLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of the connection.

    A header or a body beyond its limit ends the process, and so does unread output beyond
    `max_queued_bytes`. A request beyond `max_requests_in_flight` is answered with `Overloaded`.
    """

    max_header_bytes: int
    max_body_bytes: int
    max_queued_bytes: int
    max_requests_in_flight: int


class KodeInitializeResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """`capabilities.experimental.kode` of the server's answer.

    `schema_sha256` is the SHA-256 of the `schema.json` that this server was built with, in hex.
    `capabilities` is a tree of the supported methods: `kode/turn/start` is the object `start` in
    the object `turn`.
    """

    protocol_version: str
    server: ServerInfo
    schema_sha256: str
    limits: ServerLimits
    capabilities: dict[str, Any]


class UnsupportedVersionInfo(ErrorInfo, frozen=True, kw_only=True):
    """`error.data` of `UnsupportedVersion`, with the supported versions."""

    supported_versions: tuple[str, ...]
