"""Workspace edits as the sidecar emits them, with the text before and the text they must give."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.event_log.editor_port import DocumentEdit, FileEdit
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.protocol.change_set import UndoParams
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Edit, apply_edits, to_lf
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.servers.lsp.client_profile import apply_edit_params
from tests.support.edit_editor import Desk
from tests.support.edit_texts import EOLS, WORDS

CALL = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")


@dataclass(frozen=True)
class Client:
    """What the edits are emitted for."""

    document_changes: bool = True
    change_annotations: bool = False


@dataclass(frozen=True)
class Emitted:
    """`edit` is a WorkspaceEdit of the document `uri`, which has the text `before` (None: new)."""

    uri: str
    encoding: str
    before: str | None
    edit: dict[str, Any]
    expected: str


async def emitted_edits(
    rng: random.Random, root: Path, count: int, encoding: PositionEncoding
) -> list[Emitted]:
    """Proposals accepted whole and in part, each taken back again, and new files."""
    found: list[Emitted] = []
    while len(found) < count:
        text = _text(rng)
        target = _changed(rng, to_lf(text))
        if target == to_lf(text):
            continue
        desk = Desk(root, encoding)
        path = root / f"{len(found)}.txt"
        buffer = desk.editor.open(path, text)

        def rewrite(_document: object, _text: str, target: str = target) -> str:
            return target

        await desk.sets.proposals.propose(path.name, rewrite, CALL)
        hunks = rng.sample(desk.hunks, rng.randint(1, len(desk.hunks)))
        edits: list[Edit] = []
        for hunk in hunks:
            assert hunk.range is not None
            start = sum(map(len, split_lines(text)[: hunk.range.start.line]))
            edits.append(Edit(start, start + len(hunk.old_text or ""), hunk.new_text or ""))
        edits.sort(key=lambda edit: (edit.start, edit.end))
        done = apply_edits(text, edits)
        await desk.accept(*(hunk.hunk_id for hunk in hunks))
        params = UndoParams(change_set_id=desk.change_set_id)
        assert buffer.text == done
        await desk.sets.undo(desk.change_set_id, params)
        there, back = (_wire(edit) for edit in desk.editor.edits)
        found.append(Emitted(buffer.uri, encoding, text, there, done))
        found.append(Emitted(buffer.uri, encoding, done, back, text))
        desk.sets.close()
    found += await _created(rng, root, encoding)
    return found


async def _created(rng: random.Random, root: Path, encoding: str) -> list[Emitted]:
    desk = Desk(root)
    found: list[Emitted] = []
    for number in range(5):
        text = to_lf(_text(rng)) or "x"
        await desk.sets.proposals.propose_create(f"new-{encoding}-{number}.txt", text, CALL)
        await desk.accept(desk.hunks[-1].hunk_id)
        edit = desk.editor.file_edits[-1]
        found.append(Emitted(edit.uri, encoding, None, _wire(edit), text))
        desk.enter(f"t-{number}")
    for path in root.glob("new-*"):
        path.unlink()
    return found


def _wire(edit: DocumentEdit | FileEdit) -> dict[str, Any]:
    """As JSON, without the version: the applier has only one."""
    return msgspec.json.decode(msgspec.json.encode(apply_edit_params([edit], Client())["edit"]))


def _text(rng: random.Random) -> str:
    ends = EOLS[rng.choice(list(EOLS))]
    lines = (rng.choice(WORDS) + rng.choice(ends) for _ in range(rng.randint(0, 10)))
    return "".join(lines) + rng.choice(["", "", "last", "末 😀"])


def _changed(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(lines))
        lines[at : at + rng.randint(0, 3)] = rng.choices([*WORDS, "new"], k=rng.randint(0, 3))
    return "\n".join(lines)
