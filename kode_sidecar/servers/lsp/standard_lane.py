"""The standard lane: LSP that pygls serves, first in, first out, after it is imported."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp.codec import Incoming, MessageId

STANDARD_REQUESTS = frozenset({"workspace/executeCommand"})
STANDARD_NOTIFICATIONS = frozenset(
    {
        "initialized",
        "$/setTrace",
        "window/workDoneProgress/cancel",
        "workspace/didChangeConfiguration",
        "workspace/didChangeWatchedFiles",
        "workspace/didChangeWorkspaceFolders",
    }
)
"""What pygls serves here. Known before it is imported, so that nothing else waits for it."""


def _ignore(*_: Any) -> None:
    """For a feature that nobody asked for."""


@dataclass(frozen=True)
class Features:
    """What the app wants to hear of standard LSP, in plain data. All are called on the loop.

    `workspace_folders_changed(added, removed)` gets URIs, `watched_files_changed` pairs of a URI
    and a FileChangeType (1 created, 2 changed, 3 deleted), `progress_cancelled` a token. A
    command gets its arguments; what it returns must be JSON or a msgspec struct.
    """

    workspace_folders_changed: Callable[[Sequence[str], Sequence[str]], None] = _ignore
    configuration_changed: Callable[[Any], None] = _ignore
    watched_files_changed: Callable[[Sequence[tuple[str, int]]], None] = _ignore
    progress_cancelled: Callable[[int | str], None] = _ignore
    commands: Mapping[str, Callable[[Sequence[Any]], Awaitable[Any]]] = field(
        default_factory=dict[str, Callable[[Sequence[Any]], Awaitable[Any]]]
    )


class StandardLane:
    """Queues messages until pygls is there to serve them, then passes them on at once."""

    def __init__(self, refuse: Callable[[MessageId, KodeError], None]) -> None:
        self._refuse = refuse
        self._waiting: list[Incoming] = []
        self._handle: Callable[[Incoming], None] | None = None
        self._cancel: Callable[[MessageId], None] = _ignore

    def submit(self, incoming: Incoming) -> None:
        """Take a request that was admitted, or a notification."""
        if self._handle is None:
            self._waiting.append(incoming)
        else:
            self._handle(incoming)

    def cancel(self, request_id: MessageId) -> None:
        """Cancel a request, queued or running."""
        if self._handle is not None:
            self._cancel(request_id)
            return
        self._waiting = [one for one in self._waiting if one.id != request_id]
        self._refuse(request_id, KodeError("RequestCancelled", "cancelled before it began"))

    def attach(
        self, handle: Callable[[Incoming], None], cancel: Callable[[MessageId], None]
    ) -> None:
        """Begin to pass on: first everything that waited, in order."""
        self._handle, self._cancel = handle, cancel
        waiting, self._waiting = self._waiting, []
        for incoming in waiting:
            handle(incoming)
