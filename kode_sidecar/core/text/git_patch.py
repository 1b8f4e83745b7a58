"""Patches that `git apply` accepts: whatever bytes, names and kinds of change. Pure.

Source: Git's documentation, "Generating patch text with -p" (diff-generate-patch), and for binary
files the format that `git diff --binary` writes.
"""

import base64
import hashlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from kode_sidecar.core.text.line_diff import unified_hunks

_NO_FILE = "/dev/null"
_NO_BLOB = "0" * 40
_BINARY_LINE_BYTES = 52
_ESCAPED = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


@dataclass(frozen=True)
class PatchedFile:
    """A file at one side of a change. `path` has forward slashes; `mode` as Git writes it."""

    path: str
    data: bytes
    mode: str = "100644"


def file_patch(old: PatchedFile | None, new: PatchedFile | None) -> bytes:
    """Return the patch of one file: changed, moved, created (no `old`) or deleted (no `new`).

    Empty where nothing changed.
    """
    if old == new:
        return b""
    before, after = old.data if old else b"", new.data if new else b""
    binary = b"\0" in before or b"\0" in after
    body = b""
    if before != after:
        body = _binary(before, after) if binary else _text(old, new)
    index = [_index(old, new)] if before != after or old is None or new is None else []
    return b"".join(line.encode() + b"\n" for line in (*_header(old, new), *index)) + body


def blob_id(data: bytes) -> str:
    """Git's name of a content, in a repository of SHA-1."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def quoted(path: str) -> str:
    """Return a path as a header has it, quoted only where it must be: `core.quotePath` off."""
    if not any(ord(sign) < 32 or sign in '"\\\x7f' for sign in path):
        return path
    return '"' + "".join(map(_escaped, path)) + '"'


def _escaped(sign: str) -> str:
    code = ord(sign)
    if code in _ESCAPED:
        return "\\" + _ESCAPED[code]
    return f"\\{code:03o}" if code < 32 or code == 127 else sign


def _header(old: PatchedFile | None, new: PatchedFile | None) -> Iterator[str]:
    first, last = old or new, new or old
    assert first is not None
    assert last is not None
    yield f"diff --git {quoted('a/' + first.path)} {quoted('b/' + last.path)}"
    if old is None:
        yield f"new file mode {last.mode}"
    elif new is None:
        yield f"deleted file mode {first.mode}"
    elif old.mode != new.mode:
        yield f"old mode {old.mode}"
        yield f"new mode {new.mode}"
    if first.path != last.path:
        if first.data == last.data:
            yield "similarity index 100%"
        yield f"rename from {quoted(first.path)}"
        yield f"rename to {quoted(last.path)}"


def _index(old: PatchedFile | None, new: PatchedFile | None) -> str:
    before = blob_id(old.data) if old else _NO_BLOB
    after = blob_id(new.data) if new else _NO_BLOB
    same_mode = old is not None and new is not None and old.mode == new.mode
    return f"index {before}..{after}" + (f" {old.mode}" if same_mode and old else "")


def _text(old: PatchedFile | None, new: PatchedFile | None) -> bytes:
    hunks = unified_hunks(_lines(old), _lines(new), _shown)
    names = f"--- {_name('a/', old)}\n+++ {_name('b/', new)}\n"
    return names.encode() + hunks.encode("latin-1")


def _name(side: str, state: PatchedFile | None) -> str:
    if state is None:
        return _NO_FILE
    name = quoted(side + state.path)
    # Without the tab a reader could take what follows a blank for a time stamp.
    return f"{name}\t" if " " in name else name


def _lines(state: PatchedFile | None) -> list[str]:
    """Lines as Git counts them, each byte one character: only LF ends a line."""
    return list(io.StringIO(state.data.decode("latin-1") if state else "", newline="\n"))


def _shown(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _binary(before: bytes, after: bytes) -> bytes:
    return b"GIT binary patch\n" + _literal(after) + b"\n" + _literal(before) + b"\n"


def _literal(data: bytes) -> bytes:
    """Return the whole content, compressed, in lines that begin with their length."""
    packed = zlib.compress(data)
    out = [b"literal %d\n" % len(data)]
    for at in range(0, len(packed), _BINARY_LINE_BYTES):
        piece = packed[at : at + _BINARY_LINE_BYTES]
        count = len(piece)
        length = chr(ord("A") + count - 1) if count <= 26 else chr(ord("a") + count - 27)
        padded = piece.ljust((count + 3) // 4 * 4, b"\0")
        out.append(length.encode() + base64.b85encode(padded) + b"\n")
    return b"".join(out)
