"""Run scouts from question to report: one `ScoutRun` each, in parallel in a `Dispatch`.

All state of a scout is in its `ScoutRun`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count

import msgspec

from kode_sidecar.agent.context.agents import SCOUT
from kode_sidecar.agent.context.builder import PromptContext
from kode_sidecar.agent.context.task_history import TaskHistory
from kode_sidecar.agent.scouts.contracts import (
    CheckedFinding,
    ExploreReport,
    ExploreRequest,
    ExploreTask,
    Outcome,
    ScoutLimits,
    ScoutServices,
)
from kode_sidecar.agent.scouts.report import (
    ReportFindingsParams,
    checked,
    fitted,
    report_findings_tool,
)
from kode_sidecar.agent.scouts.scout_rules import (
    READ,
    Refusal,
    ScoutUse,
    called,
    check,
    must_report,
    succeeded,
)
from kode_sidecar.core.domain.agent_event import (
    BlockDelta,
    Event,
    Notice,
    ScoutState,
    ScoutUpdated,
)
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import (
    Emit,
    Tool,
    ToolCall,
    ToolOutcome,
    TurnEnd,
    TurnLimits,
    TurnScope,
    tool_failure,
)
from kode_sidecar.errors import KodeError

REPORT_NOW = (
    "Report now: your calls, your time or the room for your history is used up. Call "
    "report_findings with what you have; no other tool runs any more."
)
REFUSALS: dict[Refusal, str] = {
    "read_first": "Not yet: you have not read anything. Read at least one file with read_file, "
    "then report what it shows.",
    "report_now": REPORT_NOW,
    "reported": "You have reported; there is nothing left to do.",
}
LAST_WORDS = "No tool runs any more. Say in plain text what you found out, with path and lines."


class ScoutRun:
    """Runs one scout once. Its report covers every outcome, except a cancelled turn."""

    def __init__(self, task: ExploreTask, request: ExploreRequest, services: ScoutServices) -> None:
        self._id = services.new_id("scout")
        self._task = task
        self._request = request
        self._services = services
        self._model = self._chosen_model()
        self._traits = services.traits(self._model)
        self._limits = _within(services.limits, self._traits.window)
        self._started = services.clock.monotonic()
        self._use = ScoutUse()
        self._read: dict[str, None] = {}
        self._accepted: ReportFindingsParams | None = None
        self._findings: tuple[CheckedFinding, ...] = ()
        self._last_words = ""
        self._state_reported: ScoutState | None = None

    def _chosen_model(self) -> str:
        """Return the scouts' own model; the session's if there is none, or it cannot be asked."""
        own, request = self._services.own_model, self._request
        missing = None if own is None else self._services.model.missing(own)
        if own is None or missing is None:
            return own or request.model
        text = f"Scouts use {request.model}: {own} cannot be asked. {missing.message}"
        notice = Notice(turn_id=request.call.turn_id, code="OtherModelTaken", message=text)
        request.emit(notice)
        return request.model

    async def run(self) -> ExploreReport:
        """Explore and report. Raises asyncio.CancelledError when the turn is cancelled."""
        self._notify("running")
        try:
            state, note = await self._outcome()
        except BaseException:
            self._notify("cancelled")
            raise
        self._notify(state)
        return fitted(self._report(state, note), self._limits.report_bytes)

    async def _outcome(self) -> tuple[Outcome, str]:
        """Return how the scout ended and, unless `done`, the note for its report."""
        seconds = self._limits.seconds
        deadline = asyncio.timeout(seconds)
        note = "The scout ended without a report."
        try:
            async with deadline:
                end = await self._explore()
            if end.error is not None:
                note = f"The scout ended without a report: {end.error.message}"
        except TimeoutError as error:
            if not deadline.expired():
                note = self._bug(error)
        except KodeError as error:
            note = f"The scout could not work: {error.message}"
        except Exception as error:
            note = self._bug(error)
        if self._accepted is not None:
            return "done", ""
        if deadline.expired():
            return "timed_out", f"The scout ran out of time after {seconds:g} seconds."
        return "failed", note

    async def _explore(self) -> TurnEnd:
        call, services = self._request.call, self._services
        with closing(self._request.open_log(self._id)) as log:

            def keep(message: Message) -> None:
                self._count(message)
                log.append(message)

            history = TaskHistory(
                self._prompt(),
                keep,
                services.clock,
                services.new_id,
                meta={"scoutId": self._id, "turnId": call.turn_id},
                window=self._traits.window,
                due=self._due,
            )
            message = history.open("user", {})
            history.commit(msgspec.structs.replace(message, content=(self._question(),)))
            try:
                return await run_turn(
                    TurnScope(
                        session_id=call.session_id,
                        turn_id=call.turn_id,
                        new_id=services.new_id,
                        clock=services.clock,
                        save_artifact=self._request.save_artifact,
                        report_bug=services.report_bug,
                        run_call=self._request.run_call,
                    ),
                    services.model,
                    self._tools(),
                    history,
                    TurnLimits(
                        max_tool_rounds=SCOUT.max_tool_rounds,
                        limit_instruction=LAST_WORDS,
                        max_result_chars=self._limits.result_chars,
                        notices_repeats=False,  # it has a limit of calls
                    ),
                    _SilentEmit(self._request.emit),
                )
            finally:
                self._last_words = history.last_words

    def _question(self) -> TextBlock:
        task = self._task
        hints = f"\n\n{task.hints}" if task.hints else ""
        return TextBlock(
            id=self._services.new_id("block"), text=f"# {task.title}\n\n{task.question}{hints}"
        )

    def _prompt(self) -> PromptContext:
        services = self._services
        return PromptContext(
            session_id=self._request.call.session_id,
            model=self._model,
            system=services.system_prompt(),
            sampling=services.sampling,
            returns_thinking=self._traits.returns_thinking,
            asker=f"scout {self._id}",
        )

    def _tools(self) -> Sequence[Tool]:
        own = self._request.report_tool
        report = report_findings_tool(self._accept) if own is None else own(self._accept_summary)
        return tuple(self._ruled(tool) for tool in (*self._request.tools, report))

    def _accept_summary(self, summary: str) -> None:
        self._accept(ReportFindingsParams(summary=summary))

    def _ruled(self, tool: Tool) -> Tool:
        """Return the tool with the scout's rules applied."""

        async def run(params: object, call: ToolCall) -> ToolOutcome:
            refusal = check(self._use, tool.name, self._elapsed(), self._limits)
            if refusal is not None:
                if refusal == "report_now":
                    self._notify("reporting")
                return tool_failure(failure("ToolFailed", REFUSALS[refusal]))
            self._use = called(self._use, tool.name)
            outcome = await tool.run(params, call)
            if outcome.ok:
                self._use = succeeded(self._use, tool.name)
                if tool.name == READ:
                    self._read[str(getattr(params, "path", ""))] = None
            self._notify("reporting" if self._accepted else "running")
            return outcome

        return replace(tool, run=run)

    def _accept(self, params: ReportFindingsParams) -> None:
        text_of = self._request.text_of
        self._findings = tuple(checked(finding, text_of) for finding in params.findings)
        self._accepted = params

    def _due(self) -> str | None:
        """Return the instruction to report once it is due, and only once."""
        if self._state_reported == "reporting" or not must_report(
            self._use, self._elapsed(), self._limits
        ):
            return None
        self._notify("reporting")
        return REPORT_NOW

    def _count(self, message: Message) -> None:
        if message.usage is not None:
            tokens = message.usage.input_tokens + message.usage.output_tokens
            self._use = msgspec.structs.replace(self._use, prompt_tokens=tokens)
        self._request.spend(message)

    def _report(self, state: Outcome, note: str) -> ExploreReport:
        calls = self._use.calls
        if self._accepted is None:
            return ExploreReport(
                title=self._task.title,
                state=state,
                note=note,
                summary=self._last_words,
                read=tuple(self._read),
                tool_calls=calls,
            )
        return ExploreReport(
            title=self._task.title,
            state=state,
            summary=self._accepted.summary,
            findings=self._findings,
            open_questions=tuple(self._accepted.open_questions),
            tool_calls=calls,
        )

    def _notify(self, state: ScoutState) -> None:
        """Emit the state; after `reporting` only an end state follows."""
        if state == "running" and self._state_reported == "reporting":
            state = "reporting"
        if state == self._state_reported == "reporting":
            return
        self._state_reported = state
        call = self._request.call
        self._request.emit(
            ScoutUpdated(
                turn_id=call.turn_id,
                message_id=call.message_id,
                block_id=call.block_id,
                scout_id=self._id,
                tool_use_id=call.tool_use_id,
                title=self._task.title,
                state=state,
                tool_calls=self._use.calls,
                elapsed_ms=round(self._elapsed() * 1000),
            )
        )

    def _elapsed(self) -> float:
        return self._services.clock.monotonic() - self._started

    def _bug(self, error: Exception) -> str:
        self._services.report_bug(f"scout {self._id}", error)
        return "The scout failed inside the sidecar; the log has the details."


