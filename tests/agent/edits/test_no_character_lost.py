"""Random hours of work: typing, deciding, undoing, with an editor that is now and then wrong.

No character that the user typed is ever lost to an edit that nobody accepted, whatever the editor
claims; what it misapplied ends as `diverged` or `conflict`; undo of undo is the identity.
"""

import asyncio
import random
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.protocol.change_set import HunkDecision, UndoParams
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import to_lf
from tests.conftest import FULL
from tests.support.edit_buffer import Buffer, ChangeStyle
from tests.support.edit_editor import Desk, wire_edits
from tests.support.positions import InvalidPosition

HOURS = 100
DAYS = 100 if FULL else 3
STEPS = 12
MISAPPLIED = 0.01
STYLES: list[ChangeStyle] = ["minimal", "descending", "whole", "one_span"]
WORDS = ["}", "x", "return x", "中 😀", "end", "", "  }"]
FIRST_KEY = 0x4E00
"""Every key of the user is a character of its own, from here on."""


class Hour:
    """One buffer, one change set after the other, and the account of every character."""

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng = rng
        self.desk = Desk(root, rng.choice(["utf-8", "utf-16", "utf-32"]), rng.choice(STYLES))
        self.ends = rng.choice([["\n"], ["\r\n"], ["\n", "\r\n"]])
        lines = [rng.choice(WORDS) + rng.choice(self.ends) for _ in range(rng.randint(3, 12))]
        text = "".join(lines) + rng.choice(["", "last"])
        self.buffer: Buffer = self.desk.editor.open(root / "a.txt", text)
        self.desk.editor.on_apply = self.apply
        self.debounces = rng.random() < 0.3
        self.types_in_flight = rng.random() < 0.3
        self.typed = 0
        self.alive: set[str] = set()
        self.late: list[asyncio.Task[None]] = []
        self.allowed: set[str] = set()
        self.wrong = ""
        self.typed_in_flight = False
        self.spent: Counter[str] = Counter()

    # ---- the user ------------------------------------------------------------------------------

    def press(self) -> None:
        """Type a character, or a line, or delete something; the account of it is kept."""
        text = self.buffer.text
        places = range(len(text) + 1)
        at = self.rng.choice([k for k in places if not (k and text[k - 1 : k + 1] == "\r\n")])
        if self.rng.random() < 0.25 and at < len(text):
            size = 2 if text[at : at + 2] == "\r\n" else 1
            gone = text[at : at + size]
            before, after = text[at - 1 : at], text[at + size : at + size + 1]
            if before == "\r" or (before + after) == "\r\n":
                return
            self.buffer.type(at, "", delete=size)
            self.alive -= set(gone)
            self.spent.subtract(_counted(gone))
            return
        new = chr(FIRST_KEY + self.typed)
        self.typed += 1
        self.alive.add(new)
        if self.rng.random() < 0.4:
            new += self.rng.choice(self.ends)
        self.buffer.type(at, new)
        self.spent.update(_counted(new))

    # ---- the editor ----------------------------------------------------------------------------

    async def apply(self, edit: DocumentEdit) -> ApplyAnswer:
        if self.types_in_flight and self.rng.random() < 0.5:
            self.typed_in_flight = True
            self.press()
        before, alive = self.buffer.text, set(self.alive)
        fresh = edit.version == self.buffer.version
        if fresh and self.rng.random() < MISAPPLIED:
            answer = self.misapply(edit)
        else:
            answer = self.desk.editor.do(edit)
            lost = alive - set(self.buffer.text)
            assert lost <= self.allowed, ("an edit took what nobody gave away", before, edit)
        self.alive &= set(self.buffer.text)
        if self.types_in_flight and self.rng.random() < 0.5:
            self.typed_in_flight = True
            self.press()
        if self.debounces:
            self.late.append(asyncio.create_task(self.report_late()))
        else:
            self.desk.editor.report(self.buffer)
        return ApplyAnswer(answer)

    def misapply(self, edit: DocumentEdit) -> bool:
        """Do something else than asked, and claim that it was done."""
        edits = wire_edits(edit)
        before = self.buffer.text
        right = Buffer("x", before, encoding=self.desk.editor.encoding)
        right.apply_edits(edits)
        kind = self.rng.choice(["cut", "garbled"])
        for one in edits:
            text = one["newText"]
            if kind == "cut":
                end = re.search(r"[\r\n]*$", text)
                half = text[: len(text) // 2].rstrip("\r")  # no editor leaves half a CR LF
                one["newText"] = half + (end[0] if end else "")
            else:
                one["newText"] = re.sub(r"\w", "\ufffd", text, count=1)
        with suppress(ValueError, InvalidPosition):
            self.buffer.apply_edits(edits)
        if to_lf(self.buffer.text) != to_lf(right.text):
            self.wrong = f"{kind}: {before!r} became {self.buffer.text!r}, not {right.text!r}"
        return True

    async def report_late(self) -> None:
        for _ in range(self.rng.randint(1, 20)):
            await asyncio.sleep(0)
        self.desk.editor.report(self.buffer)

    # ---- the agent, and the user's decisions ---------------------------------------------------

    async def propose(self) -> None:
        """Change, insert or delete some lines."""
        rng = self.rng

        def rewrite(_document: object, text: str) -> str:
            lines = split_lines(text)
            for _ in range(rng.randint(1, 3)):
                at = rng.randint(0, len(lines))
                new = [f"{rng.choice(WORDS)}{rng.choice('abc')}\n"] * rng.randint(0, 2)
                lines[at : at + rng.randint(0, 2)] = new
            return "".join(lines)

        call = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")
        await self.desk.sets.proposals.propose("a.txt", rewrite, call)

    async def decide(self) -> None:
        """Something for some of the hunks that wait."""
        desk, rng = self.desk, self.rng
        waiting = [h for h in desk.hunks if desk.states[h.hunk_id] == "proposed"]
        if not waiting:
            return
        decisions: list[HunkDecision] = []
        for hunk in rng.sample(waiting, rng.randint(1, len(waiting))):
            action = rng.choice(["accept", "accept", "accept", "reject", "replace"])
            new = f"own {rng.choice('abc')}\n" if action == "replace" else None
            decisions.append(
                HunkDecision(hunk_id=hunk.hunk_id, action=action, new_text=new)  # type: ignore[arg-type]
            )
        touched = {d.hunk_id: d.new_text for d in decisions if d.action != "reject"}
        texts = {h.hunk_id: (h.old_text or "", h.new_text or "") for h in waiting}
        self.begin({char for key in touched for char in texts[key][0]})
        result = await desk.decide(*decisions)
        await self.end()
        for key in result.applied:
            old, new = texts[key]
            self.spent.subtract(_counted(old))
            self.spent.update(_counted(new if touched[key] is None else str(touched[key])))
        self.check({desk.states[key] for key in touched})

    async def undo(self) -> None:
        """Some hunk, or all; often twice, which must change nothing."""
        desk, rng = self.desk, self.rng
        states = ("applied", "undone", "replaced")
        done = [hunk for hunk in desk.hunks if desk.states[hunk.hunk_id] in states]
        if not done:
            return
        scope: dict[str, Any] = rng.choice(
            [{"turn_id": "t-1"}, {"hunk_id": rng.choice(done).hunk_id}]
        )
        before = self.buffer.text
        first = await self.undo_once(scope)
        if first and not self.typed_in_flight and rng.random() < 0.7:
            second = await self.undo_once(scope)
            if second == first and not self.typed_in_flight:
                assert self.buffer.text == before, "undo of undo is the identity"

    async def undo_once(self, scope: dict[str, Any]) -> frozenset[str]:
        """What was changed, if the editor did what it should."""
        desk = self.desk
        agent = {c for h in desk.hunks for c in (h.new_text or "") + (h.old_text or "")}
        account, text = Counter(self.spent), self.buffer.text
        self.begin(agent | set("own abc"))
        params = UndoParams(**scope, skip_conflicts=self.rng.random() < 0.5)
        result = await desk.sets.undo(str(next(iter(scope.values()))), params)
        await self.end()
        changed = frozenset(result.undone + result.restored)
        states = {desk.states[key] for key in (*changed, *(c.hunk_id for c in result.conflicts))}
        if result.conflicts:
            states.add("conflict")
        wrong = self.wrong
        if not self.typed_in_flight:
            self.spent = account
            self.spent.update(_counted(self.buffer.text))
            self.spent.subtract(_counted(text))
        else:
            self.account_anew()
        self.check(states)
        return frozenset() if wrong or result.conflicts else changed

    # ---- the account ---------------------------------------------------------------------------

    def begin(self, allowed: set[str]) -> None:
        self.allowed = allowed
        self.wrong, self.typed_in_flight = "", False
        self.base = self.buffer.text

    async def end(self) -> None:
        if self.late:
            await asyncio.wait(self.late)
            self.late.clear()
        self.desk.editor.report(self.buffer)

    def account_anew(self) -> None:
        self.spent = _counted(self.buffer.text)

    def check(self, states: set[str]) -> None:
        text = self.buffer.text
        assert self.alive <= set(text), "a character of the user is gone"
        self.alive |= {chr(FIRST_KEY + k) for k in range(self.typed)} & set(text)
        document = self.desk.workspace.document("a.txt", purpose="read")
        assert document.text == text
        noticed = states & {"diverged", "conflict"}
        assert not self.wrong or noticed or +self.spent == _counted(text), (self.wrong, text)
        if self.wrong or "diverged" in states:
            self.account_anew()
        assert +self.spent == _counted(text), (self.base, text, states)

    async def live(self) -> None:
        self.account_anew()
        for _ in range(STEPS):
            match self.rng.choice(["type", "type", "propose", "decide", "decide", "undo"]):
                case "type":
                    self.press()
                    if self.rng.random() < 0.8:
                        self.desk.editor.report(self.buffer)
                case "propose":
                    self.desk.editor.report(self.buffer)
                    await self.propose()
                case "decide":
                    await self.decide()
                case _:
                    await self.undo()
        self.desk.sets.close()


def _counted(text: str) -> Counter[str]:
    return Counter(text.replace("\r", "").replace("\n", ""))


@pytest.mark.parametrize("day", range(DAYS))
async def test_no_character_of_the_user_is_lost(  # E3
    rng: random.Random, tmp_path: Path, day: int
) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    for number in range(HOURS):
        seed = rng.getrandbits(64)
        try:
            await Hour(random.Random(seed), tmp_path).live()
        except BaseException as error:
            error.add_note(f"day {day}, hour {number}: random.Random({seed})")
            raise
