"""Find the changes of a call that the model is still writing. Pure.

A patch counts up to its last chunk but one, a whole text up to the last lines that match the file
again. Changes that do not fit are not shown: the complete call is refused later, with the reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from kode_sidecar.agent.tools.proposals import Rewrite
from kode_sidecar.agent.tools.propose_edit import (
    ProposeEditParams,
    fixed_edits,
)
from kode_sidecar.agent.tools.propose_file import ProposeFileParams
from kode_sidecar.agent.tools.propose_patch import PATCH_NAMES, patch_in
from kode_sidecar.agent.tools.text_rewrites import Overwrite, PatchChunks, QuotedEdits
from kode_sidecar.core.text.file_patch import FileAdd, FilePatch, FileUpdate
from kode_sidecar.core.text.growing_json import GrowingArguments
from kode_sidecar.core.text.line_diff import diff_lines, split_lines
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.tool_arguments import fitted
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.freshness import Freshness

_AGREEING_LINES = 3
"""This many lines must match before the change above them counts as finished."""
_TRIES = 3
_BEGIN, _END = "*** Begin Patch", "*** End Patch"


@dataclass(frozen=True)
class BegunFile:
    """A file in an unfinished call: the `rewrite` of it, or the `text` of a new file."""

    path: str
    rewrite: Rewrite | None = None
    text: str = ""


def begun_files(name: str, arguments: GrowingArguments, shown: Freshness) -> list[BegunFile]:
    """Return the files that an unfinished call of the tool `name` would change so far."""
    members = arguments.members
    texts = {**members, **{key: _lines(text) for key, text in arguments.unfinished.items()}}
    try:
        if name == "propose_file":
            return list(_whole_file(texts, shown))
        patches = [texts[name] for name in PATCH_NAMES if name in texts]
        files = [one for text in patches for file in _begun_patch(text) for one in _patched(file)]
        return files or list(_quoted({**members, "edits": arguments.items}, shown))
    except msgspec.ValidationError:
        return []


def _quoted(given: dict[str, object], shown: Freshness) -> Iterator[BegunFile]:
    """Raises msgspec.ValidationError."""
    fixed, _ = fixed_edits(given)
    params = msgspec.convert(fixed, ProposeEditParams, strict=False)
    if params.edits:
        yield BegunFile(params.path, QuotedEdits(params.path, params.edits, "", shown))


def _patched(file: FilePatch) -> Iterator[BegunFile]:
    if isinstance(file, FileAdd):
        yield BegunFile(file.path, text=file.text)
    elif isinstance(file, FileUpdate) and file.chunks:
        yield BegunFile(file.path, PatchChunks(file.path, file.chunks))


def _whole_file(texts: dict[str, str], shown: Freshness) -> Iterator[BegunFile]:
    given: dict[str, Any] = dict(texts)
    given, _ = fitted(given, ProposeFileParams)
    path, content = given.get("path"), given.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        return
    if given.get("action") == "create":
        yield BegunFile(path, text=content)
    elif given.get("action") == "overwrite":

        def rewrite(document: Document, text: str) -> str:
            begun = begun_text(text, to_lf(content))
            return Overwrite(path, begun, shown, confirmed=False)(document, text)

        yield BegunFile(path, rewrite)


def begun_text(text: str, begun: str) -> str:
    """Return `text` with the finished changes of `begun`, the first whole lines of a new text."""
    old, new = split_lines(text), split_lines(begun)
    runs = diff_lines(old, [*new, "\0"])  # the last run is the unwritten rest
    sure = [at for at, (one, other) in enumerate(pairwise(runs)) if _agree(one, other)]
    parts: list[str] = []
    at = 0
    for a0, a1, b0, b1 in runs[: sure[-1] + 1] if sure else ():
        parts += (*old[at:a0], *new[b0:b1])
        at = a1
    return "".join((*parts, *old[at:]))


def _agree(run: Sequence[int], following: Sequence[int]) -> bool:
    return following[0] - run[1] >= _AGREEING_LINES


def _begun_patch(text: str) -> tuple[FilePatch, ...]:
    """Return the files of an unfinished patch, with their finished chunks."""
    unified = _BEGIN not in text
    lines = text.split("\n")
    marks = [at for at in range(len(lines)) if _begins_anew(lines, at, unified=unified)]
    ends = [*marks[-_TRIES:], *([len(lines)] if _adds_file(lines, marks) else [])]
    for end in reversed(ends):
        part = "\n".join([*lines[:end], "" if unified else _END])
        try:
            if patch := patch_in({"patch": part}):
                return patch.readings[0]
        except msgspec.ValidationError:
            continue
    return ()


def _begins_anew(lines: Sequence[str], at: int, *, unified: bool) -> bool:
    """Return whether a chunk or file begins at a line: then everything above is finished."""
    line = lines[at]
    if not unified:
        return line.startswith("@@") or (line.startswith("*** ") and " of File" not in line)
    pair = lines[at].startswith("--- ") and "".join(lines[at + 1 : at + 2]).startswith("+++ ")
    return pair or lines[at].startswith(("@@", "diff --git "))


def _adds_file(lines: Sequence[str], marks: Sequence[int]) -> bool:
    """Return whether the last lines belong to a new file: there each whole line counts."""
    if not marks:
        return False
    new = lines[marks[-1]].startswith("*** Add File: ")
    return new or "".join(lines[max(marks[-1] - 2, 0) : marks[-1]]).startswith("--- /dev/null")


def _lines(text: str) -> str:
    """Return the complete lines of a text."""
    return text[: text.rfind("\n") + 1]
