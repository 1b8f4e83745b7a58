"""Prepare turns: their context, tools, first messages, and a preview of the next request."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import UnsetType

from kode_sidecar.context.builder import PromptContext, shown_messages
from kode_sidecar.context.compaction import is_undone
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Block, Message
from kode_sidecar.edits import ChangeSets
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import NewSession, SessionRecords, SessionStream
from kode_sidecar.kernel import tool_specs
from kode_sidecar.kernel.contracts import Incoming, Tool, ToolSpec
from kode_sidecar.protocol.session import Mode
from kode_sidecar.protocol.turn import ContextInspectParams, ContextInspectResult, TurnOptions
from kode_sidecar.turns.compactor import Compactor
from kode_sidecar.turns.context import TokenMeter, TurnContext
from kode_sidecar.turns.inspection import inspection, unwritten
from kode_sidecar.turns.prompt import prompt_blocks, prompt_input, prompt_reminder
from kode_sidecar.turns.services import SessionServices, ToolScope, remembered_for
from kode_sidecar.turns.turn import RunningTurn


class TurnSetup:
    """Prepares the turns of one session. It writes nothing and takes no reminder."""

    def __init__(
        self,
        session_id: str,
        services: SessionServices,
        records: SessionRecords,
        conversation: Conversation,
        change_sets: ChangeSets,
        stream: SessionStream,
    ) -> None:
        self._session_id = session_id
        self._services = services
        self._records = records
        self._conversation = conversation
        self._change_sets = change_sets
        self._stream = stream
        self._meter = TokenMeter(services.rates)
        self.compactor = Compactor(services, stream)

    def context(
        self,
        options: NewSession,
        turn_id: str,
        parent_id: str | None,
        mode: Mode,
        model: str | None,
    ) -> TurnContext:
        """The conversation from `parent_id` on. Raises KodeError `MessageNotFound`."""
        services = self._services
        model = model or options.model
        outline = self._conversation.outline(parent_id)
        prompt = PromptContext(
            session_id=self._session_id,
            model=model,
            system=services.system_prompt(options.agent, mode),
            temperature=services.temperature,
            top_p=services.top_p,
            max_tokens=services.max_tokens,
            returns_thinking=services.returns_thinking(model),
        )
        return TurnContext(
            session_id=self._session_id,
            turn_id=turn_id,
            conversation=self._conversation,
            log=self._records.messages,
            clock=services.clock,
            new_id=services.new_id,
            parent_id=parent_id,
            prompt=prompt,
            shown=self._conversation.whole(self._shown(options, outline)),
            window=services.context_window(model),
            meter=self._meter,
            change_sets=self._change_sets,
            compact=self.compactor.compact,
            undone=lambda: is_undone(outline, self._conversation.children),
        )

    def turn_ids(self, parent_id: str | None) -> Collection[str]:
        """The turns that made the path to a message."""
        path = self._conversation.outline(parent_id)
        return {str(message.meta.get("turnId", "")) for message in path}

    async def read_ahead(self, options: NewSession, parent_id: str | UnsetType | None) -> None:
        """Read what the model is to see, on a thread: the loop must not wait for a disk.

        Only what an earlier process left in a database is not in memory. Raises KodeError
        `MessageNotFound`, `Storage`.
        """
        if not self._conversation.is_partial:
            return
        leaf = self._conversation.head if isinstance(parent_id, UnsetType) else parent_id
        shown = self._shown(options, self._conversation.outline(leaf))
        if not self._conversation.is_read(shown):
            await asyncio.to_thread(self._conversation.whole, shown)

    def _shown(self, options: NewSession, outline: Sequence[Message]) -> list[Message]:
        return shown_messages(outline, options.agent.window_messages)

    def tools(self, options: NewSession, mode: Mode, context: TurnContext) -> Sequence[Tool]:
        """The tools on offer."""
        scope = ToolScope(context, self._change_sets, self._stream, self._records)
        return self._services.toolset(options.agent, mode, scope)

    def specs(self, options: NewSession, mode: Mode, context: TurnContext) -> Sequence[ToolSpec]:
        """Return the same tools as the model is told of them."""
        return tool_specs(self.tools(options, mode, context))

    async def inspect(
        self,
        options: NewSession,
        params: ContextInspectParams,
        parent_id: str | None,
        running: RunningTurn | None,
    ) -> ContextInspectResult:
        """The next request of the running turn, else of one below `parent_id`, and its parts."""
        if running is None:
            await self.read_ahead(options, parent_id)
            mode = params.mode or options.mode
            blocks = prompt_blocks(params.input, self._services.new_id)
            context = self.context(options, "", parent_id, mode, params.model)
            decided = self._change_sets.untold(self.turn_ids(parent_id))
            opening = self.opening(context, decided, blocks, {}, params.options)
            with suppress(KodeError):  # memory that fails is left out of a turn, too
                ask = self._services.recall
                remembered = await remembered_for(blocks, context.shown, ask)
                opening += [] if remembered is None else [remembered]
        else:
            context, mode = running.context, running.mode
            opening = context.incoming(self._change_sets.untold(self.turn_ids(context.leaf_id)))
        tools = self.specs(options, mode, context)
        fitted = context.fitted(tools, "auto", [unwritten(incoming) for incoming in opening])
        encoded = await self._services.encode(fitted.request)
        due = context.will_sum_up(fitted)
        return inspection(fitted, encoded, compaction_due=due, with_body=params.body)

    def opening(
        self,
        context: TurnContext,
        decided: str | None,
        blocks: tuple[Block, ...],
        meta: Mapping[str, Any],
        options: TurnOptions | None,
    ) -> list[Incoming]:
        """What a turn begins with: a reminder, if there is something to tell, and the prompt.

        `decided` is what became of edits. Without blocks the turn goes on with what is there.
        """
        told = [None if context.leaf_id is None else decided]
        if options is not None:
            told.append(self._services.koding_note(options))
        note = self._services.editor_note() if blocks else None
        reminder = prompt_reminder(told, note, context.shown)
        found = [] if reminder is None else [reminder]
        if blocks:
            found.append(prompt_input(blocks, meta, options))
        return found
