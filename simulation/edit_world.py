"""The world of edits: the real `edits` room, a user who types, an editor and a model, in one file.

Everything between two steps is one tick of the event loop run to its rest; whatever the real world
leaves open (when the editor deals with an edit, when it tells of it, when it answers, when time
passes) is a step of the story.
"""

import asyncio
import itertools
import os
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from kode_sidecar.agent.edits import ChangeSets
from kode_sidecar.agent.event_log import EventHistory
from kode_sidecar.agent.permissions import UserQuestions
from kode_sidecar.core.domain.agent_event import ChangeSetUpdated, Event
from kode_sidecar.core.kernel.contracts import IdKind, ToolCall
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision, UndoParams
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.paths import Location, Root, make_roots
from kode_sidecar.infrastructure.workspace.workspace import Purpose, Workspace
from simulation.edit_desk import Desk
from simulation.edit_truth import FIRST_KEY, FIRST_MARK, FIRST_OWN, Truth
from simulation.editors import EDITORS
from simulation.loop import SimulatedLoop
from simulation.story import Step, Story, Violation

FILE = "a.txt"
NOW = "2026-01-01T00:00:00.000Z"
_FAILED = ("conflict", "stale", "diverged")


class OneFolder(Workspace):
    """The real workspace, which looks only once where a path leads: nothing moves here."""

    def set_roots(self, paths: Sequence[Path]) -> None:
        """See `Workspace`."""
        self.roots = _roots(tuple(paths))

    def locate(
        self, path: str, *, purpose: Purpose = "read", added: Collection[Path] = ()
    ) -> Location:
        """See `Workspace`; of one folder, `purpose` and `added` choose nothing."""
        places = _places(self.roots)
        if path not in places:
            places[path] = super().locate(path, purpose=purpose, added=added)
        return places[path]

    def why_sensitive(self, path: str | os.PathLike[str]) -> str | None:
        """Nothing is."""
        return None

    def runs_in_build(self, path: str | os.PathLike[str]) -> bool:
        """Nothing is."""
        return False


@lru_cache(8)
def _roots(paths: tuple[Path, ...]) -> tuple[Root, ...]:
    return make_roots(paths)


@lru_cache(8)
def _places(roots: tuple[Root, ...]) -> dict[str, Location]:
    """Where paths lead, for all stories of a stage."""
    del roots
    return {}


