"""Standard LSP beyond document sync: notifications are served at once, requests by pygls.

pygls is imported when its first request comes, because most clients never send one.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp.codec import IncomingMessage, MessageId

STANDARD_REQUESTS = frozenset({"workspace/executeCommand"})
"""The requests that pygls serves. Listed here so that no other request waits for its import."""


def _ignore(*_: Any) -> None:
    """Do nothing, for a feature that the app does not use."""


@dataclass(frozen=True)
class Features:
    """The app's callbacks for standard LSP, with plain data. All are called on the loop.

    `workspace_folders_changed(added, removed)` gets URIs, `watched_files_changed` pairs of a URI
    and a FileChangeType (1 created, 2 changed, 3 deleted), `progress_cancelled` a token. A
    command gets its arguments; its result must be JSON or a msgspec struct.

    `register(server)` adds features of pygls for the `requests` of this client; it runs on the
    loader's thread. pygls is then imported at the start, for the first answer must not be late.
    """

    workspace_folders_changed: Callable[[Sequence[str], Sequence[str]], None] = _ignore
    configuration_changed: Callable[[Any], None] = _ignore
    watched_files_changed: Callable[[Sequence[tuple[str, int]]], None] = _ignore
    progress_cancelled: Callable[[int | str], None] = _ignore
    commands: Mapping[str, Callable[[Sequence[Any]], Awaitable[Any]]] = field(
        default_factory=dict[str, Callable[[Sequence[Any]], Awaitable[Any]]]
    )
    requests: frozenset[str] = frozenset()
    register: Callable[[Any], None] = _ignore


class _Folder(Struct):
    """LSP `WorkspaceFolder`."""

    uri: str


class _FoldersEvent(Struct):
    """LSP `WorkspaceFoldersChangeEvent`."""

    added: tuple[_Folder, ...]
    removed: tuple[_Folder, ...]


class _FoldersChanged(Struct):
    """LSP `DidChangeWorkspaceFoldersParams`."""

    event: _FoldersEvent


class _ConfigurationChanged(Struct):
    """LSP `DidChangeConfigurationParams`."""

    settings: Any = None


class _FileEvent(Struct):
    """LSP `FileEvent`."""

    uri: str
    type: Literal[1, 2, 3]


class _FilesChanged(Struct):
    """LSP `DidChangeWatchedFilesParams`."""

    changes: tuple[_FileEvent, ...]


class _ProgressCancelled(Struct):
    """LSP `WorkDoneProgressCancelParams`."""

    token: int | str


def _folders_changed(features: Features, params: _FoldersChanged) -> None:
    added, removed = params.event.added, params.event.removed
    features.workspace_folders_changed(
        [folder.uri for folder in added], [folder.uri for folder in removed]
    )


STANDARD_NOTIFICATIONS: Mapping[str, tuple[Any, Callable[[Features, Any], None]]] = {
    "initialized": (object, _ignore),
    "$/setTrace": (object, _ignore),
    "window/workDoneProgress/cancel": (
        _ProgressCancelled,
        lambda features, params: features.progress_cancelled(params.token),
    ),
    "workspace/didChangeConfiguration": (
        _ConfigurationChanged,
        lambda features, params: features.configuration_changed(params.settings),
    ),
    "workspace/didChangeWatchedFiles": (
        _FilesChanged,
        lambda features, params: features.watched_files_changed(
            [(change.uri, change.type) for change in params.changes]
        ),
    ),
    "workspace/didChangeWorkspaceFolders": (_FoldersChanged, _folders_changed),
}
"""Notifications other than document sync: the type of their params, and the feature they call.

Every client sends some of them right after its start, so they must not import pygls.
"""


class StandardLane:
    """Queues requests until pygls is loaded to serve them, then passes them on at once.

    `wanted()` is called for the first request, to import pygls. `requests` are those it serves.
    """

    def __init__(
        self, refuse: Callable[[MessageId, KodeError], None], wanted: Callable[[], None]
    ) -> None:
        self._refuse = refuse
        self._wanted = wanted
        self._asked = False
        self.requests = STANDARD_REQUESTS
        self._waiting: list[IncomingMessage] = []
        self._handle: Callable[[IncomingMessage], None] | None = None
        self._cancel: Callable[[MessageId], None] = _ignore

    def submit(self, incoming: IncomingMessage) -> None:
        """Serve or queue a request that was admitted."""
        if self._handle is not None:
            self._handle(incoming)
            return
        self._waiting.append(incoming)
        self.load()

    def load(self) -> None:
        """Import pygls, if nothing has asked for it before."""
        if not self._asked:
            self._asked = True
            self._wanted()

    def cancel(self, request_id: MessageId) -> None:
        """Cancel a request, queued or running."""
        if self._handle is not None:
            self._cancel(request_id)
            return
        self._waiting = [one for one in self._waiting if one.id != request_id]
        self._refuse(request_id, KodeError("RequestCancelled", "cancelled before it began"))

    def refuse_all(self, error: KodeError) -> None:
        """Answer all requests, waiting and later ones, with an error: pygls cannot be imported."""

        def refuse(incoming: IncomingMessage) -> None:
            assert isinstance(incoming.id, int | str), "it was admitted"
            self._refuse(incoming.id, error)

        self.attach(refuse, _ignore)

    def attach(
        self, handle: Callable[[IncomingMessage], None], cancel: Callable[[MessageId], None]
    ) -> None:
        """Start passing requests on; first those that waited, in order."""
        self._handle, self._cancel = handle, cancel
        waiting, self._waiting = self._waiting, []
        for incoming in waiting:
            handle(incoming)
