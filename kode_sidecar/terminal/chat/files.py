"""Treats files as buffers of an editor that saves each accepted edit at once, byte for byte.

A file is saved completely or not at all, and stays the same file, as in an editor.
"""

from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.core.text.uris import canonical_key, file_path, path_to_uri
from kode_sidecar.infrastructure.workspace.decoding import encode
from kode_sidecar.infrastructure.workspace.saving import save_file
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.editor import ClientEditor
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal
from kode_sidecar.terminal.client.workspace_edit import EditPlan


@dataclass(frozen=True)
class FileFormat:
    """The encoding of a file, from `base` of a change set. Line ends stay in the text."""

    encoding: str = "utf-8"
    bom: bool = False

    def decode(self, data: bytes) -> str:
        """Return the text. Raises ValueError if it could not be written back unchanged."""
        mark = self.encode("")
        if not data.startswith(mark):
            raise ValueError(f"it no longer begins with the mark of {self.encoding}")
        text = data[len(mark) :].decode(self.encoding)
        if self.encode(text) != data:
            raise ValueError(f"it is not plain {self.encoding}")
        return text

    def encode(self, text: str) -> bytes:
        """Return the bytes. Raises UnicodeEncodeError."""
        return encode(text, self.encoding, bom=self.bom)


@dataclass
class ChatFiles:
    """Keeps the editor's buffers equal to files that have proposed hunks; nothing is unsaved.

    Until an edit comes the user may change a file with another program. `refresh` then reloads it,
    as an editor does, and the edit is made again for the new text.
    """

    editor: ClientEditor
    terminal: Terminal
    words: Words
    _formats: dict[str, FileFormat] = field(default_factory=dict[str, FileFormat])
    _data: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __post_init__(self) -> None:
        self.editor.open_touched = True
        self.editor.load = self._load
        self.editor.before_edit = self.refresh
        self.editor.write = self._write
        self.editor.applied = self._done

    def learn(self, file: Json) -> None:
        """Note the format of a file of `changeSet.updated`."""
        base = file.get("base")
        if base:
            file_format = FileFormat(base["encoding"], base.get("bom", False))
            self._formats.setdefault(canonical_key(file["uri"]), file_format)

    def open(self, uri: str) -> None:
        """Open a file, or refresh its buffer, so that edits of it are verified."""
        if self.editor.text(uri) is not None:
            self.refresh()
            return
        path = file_path(uri)
        try:
            self.editor.open(path, self._load(path))
        except (OSError, ValueError) as error:
            self._report(self.words.not_read, path, error)

    def refresh(self) -> None:
        """Reload files that other programs have changed; close files that cannot be read now."""
        for buffer in self.editor.buffers:
            path, known = file_path(buffer.uri), self._data.get(canonical_key(buffer.uri))
            try:
                text = self._load(path)
            except (OSError, ValueError) as error:
                self._report(self.words.not_read, path, error)
                self.editor.close(buffer)
                continue
            if self._data[canonical_key(buffer.uri)] != known:
                buffer.set_text(text)
                self.editor.report(buffer)

    def close_all(self, *, but: set[str]) -> None:
        """Close all buffers except those of the URIs `but`, which have undecided hunks."""
        kept = {canonical_key(uri) for uri in but}
        for buffer in self.editor.buffers:
            if canonical_key(buffer.uri) not in kept:
                self.editor.close(buffer)
                self._forget(canonical_key(buffer.uri))

    def _load(self, path: Path) -> str:
        key = canonical_key(path_to_uri(path))
        data = path.read_bytes()
        text = self._formats.get(key, FileFormat()).decode(data)
        self._data[key] = data
        return text

    def _write(self, buffer: Buffer, text: str) -> None:
        """Save a buffer's text after an edit. Raises OSError and ValueError if it is not saved."""
        path, key = file_path(buffer.uri), canonical_key(buffer.uri)
        try:
            data = self._formats.get(key, FileFormat()).encode(text)
            is_ours = path.read_bytes() == self._data.get(key, b"")  # a new file has no text yet
            if is_ours:
                save_file(path, data)
        except (OSError, ValueError) as error:
            self._report(self.words.not_written, path, error)
            raise
        if not is_ours:
            self.refresh()
            raise ValueError("another program has just written the file")
        self._data[key] = data

    def _done(self, plan: EditPlan) -> None:
        """Show what an edit has done to files, and update the known bytes of files."""
        written = [file_path(buffer.uri) for buffer, _ in plan.changes]
        for file in plan.files:
            key = canonical_key(path_to_uri(file.path))
            if file.kind == "create" and file.path not in written:
                self._data[key] = b""
                self._show_done(self.words.written.format(path=file.path))
            elif file.kind == "rename":
                self._rename(key, canonical_key(path_to_uri(file.target)))
                self._show_done(self.words.moved.format(path=file.path, target=file.target))
            elif file.kind == "delete":
                self._forget(key)
                self._show_done(self.words.deleted.format(path=file.path))
        for path in written:
            self._show_done(self.words.written.format(path=path))
            document = {"textDocument": {"uri": path_to_uri(path)}}
            self.editor.client.notify("textDocument/didSave", document)

    def _rename(self, key: str, new_key: str) -> None:
        for known in (self._formats, self._data):
            if key in known:
                known[new_key] = known.pop(key)  # type: ignore[assignment]

    def _forget(self, key: str) -> None:
        self._formats.pop(key, None)
        self._data.pop(key, None)

    def _show_done(self, done: str) -> None:
        self.terminal.line(f"✓ {done}", "green")

    def _report(self, sentence: str, path: Path, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.terminal.line(f"⚠ {sentence.format(path=path, error=reason)}", "red")
