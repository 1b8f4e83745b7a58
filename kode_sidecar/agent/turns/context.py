"""The conversation as one turn sees it: where messages go, and the next request."""

import operator
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kode_sidecar.agent.context.builder import PromptContext
from kode_sidecar.agent.context.fitting import Fitted, fit
from kode_sidecar.agent.context.surroundings import SystemPrompt
from kode_sidecar.agent.context.token_count import (
    Estimate,
    Measured,
    Rates,
    estimate,
    learned,
    message_weight,
    with_answer,
)
from kode_sidecar.agent.edits import ChangeSets
from kode_sidecar.agent.turns.prompt import reminder_input
from kode_sidecar.core.domain.agent_event import ContextUse
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import Block, LostUsage, Message, Role
from kode_sidecar.core.kernel import block_events, message_added, message_completed
from kode_sidecar.core.kernel.contracts import (
    Clock,
    Emit,
    Incoming,
    ModelRequest,
    NewId,
    ToolChoice,
    ToolSpec,
)
from kode_sidecar.infrastructure.records.spending import Totals

REMEMBERED_ANSWERS = 200
# Fewer tokens for a request's weight than this are no count of it: some hosts leave out what they
# had cached.
_LEAST_PLAUSIBLE = 0.25
# Hosts that count nothing say so few tokens, which is less than any system prompt.
_NO_COUNT = 20


class LearnedRates:
    """Token rates that the sessions of this process have learned, by model."""

    def __init__(self) -> None:
        self._rates: dict[str, Rates] = {}

    def of(self, model: str) -> Rates:
        """The rates of a model; those everybody starts with while nothing is known."""
        return self._rates.get(model, Rates())

    def learn(self, model: str, asked: Estimate, answer: Message) -> None:
        """Adjust the rates of a model by what its host counted for one answer."""
        if answer.usage is not None:
            self._rates[model] = learned(self.of(model), asked, answer.usage)


class TokenMeter:
    """Estimates requests of one session; the newest answers on every branch are remembered.

    So is the weight of each message: every step asks with all of them again.
    """

    def __init__(
        self, rates: LearnedRates, weight: Callable[[Message], float] = message_weight
    ) -> None:
        self._rates = rates
        self._weight = weight
        self._measured: dict[str, Measured] = {}
        self._weights: dict[str, tuple[Sequence[Block], float]] = {}

    def estimate(self, request: ModelRequest) -> Estimate:
        """Return the estimated size of a request."""
        return estimate(request, self._measured, self._rates.of(request.model), self._weigh)

    def answered(
        self,
        request: ModelRequest,
        asked: Estimate,
        answer: Message,
        *,
        returns_thinking: bool = True,
    ) -> None:
        """A request was answered; hosts that report no usage, or nonsense, teach nothing.

        `returns_thinking`: later requests hold the reasoning of this answer.
        """
        usage = answer.usage
        if usage is None or answer.is_api_error_message:
            return
        if usage.input_tokens <= _LEAST_PLAUSIBLE * asked.weight:
            return
        self._rates.learn(request.model, asked, answer)
        self._measured[answer.id] = with_answer(
            asked, answer, usage, returns_thinking=returns_thinking
        )
        if len(self._measured) > REMEMBERED_ANSWERS:
            del self._measured[next(iter(self._measured))]

    def _weigh(self, message: Message) -> float:
        known = self._weights.get(message.id)
        # A request may hold a message otherwise than the tree does, under the same id.
        if known is not None and _same_blocks(known[0], message.content):
            return known[1]
        weight = self._weight(message)
        self._weights[message.id] = (message.content, weight)
        return weight


