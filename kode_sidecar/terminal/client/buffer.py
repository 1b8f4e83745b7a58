"""One text buffer of an editor: its text, its version, and its changes not yet sent."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kode_sidecar.core.text.text_edit import Edit, apply_edits, minimal_edits
from kode_sidecar.core.text.text_lines import LineIndex, PositionEncoding


class RefusedEdit(ValueError):
    """The edit was made for another version of the buffer, or its ranges overlap."""


class Buffer:
    """A buffer of one document. Its text stays unchanged: line ends are never converted.

    `synced` is True between `did_open` and `did_close`.
    """

    def __init__(
        self,
        uri: str,
        text: str,
        *,
        language_id: str = "plaintext",
        version: int = 1,
        encoding: PositionEncoding = "utf-16",
    ) -> None:
        self.uri = uri
        self.text = text
        self.language_id = language_id
        self.version = version
        self.encoding: PositionEncoding = encoding
        self.synced = False
        self._unsent: list[dict[str, Any]] = []

    def did_open(self) -> dict[str, Any]:
        """Return the params of `textDocument/didOpen`, which hold all changes so far."""
        self.synced = True
        self._unsent.clear()
        item = {
            "uri": self.uri,
            "languageId": self.language_id,
            "version": self.version,
            "text": self.text,
        }
        return {"textDocument": item}

    def did_close(self) -> dict[str, Any]:
        """Return the params of `textDocument/didClose`."""
        self.synced = False
        return {"textDocument": {"uri": self.uri}}

    def check(self, edits: Sequence[dict[str, Any]], version: int | None) -> list[Edit]:
        """Return LSP TextEdits as ascending edits of the text; inserts at one place keep order.

        Raises RefusedEdit for edits that overlap, and for a `version` other than the buffer's.
        """
        if version is not None and version != self.version:
            raise RefusedEdit(f"the edit is for version {version}, the buffer is {self.version}")
        index = LineIndex(self.text, self.encoding)

        def offset(position: dict[str, int]) -> int:
            return index.offset(position["line"], position["character"])

        found = [
            Edit(offset(e["range"]["start"]), offset(e["range"]["end"]), str(e["newText"]))
            for e in edits
        ]
        found.sort(key=lambda edit: (edit.start, edit.end))
        if any(edit.end < edit.start for edit in found):
            raise RefusedEdit("an edit ends before it starts")
        if any(after.start < before.end for before, after in pairwise(found)):
            raise RefusedEdit("two edits overlap")
        return found

    def replace(self, edits: Sequence[Edit]) -> None:
        """Apply ascending, disjoint edits as one change; the version goes up by one.

        They are queued from the bottom up, so that none moves another. Edits that change nothing
        leave the version alone.
        """
        small = minimal_edits(self.text, edits)
        if not small:
            return
        index = LineIndex(self.text, self.encoding)
        for edit in reversed(small):
            start, end = index.position(edit.start), index.position(edit.end)
            self._unsent.append({"range": {"start": start, "end": end}, "text": edit.text})
        self.text = apply_edits(self.text, small)
        self.version += 1

    def type(self, offset: int, text: str, *, delete: int = 0) -> None:
        """Replace `delete` code points at `offset` by `text`, as if the user typed."""
        self.replace([Edit(offset, offset + delete, text)])

    def set_text(self, text: str) -> None:
        """Replace the whole text."""
        self.replace([Edit(0, len(self.text), text)])

    def take_did_change(self) -> dict[str, Any] | None:
        """Return the params of one `textDocument/didChange` with all unsent changes, or None."""
        if not self._unsent:
            return None
        changes, self._unsent = self._unsent, []
        document = {"uri": self.uri, "version": self.version}
        return {"textDocument": document, "contentChanges": changes}
