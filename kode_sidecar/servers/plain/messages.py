"""Messages to the user, by `window/showMessage` and `window/showDocument`."""

from collections.abc import Callable
from typing import Any

from kode_sidecar.core.text.shown_text import clipped, visible
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp import Connection

_ERROR, _WARNING, _INFO = 1, 2, 3  # LSP MessageType
_SHOWN_CHARS = 4_000


class Messages:
    """Shows messages and documents. Whether documents can be shown is learnt from the answers."""

    def __init__(self, connection: Connection, *, shows_documents: bool) -> None:
        self._notify: Callable[[str, Any], None] = connection.notify
        self._request = connection.request
        self.shows_documents = shows_documents

    def info(self, text: str) -> None:
        """Show a message."""
        self._show(_INFO, text)

    def warn(self, text: str) -> None:
        """Show a warning, and log it: a message may vanish unread."""
        self._show(_WARNING, text)
        self._notify("window/logMessage", {"type": _WARNING, "message": text})

    def error(self, text: str) -> None:
        """Show an error, and log it."""
        self._show(_ERROR, text)
        self._notify("window/logMessage", {"type": _ERROR, "message": text})

    async def show_document(self, uri: str, *, focus: bool) -> bool:
        """Show a document; return whether the editor says that it did."""
        if not self.shows_documents:
            return False
        params = {"uri": uri, "external": False, "takeFocus": focus}
        try:
            answer = await self._request("window/showDocument", params, dict[str, Any])
        except KodeError as error:
            if error.code == "CapabilityMissing":
                self.shows_documents = False
            return False
        return answer.get("success") is True

    def _show(self, kind: int, text: str) -> None:
        message = clipped(visible(text), _SHOWN_CHARS)
        self._notify("window/showMessage", {"type": kind, "message": message})
