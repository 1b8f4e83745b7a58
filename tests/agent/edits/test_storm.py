# pyright: reportPrivateUsage=false
"""An editing storm: random stories over the real room with a plain, a lying and a slow editor.

In every story the user types, the model proposes, hunks are decided, undone, files closed and
opened, the process restarted. No character of the user's is lost to an edit; in the end every state
is true of the text, and what the model was told last is that state.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.edits import hunk_status
from kode_sidecar.agent.edits.verdicts import verdict_line
from kode_sidecar.agent.event_log import EventHistory
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision, UndoParams
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.errors import KodeError
from tests.conftest import FULL, Played
from tests.support.edit_buffer import Buffer, ChangeStyle
from tests.support.edit_editor import Desk

STORIES = 200 if FULL else 6
PARTS = 4
STEPS = 10
STYLES: list[ChangeStyle] = ["minimal", "descending", "whole", "one_span"]
EDITORS = ["plain", "lying", "slow"]
FIRST_KEY = 0x4E00
"""Every key of the user is a character of its own, from here on."""
FIRST_MARK = 0xAC00
"""Every line that the model proposes has one of its own, too."""


class Story:
    """One file and the people at it."""

    def __init__(self, rng: random.Random, root: Path, kind: str) -> None:
        self.rng, self.root, self.kind = rng, root, kind
        self.style: ChangeStyle = rng.choice(STYLES)
        self.eol = rng.choice(["\n", "\r\n"])
        self.keys = self.marks = self.turns = 0
        self.user: set[str] = set()
        self.reported: dict[str, str] = {}
        self.late: list[asyncio.Task[None]] = []
        self.desk = self.new_desk()
        text = "".join(f"{rng.choice(['x', '}', 'end', ''])}{self.eol}" for _ in range(8))
        self.desk.file("a.txt", text)
        self.buffer: Buffer = self.desk.editor.open(root / "a.txt", text)
        self.begin_turn()

    def new_desk(self) -> Desk:
        desk = Desk(self.root, "utf-16", self.style, settle_seconds=0.003)
        desk.editor.on_apply = self.apply
        return desk

    def begin_turn(self) -> None:
        self.turns += 1
        path = tuple(f"t-{number}" for number in range(1, self.turns))
        self.desk.enter(f"t-{self.turns}", path=path)

    # ---- the editor ----------------------------------------------------------------------------

    async def apply(self, edit: DocumentEdit) -> ApplyAnswer:
        """The user's characters must be there afterwards, whatever the edit was."""
        rng, editor = self.rng, self.desk.editor
        if rng.random() < 0.2 and edit.uri in editor.buffers:
            self.type()
        lies = self.kind == "lying" and rng.random() < 0.4
        if lies and rng.random() < 0.5:
            return ApplyAnswer(True)  # and nothing was done
        before = set(self.buffer.text) & self.user
        done = editor.do(edit)
        assert before <= set(self.buffer.text), ("an edit took the user's words", edit)
        if self.kind == "slow":
            self.late.append(asyncio.create_task(self.report_late(self.buffer)))
        else:
            editor.report(self.buffer)
        return ApplyAnswer(not done if lies else done)

    async def report_late(self, buffer: Buffer) -> None:
        await asyncio.sleep(self.rng.choice([0.0, 0.001, 0.006]))
        self.report()

    def report(self) -> None:
        """Tell what was not told yet, if the file is still open."""
        if self.buffer.uri in self.desk.editor.buffers:
            self.desk.editor.report(self.buffer)

    # ---- what happens --------------------------------------------------------------------------

    def type(self) -> None:
        """A key, a line, or one of the user's own characters taken back."""
        rng, text = self.rng, self.buffer.text
        own = [at for at, char in enumerate(text) if char in self.user]
        if own and rng.random() < 0.3:
            at = rng.choice(own)
            self.user.discard(text[at])
            self.buffer.type(at, "", delete=1)
        else:
            char = chr(FIRST_KEY + self.keys)
            self.keys += 1
            self.user.add(char)
            at = rng.choice([k for k in range(len(text) + 1) if text[k - 1 : k + 1] != "\r\n"])
            self.buffer.type(at, rng.choice([char, char + self.eol, self.eol + char]))
        if rng.random() < 0.8:
            self.report()

    async def propose(self) -> None:
        rng = self.rng

        def rewrite(_document: object, text: str) -> str:
            lines = split_lines(text)
            at = rng.randint(0, len(lines))
            mark = chr(FIRST_MARK + self.marks)
            self.marks += 1
            gone = 0
            while gone < 2 and at + gone < len(lines) and not set(lines[at + gone]) & self.user:
                gone += 1
            lines[at : at + rng.randint(0, gone)] = [f"{mark}\n"] * rng.randint(1, 2)
            return "".join(lines)

        self.report()
        call = ToolCall("tool", "propose_edit", "s-1", self.desk.turn_id, "m-1")
        await self.desk.sets.proposals.propose("a.txt", rewrite, call)

    def ids(self, *states: str) -> list[str]:
        return [key for key, state in self.desk.states.items() if state in states]

    async def decide(self) -> None:
        open_ones = self.ids("proposed", "conflict", "stale", "diverged")
        if open_ones:
            key = self.rng.choice(open_ones)
            await self.decide_on(key, self.rng.choice(["accept", "accept", "accept", "reject"]))

    async def decide_on(self, key: str, action: Any) -> None:
        change_set = next(
            one.change_set_id
            for one in self.desk.sets.list().change_sets
            for file in self.desk.sets.get(one.change_set_id).files
            for hunk in file.hunks
            if hunk.hunk_id == key
        )
        decision = HunkDecision(hunk_id=key, action=action)
        params = DecideParams(change_set_id=change_set, decisions=(decision,))
        try:
            await self.desk.sets.decide(params)
        except KodeError as error:
            if error.code != "ChangeSetClosed":
                raise

    async def undo(self) -> None:
        done = self.ids("applied", "undone")
        if done:
            key = self.rng.choice(done)
            await self.desk.sets.undo(key, UndoParams(hunk_id=key))

    async def reopen(self) -> None:
        """Save, close, and open again: nothing is lost by that."""
        self.report()
        (self.root / "a.txt").write_bytes(self.buffer.text.encode())
        text = self.buffer.text
        self.desk.editor.close(self.buffer)
        if self.rng.random() < 0.5:
            await self.decide()
        self.buffer = self.desk.editor.open(self.root / "a.txt", text)

    async def restart(self) -> None:
        """The process dies; the next one reads its journal and is told of the open file."""
        await self.quiet()
        self.listen()
        (self.root / "a.txt").write_bytes(self.buffer.text.encode())
        old = self.desk
        old.sets.close()
        self.desk = self.new_desk()
        self.desk.events = list(old.events)
        self.desk._numbers = old._numbers  # ids go on
        history = EventHistory()
        history.feed_all(old.events)
        self.desk.sets.restore(history)
        text, version = self.buffer.text, self.buffer.version
        self.buffer = self.desk.editor.open(self.root / "a.txt", text, version)
        self.begin_turn()

    # ---- the end -------------------------------------------------------------------------------

    async def quiet(self) -> None:
        """Everything that is on its way arrives."""
        if self.late:
            await asyncio.wait(self.late)
            self.late.clear()
        self.report()
        for _ in range(3):
            await asyncio.sleep(0.002)

    def listen(self) -> None:
        """The model hears what became of its edits, once each."""
        ledger = self.desk.sets._ledger
        self.desk.sets.unreported()  # looks at what is seen by now
        lines = {key: verdict_line(ledger[key]) for key in self.desk.states}
        reported = self.desk.sets.take_reminders() or ""
        self.reported |= {
            key: self.desk.states[key] for key, line in lines.items() if line in reported
        }

    def check(self) -> None:
        text, lf = self.buffer.text, to_lf(self.buffer.text)
        assert self.user <= set(text), "a character of the user is gone"
        assert self.desk.workspace.document("a.txt", purpose="read").text == text
        for hunk in self.desk.hunks:
            state, new = self.desk.states[hunk.hunk_id], to_lf(hunk.new_text or "")
            mark = next((char for char in new if ord(char) >= FIRST_MARK), "")
            merged = any(one.merge_of == hunk.hunk_id for one in self.desk.hunks)
            alone = sum(mark in (one.new_text or "") for one in self.desk.hunks) == 1
            if state not in ("proposed", "superseded"):
                assert self.reported.get(hunk.hunk_id) == state, (hunk, self.reported)
            if not (mark and alone) or merged:
                continue
            if state in ("proposed", "conflict", "stale", "rejected", "undone"):
                assert new not in lf, (state, hunk, text)
            others = (one for one in self.desk.hunks if one.hunk_id != hunk.hunk_id)
            if state == "applied" and not any(mark in (one.old_text or "") for one in others):
                assert mark in lf, (state, hunk, text)
            assert lf.count(new) < 2, ("an edit was done twice", hunk, text)


async def live(story: Story) -> None:
    deeds: list[Callable[[], Any]] = [story.decide, story.decide, story.undo, story.propose]
    deeds += [story.propose, story.reopen, story.restart]
    for _ in range(STEPS):
        if story.rng.random() < 0.4:
            story.type()
        else:
            await story.rng.choice(deeds)()
        if story.rng.random() < 0.2:
            story.listen()
    await story.quiet()
    story.listen()
    story.check()
    story.desk.sets.close()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", EDITORS)
async def test_no_story_breaks_a_promise(
    rng: random.Random,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    played: Played,
    kind: str,
    part: int,
) -> None:
    monkeypatch.setattr(hunk_status, "QUIET_SECONDS", 0.0)
    for number in range(STORIES):
        seed = rng.getrandbits(64)
        try:
            await live(Story(random.Random(seed), tmp_path, kind))
        except BaseException as error:
            error.add_note(f"{kind}, part {part}, story {number}: random.Random({seed})")
            raise
    played(STORIES, f"editing stories with a {kind} editor")
