"""Joins the sections of a patch that concern one file: done in order they mean one thing. Pure."""

import posixpath
from collections.abc import Sequence
from dataclasses import replace

from kode_sidecar.core.text.chunk_place import locate_chunk
from kode_sidecar.core.text.edit_match import MatchError
from kode_sidecar.core.text.file_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchChunk,
    PatchError,
)
from kode_sidecar.core.text.text_edit import apply_edits, with_one_eol


def in_order(sections: Sequence[FilePatch], patch: str) -> tuple[FilePatch, ...]:
    """Return the files of a patch, each once, new ones with its line ends.

    Raises PatchError for sections of one file that contradict each other.
    """
    files: dict[str, FilePatch] = {}
    left: set[str] = set()
    for section in sections:
        key, target = _key(section.path), _key(_target(section))
        before = files.pop(key, None)
        after = section if before is None else _joined(before, section)
        taken = key in left or (target != key and target in files)
        if after is None or taken:
            raise PatchError(
                f"It names {section.path} twice, in a way that no order makes sense of. "
                "Put all changes of a file under one header."
            )
        if target != key:
            left.add(key)
        files[target] = after
    return tuple(
        replace(file, text=with_one_eol(file.text, patch)) if isinstance(file, FileAdd) else file
        for file in files.values()
    )


def _target(section: FilePatch) -> str:
    moved = section.move_to if isinstance(section, FileUpdate) else None
    return moved or section.path


def _key(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _joined(before: FilePatch, after: FilePatch) -> FilePatch | None:
    """Return what two sections of one file do together; None if they contradict each other."""
    match before, after:
        case FileUpdate(), FileUpdate():
            chunks, move_to = before.chunks + after.chunks, after.move_to or before.move_to
            return FileUpdate(before.path, chunks, move_to)
        case FileUpdate(move_to=None), FileDelete():
            return after
        case FileDelete(), FileAdd():
            return replace(after, replaces=True)
        case FileAdd(), FileUpdate(move_to=None):
            return replace(before, text=_changed(before, after.chunks))
        case _:
            return None


def _changed(file: FileAdd, chunks: Sequence[PatchChunk]) -> str:
    text = file.text
    for chunk in chunks:
        found = locate_chunk(text, chunk)
        if isinstance(found, MatchError):
            raise PatchError(f"In the new file {file.path}, a later chunk fails: {found.message}")
        text = apply_edits(text, found.edits)
    return text
