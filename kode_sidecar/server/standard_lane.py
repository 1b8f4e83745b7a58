"""The standard lane: LSP that pygls serves, first in, first out, after it is imported."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kode_sidecar.errors import KodeError
from kode_sidecar.server.codec import Incoming, MessageId

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


class StandardServer(Protocol):
    """What serves the lane, once it is there."""

    def handle(self, incoming: Incoming) -> None: ...

    def cancel(self, request_id: MessageId) -> None: ...


class StandardLane:
    """Queues messages until the server is attached, then passes them on at once."""

    def __init__(self, refuse: Callable[[MessageId, KodeError], None]) -> None:
        self._refuse = refuse
        self._waiting: list[Incoming] = []
        self._server: StandardServer | None = None

    def serves_request(self, method: str) -> bool:
        return method in STANDARD_REQUESTS

    def serves_notification(self, method: str) -> bool:
        return method in STANDARD_NOTIFICATIONS

    def submit(self, incoming: Incoming) -> None:
        """Take a request that was admitted, or a notification."""
        if self._server is None:
            self._waiting.append(incoming)
        else:
            self._server.handle(incoming)

    def cancel(self, request_id: MessageId) -> None:
        """Cancel a request, queued or running."""
        if self._server is not None:
            self._server.cancel(request_id)
            return
        self._waiting = [one for one in self._waiting if one.id != request_id]
        self._refuse(request_id, KodeError("RequestCancelled", "cancelled before it began"))

    def attach(self, server: StandardServer) -> None:
        """The server is there: give it everything that waited, in order."""
        self._server = server
        waiting, self._waiting = self._waiting, []
        for incoming in waiting:
            server.handle(incoming)
