"""One request to the model, and the assistant message made of its answer."""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import aclosing

import msgspec

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockStarted,
    MessageAdded,
    MessageCompleted,
    ModelWaiting,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, refused_content
from kode_sidecar.core.domain.message import REFUSED, Block, Message, TextBlock
from kode_sidecar.core.domain.model_event import ModelEvent, RequestHeld, RetryPlanned
from kode_sidecar.core.kernel.call_cards import CallCards
from kode_sidecar.core.kernel.contracts import (
    AnswerMeter,
    Context,
    Emit,
    ModelClient,
    ModelRequest,
    TurnScope,
)
from kode_sidecar.core.kernel.message_assembler import MessageAssembler, Shown
from kode_sidecar.core.timer_context import TimerContext


class ModelStep:
    """Runs once. Afterwards `assembler` holds what arrived, and the message is committed.

    `ask_again`: the request failed, and the context has another one to send instead.

    The message enters the tree with its first block: an answer without blocks leaves no trace.
    A failed answer is saved with its text and the error as a message the model never sees.
    """

    def __init__(
        self, scope: TurnScope, context: Context, emit: Emit, cards: CallCards | None = None
    ) -> None:
        self._scope = scope
        self._context = context
        self._emit = emit
        self._message = context.open("assistant", {})
        self._added = False
        self._over = False
        self._started = scope.clock.monotonic()
        self._error_blocks: tuple[Block, ...] = ()
        self._meter = AnswerMeter()
        self.ask_again = False
        self.assembler = MessageAssembler(
            lambda: scope.new_id("block"), scope.turn_id, self._message.id, cards
        )

    async def run(self, model: ModelClient, request: ModelRequest) -> None:
        """Stream the answer and commit it, even if it fails or is cancelled."""
        cut_off = self._scope.cut_off
        cut_off.end = self._cut
        try:
            await self._stream(model, request)
            cut_off.end = None
            if self._over:
                raise asyncio.CancelledError  # `_cut` ended the answer during the stream
            error = self.assembler.error
            if error is None:
                self._show(self.assembler.finish())
            elif not self._added and await self._context.recover(error):
                self.ask_again = True
            else:
                self._show(self.assembler.abort(error.message))
                self._show_error(error)
        except BaseException:
            self._cut()
            raise
        else:
            self._commit()

    def _cut(self) -> None:
        """Commit what has arrived, unless that was done; nothing is added to the answer after."""
        self._scope.cut_off.end = None
        if not self._over:
            self._show(self.assembler.abort("cancelled"))
            if self.assembler.usage is None and (lost := self._meter.lost()) is not None:
                self.assembler.lost = lost.plus(self.assembler.lost)
            self._commit()

    async def _stream(self, model: ModelClient, request: ModelRequest) -> None:
        scope = self._scope
        watch = _SilenceWatch(
            scope.turn_id, scope.silence_seconds, scope.clock.monotonic, self._emit
        )
        with watch:
            self._meter = request.meter
            async with aclosing(model.stream(request)) as batches:
                watch.wait()
                async for batch in batches:
                    if self._over:
                        return
                    watch.received()
                    self._show(self.assembler.feed(batch))
                    await self._emit.flow()
                    watch.wait(_unsent(batch))

    def _show(self, events: Sequence[Shown]) -> None:
        for event in events:
            if not self._added and isinstance(event, BlockStarted):
                self._added = True
                self._emit(message_added(self._message, self._scope.turn_id))
            self._emit(event)

    def _show_error(self, error: ErrorInfo) -> None:
        refused = None if self._added else refused_content(error)
        if refused is not None:
            meta = {**self._message.meta, REFUSED: refused}
            self._message = msgspec.structs.replace(self._message, meta=meta)
        block = TextBlock(id=self._scope.new_id("block"), text=error.message)
        self._show(block_events(block, self._scope.turn_id, self._message.id))
        self._error_blocks = (block,)

    def _commit(self) -> None:
        self._over = True
        if not self._added:
            return
        duration_ms = round((self._scope.clock.monotonic() - self._started) * 1000)
        assembler = self.assembler
        message = msgspec.structs.replace(
            self._message,
            content=(*assembler.blocks, *self._error_blocks),
            usage=assembler.usage,
            cost=assembler.cost,
            cost_usd=assembler.cost_usd,
            lost=assembler.lost,
            duration_ms=duration_ms,
            response_id=assembler.response_id,
            provider=assembler.provider,
            model=assembler.model,
            is_api_error_message=bool(self._error_blocks),
        )
        self._context.commit(message)
        self._emit(message_completed(message, self._scope.turn_id))


class _SilenceWatch(TimerContext):
    """Emits `ModelWaiting` every `every` seconds while the model is silent.

    Use with `with`. Time counts only between `wait` and `received`: a slow consumer of the answer
    does not count as silence of the model. `now` returns seconds.
    """

    def __init__(self, turn_id: str, every: float, now: Callable[[], float], emit: Emit) -> None:
        self._turn_id = turn_id
        self._every = every
        self._now = now
        self._emit = emit
        self._since: float | None = None
        self._reported_at = 0.0

    def wait(self, unsent: float = 0.0) -> None:
        """Start to count the silence: the next batch is awaited, asked for in `unsent` seconds."""
        self._since = self._reported_at = self._now() + unsent
        if self._timer is None:
            self._call_later(self._every, self._check)

    def received(self) -> None:
        """Stop counting: a batch has arrived."""
        self._since = None

    def _check(self) -> None:
        if self._since is None:
            self._call_later(self._every, self._check)
            return
        now = self._now()
        left = self._reported_at + self._every - now
        if left <= 0:
            self._reported_at, left = now, self._every
            self._report(now - self._since)
        self._call_later(min(left, self._every), self._check)

    def _report(self, seconds: float) -> None:
        self._emit(
            ModelWaiting(
                turn_id=self._turn_id,
                state="silent",
                message=f"The model has said nothing for {seconds:.0f} s; it may be thinking.",
                silent_ms=round(seconds * 1000),
            )
        )


def _unsent(batch: Sequence[ModelEvent]) -> float:
    """Return for how many seconds after a batch nothing is sent: the model is not silent then."""
    match batch[-1:]:
        case [RetryPlanned(seconds=seconds)]:
            return seconds
        case [RequestHeld()]:
            return math.inf
        case _:
            return 0.0


def message_added(message: Message, turn_id: str) -> MessageAdded:
    """Return the event that places a message in the tree."""
    return MessageAdded(
        turn_id=turn_id,
        message_id=message.id,
        role=message.role,
        parent_id=message.parent_id,
        depth=message.depth,
        version=message.version,
        replaces=message.replaces,
        created_at=message.created_at,
        meta=message.meta,
    )


def message_completed(message: Message, turn_id: str) -> MessageCompleted:
    """Return the event for a message that is on disk."""
    return MessageCompleted(
        turn_id=turn_id,
        message_id=message.id,
        usage=message.usage,
        cost=message.cost,
        cost_usd=message.cost_usd,
        lost=message.lost,
        duration_ms=message.duration_ms,
        response_id=message.response_id,
        provider=message.provider,
        model=message.model,
        is_api_error_message=message.is_api_error_message,
    )


def block_events(block: Block, turn_id: str, message_id: str) -> tuple[Shown, Shown]:
    """Return the two events of a block that arrives whole: started and completed."""
    return (
        BlockStarted(turn_id=turn_id, message_id=message_id, block_id=block.id, block=block),
        BlockCompleted(turn_id=turn_id, message_id=message_id, block_id=block.id, block=block),
    )
