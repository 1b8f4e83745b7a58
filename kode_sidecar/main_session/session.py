"""One conversation with the user: its tree, its running turn, its change sets."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from kode_sidecar.context.builder import PromptContext, cut_window
from kode_sidecar.domain.agent_event import (
    SessionUpdated,
    TurnStarted,
    TurnSteered,
    UsageUpdated,
)
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Block, Message
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Incoming, TurnEnd
from kode_sidecar.main_session.change_sets import ChangeSets
from kode_sidecar.main_session.prompt_input import prompt_blocks, title_of
from kode_sidecar.main_session.repair import repair
from kode_sidecar.main_session.running_turn import RunningTurn, TurnKeys, with_turn_key
from kode_sidecar.main_session.services import SessionServices
from kode_sidecar.main_session.session_meta import (
    changes_nothing,
    update_event,
    updated,
    with_meta,
)
from kode_sidecar.main_session.session_records import NewSession, OpenedSession
from kode_sidecar.main_session.stream import SessionStream
from kode_sidecar.main_session.totals import Totals
from kode_sidecar.main_session.turn_context import TurnContext, prompt_reminder
from kode_sidecar.main_session.turn_log import log_end, log_messages
from kode_sidecar.main_session.turn_run import run_to_end, turn_completed
from kode_sidecar.main_session.whole_message import report_message, write_message
from kode_sidecar.protocol.session_records import SessionUpdateParams
from kode_sidecar.protocol.turn import TurnStartParams, TurnStartResult, TurnSteerParams
from kode_sidecar.records.conversation_meta import ConversationMeta

Release = Callable[[], None]


class Session:
    """The state of one conversation; everything that changes it goes through here.

    Handlers are processed in arrival order up to their first await (protocol, O10), so what a
    method does before its first await is atomic.
    """

    def __init__(
        self,
        new: NewSession,
        services: SessionServices,
    ) -> None:
        self.id = new.id
        self._options = new
        self._services = services
        self._records = records = new.records
        self._title = new.title
        self._conversation = new.conversation
        self._turn: RunningTurn | None = None
        self._turn_keys = TurnKeys(new.conversation.messages)
        self._stopped_at_limit = new.history.stop_reason == "max_tool_rounds"
        self._totals = Totals(new.conversation.messages)
        self.stream = SessionStream(
            self.id,
            records.journal,
            services.editor,
            services.clock,
            records.journal.last_seq,
            new.history,
        )
        self.change_sets = ChangeSets(
            session_id=self.id,
            workspace=services.workspace,
            editor=services.editor,
            emit=self.stream,
            new_id=services.new_id,
            permission_timeout=services.permission_timeout,
            save=self._save,
            published=self.stream.published,
            locks=services.edit_locks,
        )
        self.stream.hold()
        self.change_sets.restore(new.history)
        self.stream.forget_held()

    @property
    def meta(self) -> ConversationMeta:
        """The head of the session as last written."""
        return self._records.messages.meta

    @property
    def conversation(self) -> Conversation:
        """The tree, to be read."""
        return self._conversation

    @property
    def totals(self) -> Totals:
        """What it has used, to be read."""
        return self._totals

    @property
    def active_turn_id(self) -> str | None:
        """The turn that runs, once its client knows it."""
        turn = self._turn
        return turn.id if turn is not None and turn.saved.is_set() else None

    async def start_turn(self, params: TurnStartParams) -> tuple[TurnStartResult, Release]:
        """Accept a prompt: it is saved and its turn runs. Call the second value after replying.

        Raises KodeError `TurnActive`, `AuthRequired`, `MessageNotFound`, `InvalidParams`
        or `Storage`.
        """
        known = await self._known_turn(params.client_turn_key)
        if known is not None:
            return msgspec.structs.replace(known, deduplicated=True), _nothing
        self._check_may_start()
        self._catch_up()
        blocks = prompt_blocks(params.input, self._services.new_id)
        parent_id = self._parent_of(params)
        if not blocks:
            self._check_may_go_on(parent_id)
        turn = self._new_turn(params, parent_id)
        self.stream.hold()
        try:
            prompt_id = self._open_turn(turn, blocks, params)
            self._turn = turn
            turn.task = asyncio.create_task(self._run(turn), name=f"turn {turn.id}")
            result = TurnStartResult(turn_id=turn.id, message_id=prompt_id)
            self._turn_keys.remember(turn.key, result)
            await self._save()
        except BaseException:
            self._turn_keys.forget(turn.key)
            self.cancel(turn.id)
            self.stream.release()
            raise
        finally:
            turn.saved.set()
        return result, self.stream.release

    async def steer(self, params: TurnSteerParams) -> Release:
        """Give the running turn the user's word; saved. Call the result after replying.

        Raises KodeError `NoActiveTurn`, `TurnMismatch`, `InvalidParams` or `Storage`.
        """
        turn = self._turn
        if turn is None or turn.ending:
            text = "No turn is running in this session; start one with kode/turn/start."
            raise KodeError("NoActiveTurn", text)
        if turn.id != params.turn_id:
            text = "Another turn is running; steer that one or cancel it with kode/turn/cancel."
            raise KodeError("TurnMismatch", text, details=turn.name())
        blocks = prompt_blocks(params.input, self._services.new_id)
        if not blocks:
            raise KodeError("InvalidParams", "$.input: there is nothing to say. Send text.")
        self.stream.hold()
        try:
            turn.context.steer(blocks)
            self.stream(TurnSteered(turn_id=turn.id, input=blocks))
            await self._save()
        except BaseException:
            self.stream.release()
            raise
        return self.stream.release

    async def update(self, params: SessionUpdateParams) -> Release:
        """Change the session's head; saved. Call the result after replying.

        Raises KodeError `Storage`.
        """
        if changes_nothing(params):
            return _nothing
        meta = updated(self.meta, params)
        self.stream.hold()
        try:
            self._records.messages.write_meta(meta)
            self._title = meta.title
            self._options = with_meta(self._options, meta)
            self.stream(update_event(params, meta, self._options.defaults))
            await self._save()
        except BaseException:
            self.stream.release()
            raise
        return self.stream.release

    def cancel(self, turn_id: str | None) -> bool:
        """Stop the running turn; no model call and no tool starts after this.

        False when nothing runs or another turn does.
        """
        turn = self._turn
        if turn is None or turn.ending or turn_id not in (None, turn.id):
            return False
        self.stream.cancel()
        if turn.running and turn.task is not None:
            # A task that has not begun would never reach its own clean-up; its first
            # `flow` ends it instead.
            turn.task.cancel()
        return True

    async def close(self) -> None:
        """Cancel what runs and wait until it is gone."""
        turn = self._turn
        if turn is not None and turn.task is not None:
            self.cancel(None)
            await asyncio.wait([turn.task])
        self.change_sets.close()

    async def discard(self) -> None:
        """Close it and release its files; it is never used again."""
        await self.close()
        self._records.close()

    def _catch_up(self) -> None:
        """Write what a failing disk did not take. Raises KodeError `Storage` if it still fails."""
        self.stream.recover()
        if self.stream.history.messages:
            session = OpenedSession(self._records, self._conversation, self.stream.history)
            repair(session, self._services.clock, self._services.new_id, self.stream)

    def _check_may_start(self) -> None:
        if self._turn is not None:
            raise KodeError(
                "TurnActive",
                "A turn is running in this session; wait for turn.completed or cancel it with "
                "kode/turn/cancel.",
                details=self._turn.name(),
            )
        missing = self._services.model.missing()
        if missing is not None:
            raise KodeError(missing.code, missing.message, details=missing.details)

    def _parent_of(self, params: TurnStartParams) -> str | None:
        if isinstance(params.parent_id, str):
            return self._conversation.get(params.parent_id).id
        return None if params.parent_id is None else self._conversation.head

    def _check_may_go_on(self, parent_id: str | None) -> None:
        if not self._stopped_at_limit or parent_id is None or parent_id != self._conversation.head:
            raise KodeError(
                "InvalidParams",
                "$.input: the prompt is empty. Send text; an empty prompt only goes on after a "
                "turn that stopped with max_tool_rounds.",
            )

    def _new_turn(self, params: TurnStartParams, parent_id: str | None) -> RunningTurn:
        services = self._services
        turn_id = services.new_id("turn")
        mode = params.mode or self._options.mode
        path = self._conversation.path(parent_id)
        prompt = PromptContext(
            session_id=self.id,
            model=params.model or self._options.model,
            system=services.system_prompt(self._options.agent, mode),
            window=cut_window(path, self._options.agent.window_messages),
            temperature=services.temperature,
            top_p=services.top_p,
            max_tokens=services.max_tokens,
        )
        self.change_sets.enter_turn(
            turn_id, mode, {str(message.meta.get("turnId", "")) for message in path}
        )
        context = TurnContext(
            session_id=self.id,
            turn_id=turn_id,
            conversation=self._conversation,
            log=self._records.messages,
            clock=services.clock,
            new_id=services.new_id,
            parent_id=parent_id,
            build=prompt.request,
            reminders=self.change_sets.take_reminders,
        )
        return RunningTurn(
            turn_id, context, mode, prompt.window, params.client_turn_key, asyncio.Event()
        )

    def _open_turn(
        self, turn: RunningTurn, blocks: tuple[Block, ...], params: TurnStartParams
    ) -> str:
        """Write the prompt (a reminder before it), then report it; the prompt's message id."""
        new_id = self._services.new_id
        messages: list[Message] = []
        incoming = self._reminder(turn, with_context=bool(blocks))
        if incoming is not None:
            message = turn.context.open(incoming.role, incoming.meta)
            messages.append(write_message(turn.context, message, incoming.content, new_id))
        if blocks:
            meta = with_turn_key(params.meta, params.client_turn_key)
            if params.options is not None:
                meta["options"] = params.options
            message = turn.context.open("user", meta)
            messages.append(write_message(turn.context, message, blocks, new_id))
        prompt_id = turn.context.leaf_id or ""
        self.stream(
            TurnStarted(
                turn_id=turn.id,
                message_id=prompt_id,
                agent=self._options.agent.name,
                mode=turn.mode,
            )
        )
        for message in messages:
            report_message(self.stream, message, turn.id)
        self._name_after(blocks)
        return prompt_id

    def _reminder(self, turn: RunningTurn, *, with_context: bool) -> Incoming | None:
        """What the model is told before a prompt."""
        decided = self.change_sets.take_reminders()
        if turn.context.leaf_id is None:
            decided = None
        note = self._services.editor_note() if with_context else None
        return prompt_reminder(decided, note, turn.window)

    def _name_after(self, blocks: Sequence[Block]) -> None:
        """A session without a title gets the first line of its first prompt."""
        title = title_of(blocks)
        if self._title or not title:
            return
        self._title = title
        self._records.messages.rename(title)
        self.stream(SessionUpdated(title=title))

    async def _run(self, turn: RunningTurn) -> None:
        services, agent = self._services, self._options.agent
        started = services.clock.monotonic()
        end = await run_to_end(
            turn,
            services,
            agent,
            lambda: services.toolset(agent, turn.mode, self.change_sets),
            self._records.save_artifact,
            self.stream,
        )
        await self._end_turn(turn, end, round((services.clock.monotonic() - started) * 1000))

    async def _end_turn(self, turn: RunningTurn, end: TurnEnd, duration_ms: int) -> None:
        """Report the end, save everything, then let the last event out."""
        turn.ending = True
        self._stopped_at_limit = end.stop_reason == "max_tool_rounds"
        self._totals.add(turn.context.totals)
        self.stream.hold_end()
        try:
            self._keep_unsent(turn)
        except KodeError as error:
            self.stream.not_saved(error)
        try:
            self._report_end(turn, end, duration_ms)
            await self._save()
        except KodeError as error:
            self.stream.not_saved(error)
        finally:
            self._turn = None
            self.stream.release()
            # Last, because the log's thread would compete with all of the above.
            self._log(turn, end, duration_ms)

    def _log(self, turn: RunningTurn, end: TurnEnd, duration_ms: int) -> None:
        log, provider = self._services.log, self._services.provider
        log_messages(log, turn.id, provider, turn.context.messages)
        log_end(log, self.id, turn.id, end, duration_ms)

    def _keep_unsent(self, turn: RunningTurn) -> None:
        """What was said to a turn that ended before its next step; the next turn has it."""
        for incoming in turn.context.take_steering():
            message = turn.context.open(incoming.role, incoming.meta)
            message = write_message(turn.context, message, incoming.content, self._services.new_id)
            report_message(self.stream, message, turn.id)

    def _report_end(self, turn: RunningTurn, end: TurnEnd, duration_ms: int) -> None:
        total = self._totals
        self.stream(UsageUpdated(usage=total.usage, cost=total.cost, cost_usd=total.cost_usd))
        self.stream(turn_completed(turn, end, duration_ms))

    async def _known_turn(self, key: str | None) -> TurnStartResult | None:
        """The turn that was started with this key, once it is saved."""
        if key is None:
            return None
        if self._turn is not None and self._turn.key == key:
            await self._turn.saved.wait()
        return self._turn_keys.get(key)

    async def _save(self) -> None:
        """Make everything written so far durable. Raises KodeError `Storage`."""
        await self._records.save()


def _nothing() -> None:
    """A repeated start has nothing to release."""