class EditWorld:
    """Plays one story. `step` is called when the loop rests; `finish` after the last one."""

    def __init__(self, story: Story, loop: SimulatedLoop, root: Path) -> None:
        settings = story.settings
        self._loop, self._root = loop, root
        self._eol = {"lf": "\n", "crlf": "\r\n"}[settings.get("eol", "lf")]
        self._manners = EDITORS[settings.get("editor", "plain")]
        self.truth = Truth()
        self._events: list[Event] = []
        self._states: dict[str, str] = {}
        self._sets_of: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._keys, self._marks, self._owns = (
            map(chr, itertools.count(first)) for first in (FIRST_KEY, FIRST_MARK, FIRST_OWN)
        )
        self._turns, self._mode = 0, "review"
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asking: set[asyncio.Task[Any]] = set()
        self.problem: BaseException | None = None
        path = root / FILE
        last = "" if settings.get("end") == "open" else self._eol
        path.write_bytes((self._eol.join(story.lines) + last).encode())
        self.desk, self.sets = self._process()
        self._enter("review")
        if settings.get("opened", "yes") == "yes":
            self.desk.open()

    def _process(self) -> tuple[Desk, ChangeSets]:
        """The sidecar's part, as a process has it when it begins."""
        workspace = OneFolder([self._root], self._manners.encoding)
        desk = Desk(
            self._root / FILE, self._manners, self._eol, workspace.documents, self.truth.edited
        )
        sets = ChangeSets(
            session_id="s-1",
            workspace=workspace,
            editor=desk,
            emit=self._emit,
            new_id=self._new_id,
            questions=UserQuestions(60.0),
            now=lambda: NOW,
            save=self._save,
        )
        return desk, sets

    def _emit(self, event: Event) -> int:
        self._events.append(event)
        if isinstance(event, ChangeSetUpdated):
            for file in event.files:
                self.truth.announced(file, self.desk.text, given=self._mode == "auto")
                for hunk in file.hunks:
                    self._states[hunk.hunk_id] = hunk.state
                    self._sets_of[hunk.hunk_id] = event.change_set_id
        return len(self._events)

    def _new_id(self, kind: IdKind) -> str:
        return f"{kind[0]}{next(self._numbers)}"

    async def _save(self) -> None:
        """Disks fail in the other world."""

    def _enter(self, mode: str) -> None:
        self._turns += 1
        path = tuple(f"t-{number}" for number in range(1, self._turns))
        self.sets.enter_turn(f"t-{self._turns}", mode, path)  # type: ignore[arg-type]
        self._mode = mode

    def _spawn(self, work: Coroutine[Any, Any, None], *, asks: bool = False) -> None:
        """`asks`: it may wait for the user as long as it likes."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        if asks:
            self._asking.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._asking.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.problem = self.problem or task.exception()

    # ---- steps ---------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Let one thing happen. Raises Violation, ValueError for an unknown verb."""
        act: Callable[[Step], None] | None = getattr(self, f"_{step.verb}", None)
        if step.verb not in VERBS or act is None:
            raise ValueError(f"the world of edits knows no step {step.verb!r}")
        before = self.desk.text
        act(step)
        if step.verb in _USERS:
            self.truth.user_changed(before, self.desk.text)

    def check(self) -> bool:
        """What holds whenever the loop rests. Raises Violation."""
        if self.problem is not None:
            raise self.problem
        desk = self.desk
        if desk.buffer is not None:
            document = desk.documents.get(desk.uri)
            if document is None or document.text != desk.reported:
                raise Violation("the sidecar's text is another one", f"not {desk.reported!r}")
        return False

    def _place(self, number: int) -> int:
        """Return an offset that a cursor can have."""
        text = self.desk.text
        at = number % (len(text) + 1)
        return at - 1 if text[at - 1 : at + 1] == "\r\n" else at

    def _type(self, step: Step) -> None:
        key, eol = next(self._keys), "\n" if self._manners.syncs_lf else self._eol
        text = {"line": key + eol, "above": eol + key}.get(step.word(1), key)
        self.desk.change(self._place(step.number(0)), 0, text)

    def _delete(self, step: Step) -> None:
        text, at = self.desk.text, self._place(step.number(0))
        size = 2 if text[at : at + 2] == "\r\n" else 1
        beside = text[at - 1 : at] + text[at + size : at + size + 1]
        if at < len(text) and not beside.startswith("\r") and beside != "\r\n":
            self.desk.change(at, size, "")

    def _cut(self, step: Step) -> None:
        """A line goes, or two."""
        lines = split_lines(self.desk.text)
        if lines:
            at = step.number(0) % len(lines)
            count = 1 + step.number(1) % 2
            self.desk.change(sum(map(len, lines[:at])), sum(map(len, lines[at : at + count])), "")

    def _undo_key(self, step: Step) -> None:
        del step
        self.desk.take_back()

    def _report(self, step: Step) -> None:
        del step
        self.desk.report()

    def _open(self, step: Step) -> None:
        del step
        self.desk.open()

    def _save_file(self, step: Step) -> None:
        del step
        self.desk.save()

    def _close(self, step: Step) -> None:
        """Saved, or what was typed is thrown away by the user."""
        self._hide_undos()
        if step.word(0) != "unsaved":
            self.desk.save()
        elif self.desk.buffer is not None:  # what was done and not told, nobody ever hears of
            self.truth.discarded(self.desk.reported, self.desk.buffer.text)
        self.desk.close()

    def _hide_undos(self) -> None:
        """What is told together with what landed may hide it."""
        desk = self.desk
        if desk.waiting or desk.dealt_with or (desk.buffer and desk.reported != desk.buffer.text):
            self.truth.lose_undos()

    def _switch(self, step: Step) -> None:
        """Another branch is checked out: the file has a line more, or one less."""
        self._hide_undos()
        lines = split_lines(self.desk.disk)
        at = step.number(0) % (len(lines) + 1)
        lines[at : at + step.number(1) % 2] = [f"{next(self._keys)}{self._eol}"]
        self.desk.reload("".join(lines))

    def _take(self, step: Step) -> None:
        del step
        self.desk.deal_with_next()

    def _answer(self, step: Step) -> None:
        del step
        self.desk.answer_next()

    def _thread(self, step: Step) -> None:
        del step
        self._loop.answer_thread()

    def _wait(self, step: Step) -> None:
        """So many tenths of a second pass; one timer at a time, the rest comes after it."""
        until = self._loop.time() + step.number(0) / 10
        while self._loop.pass_time(until) and not self._loop.is_busy:
            pass

    def _turn(self, step: Step) -> None:
        self._enter(step.word(0) or "review")

    def _propose(self, step: Step) -> None:
        """The model changes what it sees: from a line on, so many go and so many come."""
        mark = [next(self._marks) for _ in range(step.number(2) % 3)]

        def rewrite(_document: object, text: str) -> str:
            lines = split_lines(text)
            at = step.number(0) % (len(lines) + 1)
            lines[at : at + step.number(1) % 3] = [
                f"{char} {step.word(3) or 'new'}\n" for char in mark
            ]
            return "".join(lines)

        self._spawn(self._proposing(rewrite), asks=True)

    async def _proposing(self, rewrite: Callable[[object, str], str]) -> None:
        call = ToolCall("tool-1", "propose_edit", "s-1", f"t-{self._turns}", "m-1")
        with suppress(KodeError):  # as the model is told of a mistake
            proposed = await self.sets.proposals.propose(FILE, rewrite, call)
            self.truth.receive(proposed.message)

    def _hunk(self, number: int, *states: str) -> str | None:
        keys = [key for key, state in self._states.items() if state in states]
        return keys[number % len(keys)] if keys else None

    def _decide(self, step: Step) -> None:
        """Accept, reject or replace a hunk that waits, or once more one that failed."""
        key = self._hunk(step.number(1), "proposed", *_FAILED)
        if key is None:
            return
        action, fate = step.word(0), self.truth.fates[key]
        new: str | None = None
        if action == "replace":
            new = f"{next(self._owns)} own\n"
        if action != "reject" and not (fate.given and self._states[key] == "proposed"):
            fate.give(new)
        decision = HunkDecision(hunk_id=key, action=action, new_text=new)  # type: ignore[arg-type]
        self._spawn(
            self._deciding(DecideParams(change_set_id=self._sets_of[key], decisions=(decision,)))
        )

    def _decide_all(self, step: Step) -> None:
        """What the user has seen of the newest change set, accepted or rejected as a whole."""
        if not self._sets_of:
            return
        newest = list(self._sets_of.values())[-1]
        for key, change_set in self._sets_of.items():
            fate, waits = self.truth.fates[key], self._states[key] == "proposed"
            waits = waits and fate.merge_of is None  # what is left of a conflict is no rest
            if change_set == newest and waits and step.word(0) != "reject" and not fate.given:
                fate.give(None)
        rest: Any = step.word(0) or "accept"
        params = DecideParams(change_set_id=newest, rest=rest, seen_seq=len(self._events))
        self._spawn(self._deciding(params))

    async def _deciding(self, params: DecideParams) -> None:
        try:
            await self.sets.decide(params)
        except KodeError as error:
            if error.code != "ChangeSetClosed":
                raise

    def _undo(self, step: Step) -> None:
        """Take a hunk back, or all of its turn; put back what was taken back before."""
        key = self._hunk(step.number(0), "applied", "replaced", "undone")
        if key is None:
            return
        scope, keys = key, [key]
        params = UndoParams(hunk_id=key, skip_conflicts=True)
        if step.word(1) == "all":
            scope = self._sets_of[key]
            keys = [one for one, of in self._sets_of.items() if of == scope]
            params = UndoParams(change_set_id=scope, skip_conflicts=bool(step.number(0) % 2))
        for one in keys:
            self.truth.fates[one].taken_back = True
        self._spawn(self._undoing(scope, params))

    async def _undoing(self, scope: str, params: UndoParams) -> None:
        await self.sets.undo(scope, params)

    def _look(self, step: Step) -> None:
        """The user looks at the review: whoever waits is shown where it stands."""
        del step
        for change_set in dict.fromkeys(self._sets_of.values()):
            self.sets.get(change_set)

    def _listen(self, step: Step) -> None:
        """The model's next step: it is told what it does not know."""
        del step
        self.truth.receive(self.sets.take_reminders() or "")

    def _restart(self, step: Step) -> None:
        """The process is killed and started again; the editor tells it what is open."""
        del step
        old = self.desk
        self.sets.close()
        for task in self._tasks:
            task.remove_done_callback(self._ended)
            task.cancel()
        self._tasks.clear()
        self._asking.clear()
        self.truth.killed(self._states)
        old.report()
        self.desk, self.sets = self._process()
        self.desk.buffer, self.desk.hidden, self.desk.history = old.buffer, old.hidden, old.history
        self.desk.reported, self.desk.showing = old.reported, old.showing
        self.desk.checkouts, self.desk.unknown = old.checkouts, True
        history = EventHistory()
        history.feed_all(list(self._events))
        self.sets.restore(history)
        if old.buffer is not None:
            params = old.buffer.did_open()["textDocument"]
            self.desk.documents.open(params["uri"], "plaintext", params["version"], params["text"])
        self._enter("review")

    # ---- the end -------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Let the next of all that is under way happen; False when nothing is any more."""
        desk = self.desk
        if self._loop.answer_thread():
            return True
        if desk.waiting or desk.dealt_with or (desk.buffer and desk.reported != desk.buffer.text):
            desk.deal_with_next()
            desk.report()
            desk.answer_next()
            return True
        when = self._loop.next_timer
        if when is not None:
            return self._loop.pass_time(when)
        for task in self._asking:  # the user never said: the turn is cancelled
            task.cancel()
        return bool(self._asking)

    def finish(self) -> None:
        """All is told and nothing is under way: now everything must be true. Raises Violation."""
        self.check()
        self.desk.check_disk()
        if self._tasks:
            raise Violation("something waits for ever", f"{len(self._tasks)} requests")
        self._look(Step("look"))
        unseen = self._states if self.desk.buffer is None else ()
        self.truth.receive(self.sets.take_reminders() or "")
        self.truth.check_states(self._states, self.desk.text, unseen)
        self.truth.check_told(self._states)
        for change_set in dict.fromkeys(self._sets_of.values()):
            for file in self.sets.get(change_set).files:
                for hunk in file.hunks:
                    if hunk.state != self._states[hunk.hunk_id]:
                        raise Violation("events and snapshot differ", f"{hunk}")

    def close(self) -> None:
        """Nobody goes on."""
        self.sets.close()


_USERS = {"type", "delete", "cut", "undo_key", "close", "switch"}
VERBS = _USERS | {
    *("report", "open", "save_file", "take", "answer", "thread", "wait", "turn", "propose"),
    *("decide", "decide_all", "undo", "look", "listen", "restart"),
}
