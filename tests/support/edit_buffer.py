"""A second text buffer, for tests: an oracle that shares no code with the package.

It also knows the ways in which editors tell a server what changed.
"""

from collections.abc import Sequence
from typing import Any, Literal

from tests.support.positions import (
    InvalidPosition,
    Lines,
    PositionEncoding,
    Span,
    replace_spans,
)

ChangeStyle = Literal["minimal", "descending", "whole", "one_span"]
"""How `didChange` tells edits: one trimmed entry per edit from the top, the edits as they came
from the bottom (VS Code), the whole text, or one entry around everything that changed."""


class StaleVersion(Exception):
    """The edit was made for another version of the buffer."""


class Buffer:
    """Text, version and what the server has not been told yet.

    Text is kept as it is: line ends are never converted. `synced` is True between
    `did_open` and `did_close`.
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
        self._untold: list[tuple[str, list[Span]]] = []

    @property
    def lines(self) -> Lines:
        """The lines of the text as it is now."""
        return Lines(self.text, self.encoding)

    def did_open(self) -> dict[str, Any]:
        """Params of `textDocument/didOpen`; everything up to now is told with it."""
        self.synced = True
        self._untold.clear()
        item = {
            "uri": self.uri,
            "languageId": self.language_id,
            "version": self.version,
            "text": self.text,
        }
        return {"textDocument": item}

    def did_close(self) -> dict[str, Any]:
        """Params of `textDocument/didClose`."""
        self.synced = False
        return {"textDocument": {"uri": self.uri}}

    def check(self, edits: Sequence[dict[str, Any]], version: int | None) -> list[Span]:
        """The edits as spans of the text of now.

        Raises StaleVersion when `version` is not None and not the buffer's, InvalidPosition
        for edits that overlap or hit no real place.
        """
        if version is not None and version != self.version:
            raise StaleVersion(f"the edit is for version {version}, the buffer is {self.version}")
        return self.lines.spans(edits)

    def replace(self, spans: Sequence[Span]) -> None:
        """Apply ascending, disjoint spans as one change; the version goes up by one."""
        if not spans:
            return
        self._untold.append((self.text, list(spans)))
        self.text = replace_spans(self.text, spans)
        self.version += 1

    def apply_edits(self, edits: Sequence[dict[str, Any]], version: int | None = None) -> None:
        """Apply LSP TextEdits. Raises what `check` raises; then nothing was changed."""
        self.replace(self.check(edits, version))

    def type(self, offset: int, text: str, *, delete: int = 0) -> None:
        """A key of the user: replace `delete` code points at `offset` by `text`."""
        self.replace([Span(offset, offset + delete, text)])

    def set_text(self, text: str) -> None:
        """Replace everything."""
        self.replace([Span(0, len(self.text), text)])

    def take_did_change(self, style: ChangeStyle = "minimal") -> dict[str, Any] | None:
        """Params of one `textDocument/didChange` with all that is untold; None if nothing is.

        A batch whose places cannot be told one after the other (an edit that makes a CR LF
        out of neighbours) is told as the whole text.
        """
        if not self._untold:
            return None
        entries: list[dict[str, Any]] = []
        for before, spans in self._untold:
            entries += content_changes(before, spans, style, self.encoding)
        self._untold.clear()
        document = {"uri": self.uri, "version": self.version}
        return {"textDocument": document, "contentChanges": entries}


def content_changes(
    before: str, spans: Sequence[Span], style: ChangeStyle, encoding: PositionEncoding
) -> list[dict[str, Any]]:
    """`contentChanges` for spans of `before`; each entry is measured after the one above it."""
    after = replace_spans(before, spans)
    whole = [{"text": after}]
    try:
        match style:
            case "whole":
                return whole
            case "descending":
                return _told_in_turn(before, list(reversed(spans)), encoding)
            case "one_span":
                everything = Span(0, len(before), after)
                return _told_in_turn(before, [_trimmed(before, everything)], encoding)
            case "minimal":
                trimmed = [_trimmed(before, span) for span in spans]
                return _told_in_turn(before, _moved(trimmed), encoding)
    except InvalidPosition:
        return whole


def _moved(spans: Sequence[Span]) -> list[Span]:
    """Ascending spans, each moved by what those above it added."""
    moved: list[Span] = []
    shift = 0
    for span in spans:
        moved.append(Span(span.start + shift, span.end + shift, span.new_text))
        shift += len(span.new_text) - (span.end - span.start)
    return moved


def _told_in_turn(
    text: str, spans: Sequence[Span], encoding: PositionEncoding
) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for span in spans:
        place = Lines(text, encoding).range(span.start, span.end)
        entries.append({"range": place, "text": span.new_text})
        text = replace_spans(text, [span])
    return entries


def _trimmed(text: str, span: Span) -> Span:
    """The same change without the common beginning and end; a CR LF is never cut in two."""
    old, new = text[span.start : span.end], span.new_text
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    if head and old[head - 1] == "\r" and "\n" in (old[head : head + 1], new[head : head + 1]):
        head -= 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if tail and old[-tail] == "\n" and _ends_in_cr(old[:-tail], new[:-tail]):
        tail -= 1
    return Span(span.start + head, span.end - tail, new[head : len(new) - tail])


def _ends_in_cr(*texts: str) -> bool:
    return any(text.endswith("\r") for text in texts)
