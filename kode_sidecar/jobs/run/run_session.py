"""The session of a run: made like any other; its only turn runs in mode `auto` (F19)."""

import asyncio
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.context.agents import SCOUT, AgentProfile
from kode_sidecar.agent.context.compaction import compaction_texts
from kode_sidecar.agent.context.surroundings import SystemPrompt
from kode_sidecar.agent.context.system_prompt import Surroundings, system_prompt
from kode_sidecar.agent.edits import EditLocks
from kode_sidecar.agent.event_log import NewSession, OpenedSession
from kode_sidecar.agent.permissions import UserQuestions
from kode_sidecar.agent.scouts.contracts import ScoutServices
from kode_sidecar.agent.sessions import JOB, SessionFolders
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.agent.turns import RequestBody, SessionServices
from kode_sidecar.core.domain.budget import Budget, read_amount
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import Blob, TextBlock
from kode_sidecar.core.domain.run import RunRecord
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, TurnEnd
from kode_sidecar.core.protocol.session import SessionNewParams
from kode_sidecar.core.protocol.turn import Goal, TurnStartParams
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.contracts import RunScope, RunServices
from kode_sidecar.jobs.run.engines import Engine
from kode_sidecar.jobs.run.folder_editor import FolderEditor
from kode_sidecar.jobs.run.run_config import GoalPart, ModelPart, RunConfig
from kode_sidecar.jobs.run.run_recorder import RunRecorder
from kode_sidecar.jobs.run.toolset import RunTools

_DEFAULT_SAMPLING = (ModelPart().temperature, ModelPart().top_p)
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class JobWork:
    """The work of a run's engine, and what it needs for it.

    `system` is the composed prompt, `prompt` the task. `save_output` stores the part of tool output
    that the model does not read.
    """

    scope: RunScope
    services: RunServices
    engine: Engine
    tools: RunTools
    recorder: RunRecorder
    system: str
    prompt: str
    save_output: Callable[[str], Blob]

    @property
    def config(self) -> RunConfig:
        """The configuration of the run."""
        return self.scope.config