def _within(limits: ScoutLimits, window: int | None) -> ScoutLimits:
    if window is None:
        return limits
    most = int(window * limits.window_share)
    return replace(limits, prompt_tokens=min(limits.prompt_tokens, most))


class _SilentEmit:
    """A scout's `Emit`: drops its events, which its record keeps; `flow` ends it with its turn."""

    def __init__(self, session: Emit) -> None:
        self._session = session

    def __call__(self, event: Event | BlockDelta) -> int:
        del event
        return 0

    async def flow(self) -> None:
        await self._session.flow()


class Dispatch:
    """The scouts of one session, at most `limits.at_once` at a time, without a queue."""

    def __init__(self, services: ScoutServices) -> None:
        self._services = services
        self._out = 0

    async def explore(
        self, tasks: Sequence[ExploreTask], request: ExploreRequest
    ) -> list[ExploreReport]:
        """Return a report for every task, in order; tasks above the limit are refused at once.

        One scout's failure does not affect the others. Raises asyncio.CancelledError when the
        turn is cancelled, after all of them have ended.
        """
        free = max(0, self._services.limits.at_once - self._out)
        async with asyncio.TaskGroup() as group:
            running = [self._send(group, task, request) for task in tasks[:free]]
            _follow(running, request)
        reports = [scout.result() for scout in running]
        return reports + [self._refused(task) for task in tasks[free:]]

    def _send(
        self, group: asyncio.TaskGroup, task: ExploreTask, request: ExploreRequest
    ) -> asyncio.Task[ExploreReport]:
        self._out += 1
        scout = group.create_task(ScoutRun(task, request, self._services).run(), name="scout")
        # As a callback, because a scout cancelled before it begins runs no clean-up.
        scout.add_done_callback(self._back)
        return scout

    def _back(self, scout: asyncio.Task[ExploreReport]) -> None:
        del scout
        self._out -= 1

    def _refused(self, task: ExploreTask) -> ExploreReport:
        most = self._services.limits.at_once
        note = (
            f"Not explored: {most} scouts were out already, and a session has no more at once. "
            "Ask again when they have reported."
        )
        return ExploreReport(title=task.title, state="refused", note=note)


def _follow(running: Sequence[asyncio.Task[ExploreReport]], request: ExploreRequest) -> None:
    """Show the user how many scouts have reported."""
    total = len(running)
    back = count()

    def report(_scout: object = None) -> None:
        home = next(back)
        request.call.progress(f"{home} of {total} scouts have reported", home, total)

    report()
    for scout in running:
        scout.add_done_callback(report)
