"""One process of the sidecar in a simulated world: the real rooms, wired as `boot` wires them."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kode_sidecar.agent.context.agents import BUILT_IN_AGENTS, AgentProfile
from kode_sidecar.agent.context.budget import BudgetedModel
from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.context.compaction import CompactionTexts
from kode_sidecar.agent.context.surroundings import SystemPrompt
from kode_sidecar.agent.edits import EditLocks
from kode_sidecar.agent.event_log import SessionDefaults
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.permissions import Questions, UserQuestions, ask_user_tool
from kode_sidecar.agent.sessions import (
    FollowedSessions,
    SessionAttachments,
    SessionFolders,
    SessionRegistry,
)
from kode_sidecar.agent.sessions.repair import repair_session
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.agent.tools.propose_edit import propose_edit_tool
from kode_sidecar.agent.tools.read_file import read_file_tool
from kode_sidecar.agent.turns import (
    Budgets,
    LearnedRates,
    RequestBody,
    SessionServices,
    ToolScope,
)
from kode_sidecar.agent.turns.services import OfferTools
from kode_sidecar.core.kernel.contracts import NewId, Sampling, Tool
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.json_log import JsonLog
from kode_sidecar.infrastructure.records.messages import StorageName
from kode_sidecar.infrastructure.records.saver import Saver, Syncable
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from simulation.loop import SimulatedLoop
from simulation.model import SimulatedModel

Bug = Callable[[str, BaseException], None]
QUESTION_SECONDS = 60.0
_PAUSE_SECONDS = 0.1


class LoopSaver(Saver):
    """A saver without threads: the loop calls `sync` as one of its calls for a thread.

    What may wait for a save is done some time after it, as the thread does.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._jobs = {}
        self._changed = threading.Lock()
        self._doing_jobs = threading.Lock()
        self._closing = False

    def sync(self, files: Sequence[Syncable]) -> None:
        """Sync each; raise the first failure."""
        failures: list[Exception] = []
        for file in files:
            try:
                file.sync()
            except Exception as error:
                failures.append(error)
        self._loop.call_later(_PAUSE_SECONDS, self._do_jobs)
        if failures:
            raise failures[0]


@dataclass(frozen=True)
class SimulatedClock:
    """The loop's time."""

    loop: SimulatedLoop

    def timestamp(self) -> str:
        """See `kernel.contracts.Clock`."""
        whole = int(self.loop.time() * 1000)
        seconds, milliseconds = divmod(whole, 1000)
        minutes, seconds = divmod(seconds, 60)
        return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{milliseconds:03}Z"

    def monotonic(self) -> float:
        """See `kernel.contracts.Clock`."""
        return self.loop.time()


class _NoLog:
    """Takes every line and keeps none."""

    def write(self, *_: object, **__: object) -> None:
        """Nobody reads it."""


async def _nothing_remembered(*_: object) -> None:
    """This world has no memory service."""


async def _nothing_spent(_: str) -> float:
    return 0.0


async def _nobody_else_works(_: object) -> None:
    """The journal of a session grows in no other process."""


async def _not_encoded(_: object) -> RequestBody:
    return RequestBody("m", b"{}")


@dataclass
class Sidecar:
    """What a process has; `storage` is how it keeps messages."""

    home: Path
    workspace: Workspace
    editor: EditorPort
    model: SimulatedModel
    loop: SimulatedLoop
    new_id: NewId
    storage: StorageName
    report_bug: Bug

    def __post_init__(self) -> None:
        clock = SimulatedClock(self.loop)
        saver = LoopSaver(self.loop)
        self.store = ConversationStore(self.home, saver, self.storage)
        defaults = SessionDefaults(BUILT_IN_AGENTS[0].name, "review", "m", 40)
        self.folders = SessionFolders(self.store, saver, clock, self.new_id, defaults, lambda: ())
        self.sessions = SessionRegistry(self.folders)
        followed = FollowedSessions(_nobody_else_works, self.editor.publish, self.editor.flow)
        self.attachments = SessionAttachments(self.sessions, self.folders, followed, 1_000_000)
        services = self._services(clock)
        self.sessions.attach(
            lambda new: Session(new, services),
            lambda opened: repair_session(opened, clock, self.new_id),
        )

    def _services(self, clock: SimulatedClock) -> SessionServices:
        questions = UserQuestions(QUESTION_SECONDS)
        asking = Questions(self.editor, self.new_id, questions)
        budgets = BudgetedModel(self.model, lambda _: None, _nothing_spent)
        return SessionServices(
            model=budgets,
            budgets=Budgets(budgets, None, lambda: "2026-01-01"),
            editor=self.editor,
            workspace=self.workspace,
            clock=clock,
            new_id=self.new_id,
            sampling=Sampling(None, None, chosen=False),
            max_tokens=None,
            questions=questions,
            silence_seconds=1e6,
            editor_note=lambda: None,
            system_prompt=lambda _agent, _mode: SystemPrompt("system", {}),
            limit_instruction=lambda: "Sum up now.",
            koding_note=lambda _: None,
            compaction_texts=lambda: CompactionTexts("", str, str),
            recall=_nothing_remembered,
            traits=lambda _: ModelTraits(None, returns_thinking=True),
            rates=LearnedRates(),
            encode=_not_encoded,
            edit_locks=EditLocks(),
            tools=lambda scope: self._offer(scope, asking),
            log=cast(JsonLog, _NoLog()),
            provider=lambda _: "simulated",
            report_bug=self.report_bug,
        )

    def _offer(self, scope: ToolScope, asking: Questions) -> OfferTools:
        sets = scope.change_sets
        files, shown = sets.session_files, sets.freshness
        tools: Sequence[Tool] = (
            read_file_tool(self.workspace, files, shown.note),
            propose_edit_tool(sets.proposals, files, shown),
            ask_user_tool(asking, scope.emit),
        )

        def offer(_agent: AgentProfile, _mode: Mode) -> Sequence[Tool]:
            return tools

        return offer
