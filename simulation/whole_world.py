"""The whole world: sessions, turns, edits, the event log and the records over a disk that fails.

A user with one session and one open file, a model that says what the story says, a disk with faults
and power cuts, processes that are killed and begin again, and a second one on the same home.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.core.domain.agent_event import ChangeSetUpdated, Event
from kode_sidecar.core.kernel.contracts import IdKind
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision
from kode_sidecar.core.protocol.session import (
    SessionAttachParams,
    SessionNewParams,
)
from kode_sidecar.errors import KodeError
from simulation.disk import Disk
from simulation.edit_truth import Truth
from simulation.edit_world import OneFolder
from simulation.editors import EDITORS
from simulation.loop import SimulatedLoop
from simulation.model import SimulatedModel
from simulation.requests import Requests
from simulation.sidecar import Sidecar
from simulation.story import Step, Story, Violation
from simulation.user_desk import UserDesk
from simulation.whole_truth import Ledger
from tests.support.session_fold import SessionFold, attached

Work = Coroutine[Any, Any, None]


class WholeWorld:
    """Plays one story; see `playing.World`."""

    def __init__(self, story: Story, loop: SimulatedLoop, root: Path) -> None:
        self._loop, self._settings = loop, story.settings
        self._project = root / "project"
        self._project.mkdir(exist_ok=True)
        (self._project / "a.txt").write_text("".join(f"{line}\n" for line in story.lines))
        chance = random.Random(story.settings.get("chance", "0"))
        self._disk = Disk(root / "home", chance)
        self._disk.wipe()
        self._disk.__enter__()
        self._numbers = itertools.count(1)
        self.truth, self.ledger = Truth(), Ledger()
        self.problem: BaseException | None = None
        self._session_id: str | None = None
        self.fold = SessionFold("")
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests = self._client()
        self._is_down = False
        self._last_word = False
        self._begin()
        self._spawn(self._create())

    # ---- processes -----------------------------------------------------------------------------

    def _begin(self) -> None:
        """A process is started; the editor tells it of its file."""
        self.model = SimulatedModel()
        self.process, self.desk = self._sidecar()
        self.desk.open()
        self.session: Session | None = None

    def _sidecar(self) -> tuple[Sidecar, UserDesk]:
        workspace = OneFolder([self._project], "utf-16")
        desk = UserDesk(
            self._project / "a.txt",
            EDITORS["plain"],
            "\n",
            workspace.documents,
            self.truth.edited,
            hears=self._receive,
            hears_delta=self._hear_delta,
        )
        process = Sidecar(
            home=self._disk.root,
            workspace=workspace,
            editor=desk,
            model=self.model,
            loop=self._loop,
            new_id=self._new_id,
            storage="sqlite" if self._settings.get("storage") == "sqlite" else "jsonl",
            report_bug=self._bug,
        )
        return process, desk

    def _client(self) -> Requests:
        return Requests(self.ledger, self._numbers, lambda: self._hears)

    def _new_id(self, kind: IdKind) -> str:
        return f"{kind[0]}{next(self._numbers):09}"

    def _bug(self, where: str, error: BaseException) -> None:
        self.problem = self.problem or Violation("a bug", f"{where}: {error!r}")

    def _spawn(self, work: Work) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if self._is_down or task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, KodeError):
            self.problem = self.problem or error

    @property
    def _hears(self) -> bool:
        """Whether what the process says now is worth anything."""
        return not self._is_down and not self._disk.is_dark

    def _receive(self, desk: UserDesk, events: Sequence[Event]) -> None:
        if desk is not self.desk or not self._hears:
            return
        for event in events:
            self.fold.event(msgspec.to_builtins(event))
            self.ledger.receive(event)
            if isinstance(event, ChangeSetUpdated):
                for file in event.files:
                    self.truth.announced(file, self.desk.text, given=False)
        if self.fold.anomalies:
            raise Violation("the stream breaks its order", str(self.fold.anomalies))

    def _hear_delta(self, desk: UserDesk, delta: Any) -> None:
        if desk is self.desk and self._hears:
            self.fold.delta(msgspec.to_builtins(delta))

    def _die(self) -> None:
        """The process is gone, whatever it was doing; what it had written stays."""
        self._is_down = True
        self._disk.freeze()
        self.truth.killed(self.ledger.hunks(self.truth.fates))
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def _be_reborn(self) -> None:
        buffer, history = self.desk.buffer, self.desk.history
        if self.session is not None:
            self.session.change_sets.close()
        for timer in self._loop.timers():
            timer.handle.cancel()
        self._disk.begin_again()
        self._is_down = False
        self._requests = self._client()
        self._tasks.clear()
        self._begin()
        self.desk.buffer, self.desk.history = buffer, history
        if buffer is not None:
            item = buffer.did_open()["textDocument"]
            self.desk.reported = item["text"]
            self.desk.documents.open(item["uri"], "plaintext", item["version"], item["text"])
        if self._session_id is None:
            self._spawn(self._create())
        else:
            self._spawn(self._open(self._session_id))

    async def _create(self) -> None:
        created = await self.process.sessions.create(SessionNewParams(title="new"))
        if not self._hears:
            return
        self._session_id = created.session_id
        self.ledger.titles = ["new"]
        self.fold = SessionFold(created.session_id, created.seq)
        self.session = await self.process.sessions.get(created.session_id)

    async def _open(self, session_id: str) -> None:
        """What was acknowledged is there; nothing is there twice or invented."""
        session = await self.process.sessions.open(session_id)
        params = SessionAttachParams(session_id=session_id)
        result, release = await self.process.attachments.attach(params)
        if not self._hears:
            return
        self.fold = attached(session_id, msgspec.to_builtins(result))
        self.session = session
        release()
        received = self.ledger.hunks(self.truth.fates)
        self.ledger.check_kept(session, self.fold)
        for view in session.change_sets.all_views():
            for file in view.files:  # kept, and told to nobody before the process was gone
                self.truth.announced(file, self.desk.text, given=False)
        done = ("applied", "replaced")
        self.truth.unrecorded(  # told before they were saved, and the power took the record
            key
            for key, was in received.items()
            if was in done
            and key not in self.ledger.decided
            and self.ledger.states.get(key, "proposed") not in done
        )
        for key in self.truth.fates.keys() - self.ledger.states.keys():
            self.truth.forget(key)  # told, and lost before anybody was promised anything

    # ---- steps ---------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Let one thing happen. Raises Violation, ValueError for an unknown verb."""
        act: Callable[[Step], None] | None = getattr(self, f"_{step.verb}", None)
        if step.verb not in VERBS or act is None:
            raise ValueError(f"the whole world knows no step {step.verb!r}")
        act(step)

    def check(self) -> bool:
        """See `playing.World`; True after a process has ended or begun, which takes its time."""
        if self.problem is not None:
            raise self.problem
        if self._is_down:
            self._be_reborn()
            return True
        if self._disk.is_dark:
            self._die()
            return True
        return False

    def _prompt(self, step: Step) -> None:
        if self.session is not None:
            self.model.may_start = True
            again = step.word(0) == "again"
            self._spawn(self._requests.prompt(self.session, again=again))

    def _steer(self, step: Step) -> None:
        del step
        if self.session is not None and self.session.active_turn_id is not None:
            self._spawn(self._requests.steer(self.session, self.session.active_turn_id))

    def _cancel(self, step: Step) -> None:
        del step
        if self.session is not None and self.session.cancel(None) and not self._requests.starting:
            self.model.may_start = False

    def _rename(self, step: Step) -> None:
        if self.session is not None:
            self._spawn(self._requests.rename(self.session, f"title {step.number(0)}"))

    def _model(self, step: Step) -> None:
        self.model.say(step)

    def _reply(self, step: Step) -> None:
        self.desk.reply(("one", "two")[step.number(0) % 2])

    def _decide(self, step: Step) -> None:
        keys = [key for key, state in self.ledger.states.items() if state == "proposed"]
        if self.session is None or not keys:
            return
        key = keys[step.number(1) % len(keys)]
        action: Any = step.word(0) or "accept"
        if action == "accept":
            self.truth.fates[key].give(None)
        decision = HunkDecision(hunk_id=key, action=action)
        params = DecideParams(change_set_id=self.ledger.set_of[key], decisions=(decision,))
        self._spawn(self._requests.decide(self.session, params, key))

    def _type(self, step: Step) -> None:
        before = self.desk.text
        self.desk.change(step.number(0) % (len(before) + 1), 0, chr(0x4E00 + next(self._numbers)))
        self.truth.user_changed(before, self.desk.text)
        self.desk.report()

    def _edit(self, step: Step) -> None:
        """The editor deals with an edit, tells of it and answers; or only some of that."""
        for verb in (step.word(0) or "take,report,answer").split(","):
            {"take": self.desk.deal_with_next, "report": self.desk.report}.get(
                verb, self.desk.answer_next
            )()

    def _fault(self, step: Step) -> None:
        self._disk.fail_at(step.word(0) or "eio", 1 + step.number(1))

    def _power(self, step: Step) -> None:
        if step.number(0):
            self._disk.fail_at("power", step.number(0))
        else:
            self._disk.cut_power()

    def _kill(self, step: Step) -> None:
        del step
        self._die()

    def _attach(self, step: Step) -> None:
        del step
        if self.session is not None and self.session.active_turn_id is None:
            self._spawn(self._requests.compare(self.session, self.process.attachments))

    def _second(self, step: Step) -> None:
        del step
        if self._session_id is not None and self.session is not None:
            self._spawn(self._requests.open_twice(self._session_id, self._sidecar()[0]))

    def _thread(self, step: Step) -> None:
        del step
        self._loop.answer_thread()

    def _wait(self, step: Step) -> None:
        until = self._loop.time() + step.number(0) / 10
        while self._loop.pass_time(until) and not self._loop.is_busy:
            pass

    # ---- the end -------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Let the next of all that is under way happen; then the model is asked a last time."""
        if self._loop.answer_thread():
            return True
        desk = self.desk
        if desk.waiting or desk.dealt_with:
            self._edit(Step("edit"))
            return True
        if desk.asked:
            desk.reply("one")
            return True
        if self.model.is_asked:
            self.model.finish()
            return True
        when = self._loop.next_timer
        if when is not None:
            return self._loop.pass_time(when)
        if self._last_word:
            return False
        self._last_word = True
        self._disk.heal()
        if self.session is None:
            self._spawn(self._open(self._session_id) if self._session_id else self._create())
        else:
            self._prompt(Step("prompt"))
        return True

    def finish(self) -> None:
        """Nothing is under way: what is kept, told and believed agrees. Raises Violation."""
        if self.problem is not None:
            raise self.problem
        if self._tasks:
            raise Violation("something waits for ever", f"{len(self._tasks)} requests")
        self.ledger.check_asked()
        if self.session is None:
            return
        self.ledger.check_kept(self.session, self.fold)
        self.truth.check_states(self.ledger.states, self.desk.text, ())
        if self.model.requests:
            for message in self.model.requests[-1].messages:
                for block in message.content:
                    self.truth.receive(getattr(block, "text", ""))
            self.truth.check_told(self.ledger.states)

    def close(self) -> None:
        """Nobody goes on; the disk is this process's again."""
        if self.session is not None:
            self.session.change_sets.close()
        self._is_down = True
        self._disk.freeze()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.play(lambda: False)
        self._disk.begin_again()
        self._disk.__exit__()


VERBS = {
    *("prompt", "steer", "cancel", "rename", "model", "reply", "decide", "type", "edit", "fault"),
    *("power", "kill", "attach", "second", "thread", "wait"),
}
