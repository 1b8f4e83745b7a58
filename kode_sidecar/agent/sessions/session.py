"""Run one conversation with the user: its tree, its turn, its change sets."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kode_sidecar.agent.edits import ChangeSets
from kode_sidecar.agent.event_log import ActivityLog, NewSession, SessionStream
from kode_sidecar.agent.sessions.context_edits import edited
from kode_sidecar.agent.sessions.files import (
    changes_nothing,
    save_head,
    update_event,
    updated,
    with_head,
    with_meta,
)
from kode_sidecar.agent.sessions.prompt_place import (
    PromptPlace,
    check_may_go_on,
    may_go_on,
    prompt_place,
)
from kode_sidecar.agent.sessions.repair import write_left_over
from kode_sidecar.agent.tools.background import BackgroundCommands
from kode_sidecar.agent.turns import (
    RunningTurn,
    SessionServices,
    TurnKeys,
    TurnSetup,
    answer_of,
    check_is_seen,
    compact_result,
    prompt_blocks,
    report_end,
    report_usage,
    run_to_end,
    title_of,
    turn_active,
    turn_to_steer,
    with_choices,
    write_opening,
)
from kode_sidecar.core.domain.agent_event import (
    SessionUpdated,
    TurnCompleted,
    TurnSteered,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, error_info
from kode_sidecar.core.domain.message import Block
from kode_sidecar.core.kernel.contracts import CutOff, TurnEnd
from kode_sidecar.core.protocol.session import Mode, SessionUpdateParams
from kode_sidecar.core.protocol.turn import (
    ContextCompactResult,
    ContextEditParams,
    ContextEditResult,
    ContextInspectParams,
    ContextInspectResult,
    ContextUndoCompactionParams,
    ToolsListResult,
    TurnStartParams,
    TurnStartResult,
    TurnSteerParams,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta
from kode_sidecar.infrastructure.records.spending import Totals

if TYPE_CHECKING:  # only sessions with reviews need them
    from kode_sidecar.agent.reviews import SessionFindings
    from kode_sidecar.agent.verbs.calls import VerbCall

Release = Callable[[], None]


class Session:
    """The state of one conversation; every change goes through here.

    Callers only read `conversation` and `totals`. Handlers are processed in arrival order up to
    their first await (protocol, O10), so what a method does before its first await is atomic.
    """

    def __init__(self, new: NewSession, services: SessionServices) -> None:
        self.id, self.questions = new.id, services.questions
        self._options = new
        self._services = services
        self._budget = services.budgets.model
        opened, clock = new.opened, services.clock
        self._records = records = opened.records
        self.conversation = opened.conversation
        self._turn: RunningTurn | None = None
        self._turn_keys = TurnKeys(opened.conversation.messages)
        self._compaction: asyncio.Task[ContextCompactResult] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = may_go_on(opened.history.last_turn)
        self.totals = Totals(opened.conversation.messages, opened.scouts_spent)
        activity = ActivityLog(services.log, clock, self.id, self._provider)
        self.stream = SessionStream(records, services.editor, clock, opened.history, activity)
        self.called = services.call_verb
        self.commands = BackgroundCommands(services.clock.timestamp, self.stream)
        self.change_sets = ChangeSets(
            session_id=self.id,
            workspace=services.workspace,
            editor=services.editor,
            emit=self.stream,
            new_id=services.new_id,
            questions=services.questions,
            now=services.clock.timestamp,
            save=self.stream.save,
            published=self.stream.published,
            locks=services.edit_locks,
            title=lambda: self.meta.title,
            save_accepted=services.save_accepted,
            news=(self.commands,),
        )
        self._setup = TurnSetup(
            *(self.id, services, records, self.conversation, self.change_sets, self.stream),
            self.commands,
        )
        self.stream.hold()
        self.change_sets.restore(opened.history)
        self.stream.forget_held()

    def _provider(self) -> str:
        """Return who serves the model of the running turn."""
        return self._services.provider(self._turn.context.model if self._turn else "")

    @property
    def meta(self) -> ConversationMeta:
        """The session's metadata as last written."""
        return self._records.meta

    @property
    def mode(self) -> Mode:
        """The mode of turns that name none."""
        return self._options.mode

    @property
    def active_turn_id(self) -> str | None:
        """The id of the running turn, once the client knows it."""
        turn = self._turn
        return turn.id if turn is not None and turn.saved.is_set() else None

    @property
    def findings(self) -> "SessionFindings":
        """What its code reviews found."""
        # Imported late: most sessions never review.
        from kode_sidecar.agent.reviews import SessionFindings  # noqa: PLC0415

        return SessionFindings(self._records.folder, self._services.workspace, self.stream)

    async def start_turn(
        self, params: TurnStartParams, call: "VerbCall | None" = None
    ) -> tuple[TurnStartResult, Release]:
        """Save a prompt and start its turn. Call the second value after replying.

        `call` is what goes with the prompt, where its text does not name it.
        """
        async with self._turn_keys.starting(params.client_turn_key) as known:
            if known is not None:
                return msgspec.structs.replace(known, deduplicated=True), lambda: None
            return await self._start_turn(params, call), self.stream.release

    async def steer(self, params: TurnSteerParams) -> Release:
        """Save the user's steering for the running turn. Call the result after replying."""
        turn = turn_to_steer(self._turn, params.turn_id)
        self._check_is_seen(params.input, turn.context.model)
        blocks = await self._setup.steering(params.input)
        turn = turn_to_steer(self._turn, params.turn_id)
        async with self.stream.saving():
            turn.context.steer(blocks)
            self.stream(TurnSteered(turn_id=turn.id, input=blocks))
        return self.stream.release

    async def update(self, params: SessionUpdateParams) -> Release:
        """Change and save the session's metadata. Call the result after replying."""
        if changes_nothing(params):
            return lambda: None  # nothing is held
        before, options = self.meta, self._options
        meta = updated(before, params)
        self._options = with_meta(options, meta)

        def undo() -> SessionUpdated:
            self._options = options
            return update_event(params, before, options.defaults)

        event = update_event(params, meta, options.defaults)
        release = await save_head(self._records, self.stream, meta, event, undo)
        if (meta.model, meta.effort) != (before.model, before.effort) and self._turn is None:
            self._setup.announce_choice(self._options)
        return release

    def follow_defaults(self) -> None:
        """Apply the default mode and model where the session sets none, and report a change."""
        before = self._options
        self._options = after = with_meta(before, self.meta)
        if (before.mode, before.model) != (after.mode, after.model):
            self.stream(SessionUpdated(mode=after.mode, model=after.model))

    async def set_head(self, message_id: str | None) -> Release:
        """Save that the next turn starts below another message. Call the result after replying.

        None: before the first one. Raises KodeError `TurnActive`, `MessageNotFound`, `Storage`.
        """
        self._check_idle()
        # Written first: a later process would take the newest message as the head.
        write_left_over(self._records, self.conversation, self.stream, self._services)
        before, head, stopped = self.meta, self.conversation.head, self._stopped
        self.conversation.set_head(message_id)
        self._stopped = False
        meta = with_head(before, message_id, self.conversation.newest)

        def undo() -> SessionUpdated:
            self.conversation.set_head(head)
            self._stopped = stopped
            return SessionUpdated(head_id=head or "")

        event = SessionUpdated(head_id=message_id or "")
        return await save_head(self._records, self.stream, meta, event, undo)

    async def edit_context(
        self, params: ContextEditParams | ContextUndoCompactionParams
    ) -> tuple[ContextEditResult, Release]:
        """Leave messages out of what the model sees, or pin them, and save this.

        Call the second value after replying. Raises KodeError `TurnActive`, `MessageNotFound`,
        `InvalidParams`, `Storage`.
        """
        before = self.meta
        edits = edited(self.conversation, before.edits, params)
        self._check_idle()
        result = self._setup.compare(self._options, edits)
        if edits == before.edits:
            return result, lambda: None  # nothing is held
        event, back = (SessionUpdated(context_edits=one) for one in (edits, before.edits))
        meta = before.with_edits(edits)
        return result, await save_head(self._records, self.stream, meta, event, lambda: back)

    async def compact(self) -> tuple[ContextCompactResult, Release]:
        """Summarize the conversation now, and save it. Call the second value after replying.

        Raises KodeError `TurnActive`, `AuthRequired`, `InvalidParams`, `Storage` and the
        provider's errors.
        """
        budget = await self._services.budgets.limits(None)
        self._check_may_start(self._options.model)
        write_left_over(self._records, self.conversation, self.stream, self._services)
        self._budget.open(self.id, "", budget, self.totals.costs, self.stream)
        self._compaction = task = asyncio.create_task(self._compact(), name=f"compaction {self.id}")
        try:
            return await task, self.stream.release
        except asyncio.CancelledError:
            if task.done() and not task.cancelled() and task.exception() is None:
                self.stream.release()  # cancelled after it was done: no reply will follow
            raise
        finally:
            self._compaction = None
            self._budget.close(self.id)

    async def inspect(self, params: ContextInspectParams) -> ContextInspectResult:
        """Return the next request and its parts, without sending it.

        Raises KodeError `MessageNotFound`, `InvalidParams`, `ConfigInvalid`.
        """
        place = prompt_place(self.conversation, params.parent_id, params.replaces)
        return await self._setup.inspect(self._options, params, place.parent_id, self._turn)

    def tools(self, mode: Mode | None) -> ToolsListResult:
        """Return the tools that the model is offered."""
        return self._setup.list_tools(self._options, mode or self._options.mode)

    def cancel(self, turn_id: str | None) -> bool:
        """Stop the running turn; afterwards no model call or tool starts.

        False if no turn or another turn is running.
        """
        turn = self._turn
        if turn is None or turn.ending or turn_id not in (None, turn.id):
            return False
        self.stream.cancel()
        if turn.running and self._task is not None:
            # A task that has not begun would never reach its own clean-up; its first
            # `flow` ends it instead.
            asyncio.get_running_loop().call_soon(self._cut, turn)
            self._task.cancel()
        return True

    async def close(self) -> None:
        """Cancel the turn, the compaction and the commands, and wait for their end."""
        self.cancel(None)
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._compaction is not None:
            self._compaction.cancel()
            await asyncio.wait([self._compaction])
        await self.commands.close()
        self.change_sets.close()

    async def discard(self) -> None:
        """Close the session and its files."""
        await self.close()
        self._records.close()

    async def _start_turn(
        self, params: TurnStartParams, call: "VerbCall | None"
    ) -> TurnStartResult:
        """Save a prompt and start its turn; on success the stream is held for the reply."""
        budget = await self._services.budgets.limits(params.budget)
        call = call or await self._services.call_verb(params.input)
        params, options = with_choices(params, self._options, call)
        model = params.model or options.model
        self._check_may_start(model)
        self._check_is_seen(params.input, model)
        write_left_over(self._records, self.conversation, self.stream, self._services)
        said = [call.text if call is not None else None]
        said.append(await self._setup.beside_prompt(params.input))
        self._check_idle()
        blocks = prompt_blocks(params.input, self._services.new_id)
        place = prompt_place(self.conversation, params.parent_id, params.replaces)
        if not blocks:
            check_may_go_on(self.conversation, place.parent_id, stopped=self._stopped)
        turn = self._new_turn(options, params, place.parent_id)
        turn.goal = self._setup.goal(params.goal, turn.context, going_on=not blocks)
        self._budget.open(self.id, turn.id, budget, self.totals.costs, self.stream)
        try:
            async with self.stream.saving():
                prompt_id = self._open_turn(turn, blocks, params, place, said)
                self._turn = turn
                self._task = asyncio.create_task(self._run(turn), name=f"turn {turn.id}")
                result = TurnStartResult(turn_id=turn.id, message_id=prompt_id)
                await asyncio.sleep(0)  # let the model request go out before the save
        except BaseException:
            self.cancel(turn.id)
            raise
        finally:
            turn.saved.set()
        self._turn_keys.remember(params.client_turn_key, result)
        return result

    def _check_may_start(self, model: str) -> None:
        self._check_idle()
        missing = self._services.model.missing(model)
        if missing is not None:
            raise KodeError(missing.code, missing.message, details=missing.details)

    def _check_is_seen(self, blocks: Sequence[Block], model: str) -> None:
        check_is_seen(blocks, model, self._services.traits, self._services.seeing_models)

    def _check_idle(self) -> None:
        if self._turn is not None:
            raise turn_active(self._turn)
        if self._compaction is not None:
            text = "The conversation is being summed up; wait for the reply, or cancel the request."
            raise KodeError("TurnActive", text)

    def _new_turn(
        self, options: NewSession, params: TurnStartParams, parent_id: str | None
    ) -> RunningTurn:
        turn_id = self._services.new_id("turn")
        mode = params.mode or options.mode
        context = self._setup.context(
            options, turn_id, parent_id, mode, params.model, effort=params.effort
        )
        self.change_sets.enter_turn(turn_id, mode, self._setup.turn_ids(parent_id))
        started = self._services.clock.monotonic()
        about = turn_id, context, options, mode, self._setup.hooks()
        return RunningTurn(*about, asyncio.Event(), started, CutOff())

    def _open_turn(
        self,
        turn: RunningTurn,
        blocks: tuple[Block, ...],
        params: TurnStartParams,
        place: PromptPlace,
        said: Sequence[str | None],
    ) -> str:
        """Write and report the prompt, after its reminder; return the prompt's message id.

        `said` stands beside it: the text of the verb that it calls, and what hooks add.
        """
        # Before the first message there is nothing a reminder could refer to.
        decided = turn.context.reminder() if turn.context.leaf_id is not None else None
        opening = self._setup.begin(turn, [decided, *said], blocks, params)
        agent, new_id = turn.options.agent.name, self._services.new_id
        prompt_id = write_opening(turn, agent, opening, place.known, new_id, self.stream)
        self._setup.report_no_folder(turn.id)
        self._setup.report_refused(turn.id, prompt_id)
        if not self.meta.title and (title := title_of(blocks)):
            self._records.rename(title)
            self.stream(SessionUpdated(title=title))
        return prompt_id

    async def _compact(self) -> ContextCompactResult:
        options, head = self._options, self.conversation.head
        context = self._setup.context(options, "", head, options.mode, None)
        tools = self._setup.specs(options, options.mode, context)
        summary = await self._setup.compactor.ask(context, tools)
        if isinstance(summary, ErrorInfo):
            self.totals.add(context.totals)
            raise answer_of(summary)
        async with self.stream.saving():
            event = self._setup.compactor.place(context, summary, tools)
            self.totals.add(context.totals)
            report_usage(self.totals, self.stream, context.use)
        return compact_result(event)

    def _run(self, turn: RunningTurn) -> Coroutine[None, None, None]:
        options = turn.options
        return run_to_end(
            turn,
            self._services,
            options.agent,
            lambda: self._setup.tools(options, turn.mode, turn.context),
            self._setup.save_artifact,
            self.change_sets.forming(self.stream, turn.id),
            partial(self._end, turn),
        )

    async def _end(self, turn: RunningTurn, end: TurnEnd) -> None:
        # A user who cancels must not wait for the disk: this end is reported once it is written,
        # and saved right after. Every later acknowledgement waits for that save, too.
        cancelled = end.stop_reason == "cancelled"
        if not turn.ending:
            completed = report_end(turn, end, self._services, self.totals, self.stream)
            try:
                if not cancelled:
                    await self.stream.save_published()
            finally:  # or the session would stay occupied for ever
                self._release(completed)
        if cancelled:
            await self.stream.save_published()

    def _cut(self, turn: RunningTurn) -> None:
        """End a cancelled turn at once, with the part of the answer that has arrived."""
        end = TurnEnd("cancelled")
        try:
            if turn.ending or not turn.cut_off():
                return
        except KodeError as error:
            end = TurnEnd("error", error_info(error))
        self._release(report_end(turn, end, self._services, self.totals, self.stream))

    def _release(self, completed: TurnCompleted) -> None:
        self._turn = None
        self._budget.close(self.id)
        self._stopped = may_go_on(completed)
        self.stream.release()