def _same_blocks(one: Sequence[Block], other: Sequence[Block]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


# A refused request was larger than was thought, or the window is smaller.
_AFTER_OVERFLOW = 0.9

Compact = Callable[["TurnContext", Sequence[ToolSpec]], Awaitable[bool]]
"""Puts a summary in the place of history; whether it did. Raises KodeError `Storage`."""


class TurnContext:
    """`kernel.contracts.Context` over the session's tree, from one leaf on.

    `shown` are the stored messages that the model gets, `pinned` those of them that the user wants
    to stay, `window` is how many tokens it reads at most. History is not summed up (`compact`)
    unasked where the user took a summary back (`undone`). `left_out` is called once if a request
    holds less than all, `sending` gets each request. `surroundings` are those of now, `prompt`
    has those of the session's first request. `use` is how full the window is, by the host's own
    count where it reports one, None before any step. `keep` writes a message, or raises KodeError
    `Storage`.
    Every message carries `meta.turnId`, so that a branch knows which turns made it.
    """

    def __init__(
        self,
        *,
        session_id: str,
        turn_id: str,
        conversation: Conversation,
        keep: Callable[[Message], None],
        clock: Clock,
        new_id: NewId,
        parent_id: str | None,
        prompt: PromptContext,
        surroundings: SystemPrompt,
        shown: Iterable[Message],
        window: int | None,
        meter: TokenMeter,
        change_sets: ChangeSets,
        pinned: Collection[str],
        compact: Compact,
        undone: Callable[[], bool],
        left_out: Callable[[Fitted], None],
        sending: Callable[[Fitted], None],
    ) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self._conversation = conversation
        self._keep = keep
        self._clock = clock
        self._new_id = new_id
        self._leaf = parent_id
        self._prompt = prompt
        self.surroundings = surroundings
        self._shown = list(shown)
        self._meter = meter
        self.pinned = pinned
        self._change_sets = change_sets
        self._reminding = False
        self._compact = compact
        self._undone = undone
        self._left_out: Callable[[Fitted], None] | None = left_out
        self._sending = sending
        self._may_compact: bool | None = None  # asked for when the window is nearly full
        self._recovered = False
        self._asked: Fitted | None = None
        self._refused: Message | None = None
        self.use: ContextUse | None = None
        self._owed: LostUsage | None = None
        self._steering: list[Incoming] = []
        self._remembered: list[Incoming] = []
        self._added: list[Message] = []
        self.window = window
        self.totals = Totals()

    @property
    def model(self) -> str:
        """The name of the model that is asked."""
        return self._prompt.model

    @property
    def system(self) -> str:
        """The system prompt."""
        return self._prompt.system

    @property
    def effort(self) -> Effort | None:
        """The thinking effort that is asked for; None: the model's default."""
        return self._prompt.effort

    @property
    def leaf_id(self) -> str | None:
        """The newest message of this turn; before the first one, what it grows from."""
        return self._leaf

    @property
    def shown(self) -> Sequence[Message]:
        """The stored messages that the model gets, oldest first."""
        return tuple(self._shown)

    @property
    def messages(self) -> Sequence[Message]:
        """What this turn has committed so far, oldest first."""
        return tuple(self._added)

    def open(self, role: Role, meta: Mapping[str, Any]) -> Message:
        """A new, empty message below the newest."""
        return Message(
            id=self._new_id("message"),
            session_id=self.session_id,
            role=role,
            parent_id=self._leaf,
            depth=self._conversation.depth_below(self._leaf),
            version=self._conversation.next_version(self._leaf, role) if role == "user" else 1,
            created_at=self._clock.timestamp(),
            meta={**meta, "turnId": self.turn_id} if self.turn_id else dict(meta),
        )

    def commit(self, message: Message) -> None:
        """Write the finished message and make it the newest. Raises KodeError `Storage`."""
        self._refused = paid = message
        owed = self._owed if message.role == "assistant" else None
        if owed is not None:
            message = msgspec.structs.replace(message, lost=owed.plus(message.lost))
        self._keep(message)
        self._refused = None
        self._conversation.add(message)
        if self._reminding:
            self._reminding = False
            self._change_sets.reminders_reported()
        self._leaf = message.id
        self._added.append(message)
        self._shown.append(message)
        self.totals.add_message(paid)
        self._owed = None if owed is not None else self._owed
        if message.role == "assistant" and self._asked is not None:
            used, tokens = message.usage, self._asked.size.tokens
            if used is not None and used.input_tokens > _NO_COUNT:
                tokens = used.input_tokens + used.output_tokens
            self.use = ContextUse(tokens=tokens, window=self.window)
            asked, returned = self._asked, self._prompt.returns_thinking
            self._meter.answered(asked.request, asked.size, message, returns_thinking=returned)

    def owe(self, spent: LostUsage) -> None:
        """Add what was spent without a message: it is saved with the next answer."""
        self.totals.add_answer(spent.usage, spent.cost, spent.cost_usd)
        self._owed = spent.plus(self._owed)

    def commit_refused(self) -> Message | None:
        """Write what the disk refused, so that what comes next stands below it.

        Raises KodeError `Storage`.
        """
        message = self._refused
        if message is not None:
            self.commit(message)
        return message

    def show(self, messages: Iterable[Message]) -> None:
        """Let later requests hold these messages and those committed after them."""
        self._shown = list(messages)

    def fitted(
        self,
        tools: Sequence[ToolSpec],
        tool_choice: ToolChoice,
        more: Sequence[Message] = (),
        shown: Sequence[Message] | None = None,
    ) -> Fitted:
        """The next request as it would be now, with `more` at its end, of `shown` if given."""
        shown = self._shown if shown is None else shown
        request = self._prompt.request([*shown, *more], tools, tool_choice)
        return fit(request, self.window, self._meter.estimate, self.pinned)

    def will_sum_up(self, fitted: Fitted) -> bool:
        """Whether history is summed up before this request is sent."""
        if not fitted.is_due:
            return False
        if self._may_compact is None:
            self._may_compact = not self._undone()
        return self._may_compact

    async def request(self, tools: Sequence[ToolSpec], tool_choice: ToolChoice) -> ModelRequest:
        """The exact next request; history is summed up before when the window is nearly full."""
        fitted = self.fitted(tools, tool_choice)
        if self.will_sum_up(fitted):
            done = await self._compact(self, tools)
            fitted = self.fitted(tools, tool_choice)
            # What failed, or did not help, is not tried again in this turn.
            self._may_compact = done and not fitted.is_due
        self._asked = fitted
        if fitted.is_trimmed and self._left_out is not None:
            self._left_out(fitted)
            self._left_out = None
        self._sending(fitted)
        return fitted.request

    async def recover(self, error: ErrorInfo) -> bool:
        """After a refusal for its length: once a turn, a shorter request."""
        asked = self._asked
        if error.code != "ContextOverflow" or self._recovered or asked is None:
            return False
        self._recovered = True
        self.was_too_long(asked)
        self._may_compact = await self._compact(self, asked.request.tools)
        again = self.fitted(asked.request.tools, asked.request.tool_choice)
        return again.size.weight < asked.size.weight

    def was_too_long(self, asked: Fitted) -> None:
        """Lower the window for this turn: the host refused a request for its length."""
        real = int(asked.size.tokens * _AFTER_OVERFLOW)
        self.window = real if self.window is None else min(self.window, real)

    def remember(self, incoming: Incoming) -> None:
        """Add what memory says to the input of the next step."""
        self._remembered.append(incoming)

    def steer(self, blocks: tuple[Block, ...]) -> None:
        """Add steering by the user to the input of the next step."""
        self._steering.append(Incoming("user", blocks, {"origin": "steer"}))

    def take_steering(self) -> Sequence[Incoming]:
        """Take the steering messages that no step has taken yet."""
        taken, self._steering = self._steering, []
        return taken

    def reminder(self) -> str | None:
        """What of edits and files is not reported yet; it goes with the next message."""
        text = self._change_sets.unreported()
        self._reminding = text is not None
        return text

    def incoming(self, reminder: str | None) -> list[Incoming]:
        """Return the input of the next step, `reminder` first; nothing is taken."""
        found = [] if reminder is None else [reminder_input(reminder)]
        return [*found, *self._remembered, *self._steering]

    def take_incoming(self) -> Sequence[Incoming]:
        """Take the input of the next step: reminders, what memory says, then steering."""
        found = self.incoming(self.reminder())
        self._remembered, self._steering = [], []
        return found

    def wants_another_step(self) -> bool:
        """Return whether the user steered since the last request."""
        return bool(self._steering)


def write_incoming(
    context: TurnContext, incoming: Incoming, new_id: NewId, **known: Any
) -> Message:
    """Place it below the newest message and commit it; blocks without an id get one.

    `known` are more fields of the message, such as its usage. Raises KodeError `Storage`.
    """
    opened = context.open(incoming.role, incoming.meta)
    blocks = tuple(
        block if block.id else msgspec.structs.replace(block, id=new_id("block"))
        for block in incoming.content
    )
    message = msgspec.structs.replace(opened, content=blocks, **known)
    context.commit(message)
    return message


def report_message(emit: Emit, message: Message, turn_id: str) -> None:
    """Emit all events of a message that arrived whole and is committed."""
    emit(message_added(message, turn_id))
    for block in message.content:
        for event in block_events(block, turn_id, message.id):
            emit(event)
    emit(message_completed(message, turn_id))
