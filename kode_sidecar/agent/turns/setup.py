"""Prepare turns: their context, tools, first messages, and a preview of the next request."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from kode_sidecar.agent.context.builder import PromptContext, shown_messages
from kode_sidecar.agent.context.compaction import is_undone
from kode_sidecar.agent.context.fitting import Fitted
from kode_sidecar.agent.context.left_out import leaves_out, pinned_on, without_results
from kode_sidecar.agent.context.surroundings import SURROUNDINGS, changes, known_states
from kode_sidecar.agent.edits import ChangeSets
from kode_sidecar.agent.event_log import NewSession, SessionStream
from kode_sidecar.agent.tools.background import BackgroundCommands
from kode_sidecar.agent.turns.compactor import Compactor
from kode_sidecar.agent.turns.context import TokenMeter, TurnContext
from kode_sidecar.agent.turns.goal import GoalCheck, GoalProgress, goal_on, goal_words, with_goal
from kode_sidecar.agent.turns.inspection import edit_result, inspection, left_out, unwritten
from kode_sidecar.agent.turns.prefix import FixedPrefix
from kode_sidecar.agent.turns.prompt import (
    prompt_blocks,
    prompt_input,
    prompt_reminder,
    with_choices,
)
from kode_sidecar.agent.turns.rereading import (
    Rereading,
    cached_part,
    prompt_cost,
    why_anew,
)
from kode_sidecar.agent.turns.services import (
    Hooks,
    HookScope,
    SessionServices,
    ToolScope,
    remembered_for,
)
from kode_sidecar.agent.turns.turn import RunningTurn, with_turn_key
from kode_sidecar.core.domain.agent_event import Notice
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import NEW_TOOLS, OWN_WORDS, Block, TextBlock, texts_of
from kode_sidecar.core.kernel import spec_of, tool_specs
from kode_sidecar.core.kernel.contracts import (
    ArtifactSink,
    Incoming,
    Tool,
    ToolCall,
    ToolOutcome,
    ToolSpec,
)
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.protocol.turn import (
    CachedPart,
    ContextEditResult,
    ContextInspectParams,
    ContextInspectResult,
    Goal,
    ToolsListResult,
    ToolView,
    TurnOptions,
    TurnStartParams,
)
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.records.conversation_files import ConversationFiles, save_artifact
from kode_sidecar.infrastructure.records.messages import MESSAGES_FILE

_ALL_TOOLS: Mode = "review"
"""A mode that has all tools: a session begins with them, whatever mode it begins in."""


class TurnSetup:
    """Prepares the turns of one session. It writes nothing and takes no reminder."""

    def __init__(
        self,
        session_id: str,
        services: SessionServices,
        records: ConversationFiles,
        conversation: Conversation,
        change_sets: ChangeSets,
        stream: SessionStream,
        commands: BackgroundCommands,
    ) -> None:
        self._session_id = session_id
        self._services = services
        self._records = records
        self._conversation = conversation
        self._change_sets = change_sets
        self._stream = stream
        self._meter = TokenMeter(services.rates)
        self._context: TurnContext | None = None
        new_id = partial(services.new_id, "artifact")
        beside = partial(save_artifact, records.folder, new_id)
        self.save_artifact: ArtifactSink = services.save_artifact or beside
        self._hook_scope = HookScope(
            session_id,
            records.folder / MESSAGES_FILE,
            change_sets.permissions,
            lambda: change_sets.proposals.mode,
            stream,
        )
        self._offer = services.tools(
            ToolScope(
                session_id,
                self._newest_context,
                change_sets,
                stream,
                records,
                self.save_artifact,
                commands,
                self._run_call,
            )
        )
        self._reported_no_folder = False
        self._prefix = FixedPrefix(records)
        self._rereading = Rereading(stream, services.budgets.model.prices)
        self.compactor = Compactor(
            services, stream, lambda: stream.history.plan, self._after_summary, self.hooks
        )

    def hooks(self) -> Hooks:
        """Return the user's hooks of now. Raises KodeError `ConfigInvalid`."""
        return self._services.hooks(self._hook_scope)

    async def beside_prompt(self, blocks: Sequence[Block]) -> str | None:
        """Return what the user's hooks say beside a prompt. Raises KodeError `Denied`."""
        resumed = bool(self._conversation.messages)
        return await self.hooks().before_prompt("\n".join(texts_of(blocks)), resumed=resumed)

    async def steering(self, given: Sequence[Block]) -> tuple[Block, ...]:
        """Return the user's steering with what their hooks add to it.

        Raises KodeError `InvalidParams`, and `Denied` if a hook forbids it.
        """
        blocks = prompt_blocks(given, self._services.new_id)
        if not blocks:
            raise invalid_at("$.input", "there is nothing to say. Send text.")
        beside = await self.beside_prompt(blocks)
        if beside is None:
            return blocks
        return (*blocks, TextBlock(id=self._services.new_id("block"), text=beside))

    async def _run_call(self, tool: Tool, params: Any, call: ToolCall) -> ToolOutcome:
        return await self.hooks().run_call(tool, params, call)

    def context(
        self,
        options: NewSession,
        turn_id: str,
        parent_id: str | None,
        mode: Mode,
        model: str | None,
        *,
        effort: Effort | None = None,
        edits: ContextEdits | None = None,
    ) -> TurnContext:
        """The conversation from `parent_id` on, as its model gets it.

        What is not given is as the session has it. Raises KodeError `MessageNotFound`.
        """
        services = self._services
        edits = edits or self.edits
        model = model or options.model
        traits = services.traits(model)
        fresh = services.system_prompt(options.agent, mode)
        path = self._conversation.path(parent_id)
        shown = shown_messages(path, options.agent.window_messages, edits)
        prompt = PromptContext(
            session_id=self._session_id,
            model=model,
            system=self._prefix.system(fresh),
            sampling=services.sampling,
            max_tokens=services.max_tokens,
            effort=effort or self._records.meta.known_effort,
            returns_thinking=traits.returns_thinking,
            stream=services.stream,
        )
        return TurnContext(
            session_id=self._session_id,
            turn_id=turn_id,
            conversation=self._conversation,
            keep=self._records.append,
            clock=services.clock,
            new_id=services.new_id,
            parent_id=parent_id,
            prompt=prompt,
            surroundings=fresh,
            shown=without_results(shown, edits),
            window=traits.window,
            pinned=pinned_on(path, edits),
            meter=self._meter,
            change_sets=self._change_sets,
            compact=self.compactor.compact,
            undone=lambda: is_undone(path, self._conversation.children, edits),
            left_out=lambda fitted: self._report_left_out(turn_id, fitted),
            sending=lambda fitted: self._rereading.before_sending(
                turn_id, fitted, self._ids_on_path
            ),
        )

    def goal(self, goal: Goal | None, context: TurnContext, *, going_on: bool) -> GoalCheck | None:
        """Return the check of the goal that a turn has, or goes on with."""
        path = self._conversation.path(context.leaf_id) if going_on else ()
        progress = goal_on(path) if goal is None else GoalProgress(goal)
        if progress is None:
            return None
        services, turn_id = self._services, context.turn_id
        began = services.clock.monotonic()

        def notify(text: str) -> None:
            self._stream(Notice(turn_id=turn_id, code="GoalChecked", message=text))

        return GoalCheck(
            progress,
            path,
            lambda: context.messages,
            services.workspace,
            lambda: services.clock.monotonic() - began,
            notify,
        )

    def report_no_folder(self, turn_id: str) -> None:
        """Notify the user, once a session, why the model finds no files."""
        if self._services.workspace.roots or self._reported_no_folder:
            return
        self._reported_no_folder = True
        text = (
            "No folder is open in the editor, so the model can read and edit the files that are "
            "open there and no others. Open a folder to let it look around."
        )
        self._stream(Notice(turn_id=turn_id, code="NoFolder", message=text))

    def report_refused(self, turn_id: str, prompt_id: str) -> None:
        """The user learns which earlier prompt the model no longer gets."""
        if not leaves_out(self._conversation.path(prompt_id)):
            return
        text = (
            "The model's host refused the prompt before this one for what it holds, so it is not "
            "sent again. It stays in the conversation; edit it there to ask it in other words."
        )
        self._stream(Notice(turn_id=turn_id, code="PromptLeftOut", message=text))

    def _report_left_out(self, turn_id: str, fitted: Fitted) -> None:
        """Notify the user of what the model does not see for want of room (C10)."""
        tokens = fitted.whole.tokens - fitted.size.tokens
        text = (
            f"The conversation is larger than the model's window: about {tokens} tokens of older "
            "results and answers are left out of what it is told. Nothing is lost in the session."
        )
        self._stream(Notice(turn_id=turn_id, code="LeftOut", message=text))

    def turn_ids(self, parent_id: str | None) -> Collection[str]:
        """The turns that made the path to a message."""
        path = self._conversation.path(parent_id)
        return {message.turn_id for message in path}

    def _ids_on_path(self) -> Collection[str]:
        return {message.id for message in self._conversation.path(self._conversation.head)}

    def _after_summary(self, context: TurnContext) -> Sequence[Incoming]:
        """What the summary may have lost: what is to be known of the surroundings."""
        self._rereading.summed_up()
        return self._changes(context)

    def announce_choice(self, options: NewSession) -> None:
        """Notify the user at once if a chosen model or effort makes hosts read all anew."""
        head = self._conversation.head
        if self._records.prefix is None or head is None:
            return
        context = self.context(options, "", head, options.mode, None)
        why = self._why_anew(context)
        tools = self.specs(options, options.mode, context)
        self._rereading.announce_early(why, context.fitted(tools, "none"))

    @property
    def edits(self) -> ContextEdits:
        """What the user left out and pinned."""
        return self._records.meta.edits

    def compare(self, options: NewSession, edits: ContextEdits) -> ContextEditResult:
        """What an edit of the context does to the next request."""
        head, mode = self._conversation.head, options.mode

        def request_with(these: ContextEdits) -> Fitted:
            context = self.context(options, "", head, mode, None, edits=these)
            return context.fitted(self.specs(options, mode, context), "auto")

        return edit_result(edits, request_with(self.edits), request_with(edits))

    def tools(self, options: NewSession, mode: Mode, context: TurnContext) -> Sequence[Tool]:
        """The tools on offer. What they do from now on belongs to the turn of `context`."""
        self._context = context
        usable = self._offer(options.agent, mode)
        every = usable if mode == _ALL_TOOLS else self._offer(options.agent, _ALL_TOOLS)
        return self._prefix.tools(usable, every, mode)

    def _newest_context(self) -> TurnContext:
        assert self._context is not None, "tools are offered before one is called"
        return self._context

    def specs(self, options: NewSession, mode: Mode, context: TurnContext) -> Sequence[ToolSpec]:
        """Return the same tools as the model reads of them."""
        return tool_specs(self.tools(options, mode, context))

    def list_tools(self, options: NewSession, mode: Mode) -> ToolsListResult:
        """Return the tools that can be used in a mode."""
        self._context = self.context(options, "", None, mode, None)
        return ToolsListResult(
            tools=tuple(
                ToolView(
                    name=tool.name,
                    kind=tool.kind,
                    description=spec_of(tool).description,
                    schema=dict(spec_of(tool).schema),
                    read_only=tool.read_only,
                )
                for tool in self._offer(options.agent, mode)
                if tool.offered
            )
        )

    async def inspect(
        self,
        options: NewSession,
        params: ContextInspectParams,
        parent_id: str | None,
        running: RunningTurn | None,
    ) -> ContextInspectResult:
        """The next request of the running turn, else of one below `parent_id`, and its parts."""
        if running is None:
            call = await self._services.call_verb(params.input)
            params, options = with_choices(params, options, call)
            mode = params.mode or options.mode
            blocks = prompt_blocks(params.input, self._services.new_id)
            context = self.context(options, "", parent_id, mode, params.model, effort=params.effort)
            decided = self._change_sets.unreported(self.turn_ids(parent_id))
            said = [decided, call.text if call is not None else None]
            opening = self.opening(context, said, blocks, {}, params.options)
            with suppress(KodeError):  # memory that fails is left out of a turn, too
                ask = self._services.recall
                remembered = await remembered_for(blocks, context.shown, ask)
                opening += [] if remembered is None else [remembered]
        else:
            context, mode = running.context, running.mode
            opening = context.incoming(self._change_sets.unreported(self.turn_ids(context.leaf_id)))
        tools = self.specs(options, mode, context)
        fitted = context.fitted(tools, "auto", [unwritten(incoming) for incoming in opening])
        encoded = await self._services.encode(fitted.request)
        due = context.will_sum_up(fitted)
        shown = inspection(
            fitted, encoded, compaction_due=due, with_body=params.body, pinned=context.pinned
        )
        path = self._conversation.path(context.leaf_id)
        gone = [one for one in path if one.id in self.edits.left_out]
        cached = self._cached(context, fitted)
        prices = self._services.budgets.model.prices(fitted.request.model)
        cost = None if prices is None else prompt_cost(fitted, cached, prices)
        return msgspec.structs.replace(shown, left_out=left_out(gone), cached=cached, cost=cost)

    def _cached(self, context: TurnContext, fitted: Fitted) -> CachedPart | None:
        """Return what the host still has of a request, if that begins as the one before did."""
        if self._why_anew(context):
            return None
        now = self._services.clock.timestamp()
        for_an_hour = self._services.traits(context.model).caches_for_an_hour
        return cached_part(context.shown, fitted, now, for_an_hour=for_an_hour)

    def _why_anew(self, context: TurnContext) -> str:
        """Return why the model or effort of a turn makes its host read all anew."""
        before, effort = self._records.prefix, context.effort or ""
        if before is None:
            return ""
        chosen = msgspec.structs.replace(before, model=context.model, effort=effort)
        return why_anew(before, chosen, self._services.traits(context.model))

    def begin(
        self,
        turn: RunningTurn,
        reported: Sequence[str | None],
        blocks: tuple[Block, ...],
        params: TurnStartParams,
    ) -> list[Incoming]:
        """Return the opening of a turn, and fix how its request begins.

        The opening says which tools the session did not offer at first. `reported` is as in
        `opening`.
        """
        context = turn.context
        meta = with_goal(with_turn_key(params.meta, params.client_turn_key), params.goal)
        root = next((one.turn_id for one in self._conversation.path(context.leaf_id)), None)
        tools = self.tools(turn.options, turn.mode, context)
        before, now = self._prefix.fix(context, tools, root or turn.id)
        goes_on = any(message.role == "assistant" for message in context.shown)
        traits = self._services.traits(context.model)
        self._rereading.begin(before, now, traits, goes_on=goes_on)
        goal = None if params.goal is None else goal_words(params.goal)
        opening = self.opening(context, [*reported, goal], blocks, meta, params.options)
        came = self._prefix.late_tools(context)
        if opening and came:
            first = opening[0]
            opening[0] = replace(first, meta={**first.meta, NEW_TOOLS: came})
        return opening

    def _changes(self, context: TurnContext) -> list[Incoming]:
        """Return what has changed of the surroundings since they were reported to the model."""
        fresh = context.surroundings
        known = known_states(self._prefix.states(fresh), context.shown)
        return [
            Incoming(
                "user",
                (TextBlock(text=change.text),),
                {"origin": "reminder", SURROUNDINGS: change.states}
                | ({OWN_WORDS: True} if change.ours else {}),
            )
            for change in changes(known, fresh.parts)
        ]

    def opening(
        self,
        context: TurnContext,
        reported: Sequence[str | None],
        blocks: tuple[Block, ...],
        meta: Mapping[str, Any],
        options: TurnOptions | None,
    ) -> list[Incoming]:
        """What a turn begins with: a reminder, if there is something to report, and the prompt.

        `reported` is what became of edits, unless the session is new, and the text of a verb that
        the prompt calls. Without blocks the turn goes on with what is there.
        """
        decided, *more = reported
        texts = [None if context.leaf_id is None else decided, *more]
        if options is not None:
            texts.append(self._services.koding_note(options))
        note = self._services.editor_note() if blocks else None
        reminder = prompt_reminder(texts, note, context.shown)
        # First, because what became of edits counts as reported with the first saved message.
        found = [] if reminder is None else [reminder]
        found += self._changes(context)
        if blocks:
            found.append(prompt_input(blocks, meta, options))
        return found