class RunSession:
    """The session of one run. Use `work` once, then `close` it."""

    def __init__(
        self, session: Session, editor: FolderEditor, work: JobWork, config_path: str
    ) -> None:
        self._session = session
        self._editor = editor
        self._work = work
        self._config_path = config_path

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._session.id

    async def work(self, cancelled: asyncio.Event) -> TurnEnd:
        """Run the turn until it is done; stop it if `cancelled` is set or its time is over.

        A stopped turn ends as `cancelled` or `interrupted`. Raises KodeError as
        `Session.start_turn` does.
        """
        runtime = self._work.config.runtime
        started, release = await self._session.start_turn(
            TurnStartParams(
                session_id=self.id,
                input=(TextBlock(text=self._work.prompt),),
                budget=_budget(runtime.budget),
                goal=_goal(self._work.config.goal),
            )
        )
        release()
        end = self._editor.turn_end(started.turn_id)
        stop = asyncio.create_task(cancelled.wait())
        try:
            await asyncio.wait(
                {end, stop}, timeout=runtime.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            stopped = not end.done()
            if stopped:
                self._session.cancel(started.turn_id)
                await asyncio.wait({end})
        finally:
            stop.cancel()
        if cancelled.is_set():
            return TurnEnd("cancelled")
        if stopped:
            return TurnEnd("interrupted", _timed_out(runtime.timeout_seconds))
        completed = end.result()
        return TurnEnd(completed.stop_reason, self._explained(completed.error))

    def _explained(self, error: ErrorInfo | None) -> ErrorInfo | None:
        """Return the error; one about the job's own budget names the job's file."""
        if error is None or error.code != "BudgetReached" or error.details != {"reason": "turn"}:
            return error
        limit = self._work.config.runtime.budget
        text = (
            f"The job's budget of {limit} has no room for another request: raise "
            f"`runtime.budget` in {self._config_path} to go on."
        )
        return msgspec.structs.replace(error, message=text)

    async def close(self) -> None:
        """Cancel what runs, wait for its end, and release the files."""
        await self._session.discard()
        self._work.recorder.sum_up(self._session.totals)


async def open_run_session(
    work: JobWork, folders: SessionFolders, run: RunRecord, project: Path | None
) -> RunSession:
    """Make and save the session of a run. `project` is the folder that was copied.

    Raises KodeError `Storage`.
    """
    config = work.config
    editor = FolderEditor(work.scope.sandbox, work.scope.workspace, work.recorder)
    roots = [] if project is None else [project.as_uri()]
    about = {"runId": run.run_id, "taskId": run.task_id, "sandboxRoot": run.sandbox_root}
    meta: dict[str, Any] = {"roots": roots, "run": about}
    params = SessionNewParams(mode="auto", model=config.model.name, meta=meta)
    records = await folders.create(run.conversation_id, JOB, params, kind=JOB)
    agent = AgentProfile(JOB, "", None, config.runtime.max_steps, tuple(work.tools.names))
    new = NewSession(OpenedSession(records), agent, "auto", config.model.name, folders.defaults)
    try:
        return RunSession(Session(new, _services(work, editor)), editor, work, run.config_path)
    except BaseException:
        records.close()
        raise


def _services(work: JobWork, editor: FolderEditor) -> SessionServices:
    services, config, model = work.services, work.config, work.config.model
    wanted = (model.temperature, model.top_p)
    sampling = Sampling(*wanted, chosen=wanted != _DEFAULT_SAMPLING)
    scouts = ScoutServices(
        model=services.budgets.model,
        clock=services.clock,
        new_id=services.new_id,
        system_prompt=lambda: _scout_prompt(work),
        report_bug=services.report_bug,
        traits=services.traits,
        sampling=sampling,
    )
    return SessionServices(
        model=work.engine.model,
        editor=editor,
        workspace=work.scope.workspace,
        clock=services.clock,
        new_id=services.new_id,
        sampling=sampling,
        max_tokens=model.max_tokens,
        questions=UserQuestions(_ANSWER_SECONDS),
        silence_seconds=services.silence_seconds,
        editor_note=lambda: None,
        system_prompt=lambda _agent, _mode: SystemPrompt(work.system, {}),
        limit_instruction=lambda: services.limit_instruction,
        koding_note=lambda _options: None,
        compaction_texts=lambda: compaction_texts(services.prompts),
        recall=_nothing_recalled,
        traits=services.traits,
        rates=services.rates,
        encode=_nobody_inspects,
        edit_locks=EditLocks(),
        tools=lambda scope: work.tools.offer(scope, scouts),
        budgets=services.budgets,
        log=services.log,
        provider=services.provider,
        report_bug=services.report_bug,
        hooks=services.hooks(work.scope.workspace),
        run_turn=work.engine.run_turn,
        stream=config.runtime.stream,
        call_ended=work.recorder.tools.outcome,
        save_artifact=work.save_output,
    )


def _scout_prompt(work: JobWork) -> str:
    surroundings = Surroundings(
        roots=[str(root.path) for root in work.scope.workspace.roots],
        platform=sys.platform,
        editor="",
        date=work.services.budgets.date(),
    )
    return system_prompt(work.services.prompts, SCOUT, "plan", surroundings)


def _budget(limit: str | None) -> Budget | None:
    if limit is None:
        return None
    amount = read_amount(limit)
    return Budget(currency=amount.currency, turn=amount.amount)


def _goal(part: GoalPart | None) -> Goal | None:
    if part is None:
        return None
    return Goal(command=part.command, folder=part.folder, rounds=part.rounds)


def _timed_out(seconds: float) -> ErrorInfo:
    text = (
        f"The run took longer than runtime.timeout_seconds, {seconds:g} s. "
        "Allow more, or ask for less."
    )
    return failure("RunTimedOut", text)


async def _nothing_recalled(_prompt: str, _known: Collection[str]) -> None:
    """Return None: the composed prompt already holds the memories."""


async def _nobody_inspects(_request: ModelRequest) -> RequestBody:
    raise KodeError("CapabilityMissing", "The next request of a job cannot be looked at.")
