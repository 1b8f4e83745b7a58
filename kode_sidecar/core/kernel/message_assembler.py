"""Turns the model's events into content blocks and the events that show their growth.

Sans-IO. Per block the order is started → deltas → completed or dropped, once each.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import msgspec

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    Event,
    ModelWaiting,
    Notice,
)
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import (
    Block,
    Cost,
    LostUsage,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
)
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    AttemptLost,
    FinishReason,
    ModelEvent,
    ModelNotice,
    OpaqueData,
    RequestHeld,
    RequestSent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    RetryPlanned,
    TextDelta,
    TextMarked,
    ThinkingDelta,
    ThinkingSigned,
    ToolUseDelta,
    ToolUseStarted,
    UsageReported,
)
from kode_sidecar.core.kernel.call_cards import CallCards
from kode_sidecar.core.text.shown_text import CONTROL, fix_surrogates, fix_value

Shown = Event | BlockDelta

_FENCED = re.compile(r"\s*```(?:json)?\s*\n?(.*?)```\s*", re.DOTALL)


class _OpenBlock:
    """A block that is still growing."""

    __slots__ = ("block", "is_changed", "length", "parts")

    def __init__(self, block: TextBlock | ThinkingBlock | ToolUseBlock) -> None:
        self.block = block
        self.is_changed = False  # control characters were removed from the model's text
        self.parts: list[str] = []
        self.length = 0

    def grow(self, text: str) -> BlockDelta:
        delta = BlockDelta(block_id=self.block.id, at=self.length, add=text)
        self.parts.append(text)
        self.length += len(text)
        return delta

    def finished(self, cards: CallCards) -> TextBlock | ThinkingBlock | ToolUseBlock:
        text = "".join(self.parts)
        block = self.block
        if isinstance(block, TextBlock):
            return msgspec.structs.replace(block, text=text)
        if isinstance(block, ThinkingBlock):
            return msgspec.structs.replace(block, text=text)
        arguments = parse_arguments(text)
        if arguments is None:
            return msgspec.structs.replace(block, invalid_input=text)
        return cards.whole(msgspec.structs.replace(block, input=arguments))


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments of a tool call, or None when they are no JSON object.

    An empty text means no arguments. Raw control characters inside strings are tolerated, and so is
    an object in a fence, as a JSON text, or sent twice: models and gateways send them. A lone
    surrogate becomes U+FFFD: no later request could carry it.
    """
    if not text.strip():
        return {}
    try:
        value = _only_value(text)
        if isinstance(value, str):
            value = _only_value(value)
        if "\\ud" in text or "\\uD" in text:
            value = fix_value(value)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _only_value(text: str) -> object:
    """Return the one JSON value of a text. Raises ValueError or RecursionError."""
    fenced = _FENCED.fullmatch(text)
    rest = (fenced[1] if fenced else text).strip()
    decoder = json.JSONDecoder(strict=False)
    value, end = decoder.raw_decode(rest)
    while rest := rest[end:].strip():
        again, end = decoder.raw_decode(rest)
        if again != value:
            raise ValueError("two values")
    return value


class MessageAssembler:
    """Assembles one model answer. Feed it batches, then call `finish` or `abort` once.

    `blocks` then holds the finished blocks in order of appearance. `cards` adds kind, title and
    locations to tool calls.
    """

    def __init__(
        self,
        new_block_id: Callable[[], str],
        turn_id: str,
        message_id: str,
        cards: CallCards | None = None,
    ) -> None:
        self._cards = cards or CallCards()
        self._new_block_id = new_block_id
        self._turn_id = turn_id
        self._message_id = message_id
        self._open: list[_OpenBlock] = []
        self._text: _OpenBlock | None = None
        self._tools: dict[int, _OpenBlock] = {}
        self.blocks: list[Block] = []
        self.usage: Usage | None = None
        self.cost: Cost | None = None
        self.cost_usd: float | None = None
        self.lost: LostUsage | None = None
        self.response_id: str | None = None
        self.provider: str | None = None
        self.model: str | None = None
        self.finish_reason: FinishReason | None = None
        self.error: ErrorInfo | None = None

    def feed(self, batch: Iterable[ModelEvent]) -> list[Shown]:
        """Return the editor's events for a batch, in order."""
        out: list[Shown] = []
        for event in batch:
            match event:
                case TextDelta(text):
                    self._grow_text(text, thinking=False, out=out)
                case ThinkingDelta(text):
                    self._grow_text(text, thinking=True, out=out)
                case ThinkingSigned():
                    self._sign(event, out)
                case TextMarked(opaque):
                    self._mark(opaque)
                case OpaqueData(data, index):
                    self._attach(data, index, out)
                case ToolUseStarted(index, tool_use_id, name):
                    self._text = None
                    block = ToolUseBlock(
                        id=self._new_block_id(),
                        tool_use_id=fix_surrogates(tool_use_id),
                        name=fix_surrogates(name),
                    )
                    self._tools[index] = self._start(self._cards.begun(block), out)
                case ToolUseDelta(index, fragment):
                    _append_delta(out, self._tools[index].grow(fragment))
                case AttemptDropped(reason):
                    out.extend(self._drop(self._open, reason))
                    self._forget()
                case _:
                    self._note(event, out)
        return out

    def _note(self, event: ModelEvent, out: list[Shown]) -> None:
        match event:
            case ResponseStarted(response_id, model, provider):
                self.response_id = response_id or self.response_id
                self.model = model or self.model
                self.provider = provider or self.provider
            case UsageReported(usage, cost, cost_usd):
                self.usage, self.cost, self.cost_usd = usage, cost, cost_usd
            case AttemptLost(lost):
                self.lost = lost.plus(self.lost)
            case ModelNotice(code, message):
                out.append(Notice(turn_id=self._turn_id, code=code, message=message))
            case RetryPlanned(reason, seconds, attempt, code):
                out.append(
                    ModelWaiting(
                        turn_id=self._turn_id,
                        state="retrying",
                        message=reason,
                        retry_in_ms=round(seconds * 1000),
                        attempt=attempt,
                        code=code or None,
                    )
                )
            case RequestHeld(kind, reason, seconds):
                wait = None if seconds is None else round(seconds * 1000)
                out.append(
                    ModelWaiting(
                        turn_id=self._turn_id, state=kind, message=reason, retry_in_ms=wait
                    )
                )
            case RequestSent():
                text = "The request is sent."
                out.append(ModelWaiting(turn_id=self._turn_id, state="sent", message=text))
            case ResponseFinished(reason):
                self.finish_reason = reason
            case ResponseFailed(error):
                self.error = error
            case _:
                raise AssertionError(f"feed handles {type(event).__name__}")

    def finish(self) -> list[Shown]:
        """Complete every open block; call it when the answer is whole."""
        return self._complete(self._open)

    def abort(self, reason: str) -> list[Shown]:
        """Complete open texts and drop tool calls that may be cut; call it for a broken answer."""
        cut = [item for item in self._open if isinstance(item.block, ToolUseBlock)]
        said = [item for item in self._open if not isinstance(item.block, ToolUseBlock)]
        return [*self._complete(said), *self._drop(cut, reason)]

    @property
    def tool_uses(self) -> list[ToolUseBlock]:
        """The tool calls of a finished answer, in order."""
        return [block for block in self.blocks if isinstance(block, ToolUseBlock)]

    def _grow_text(self, text: str, *, thinking: bool, out: list[Shown]) -> None:
        shown = CONTROL.sub("", text)  # no escape may move the cursor of a terminal (W13)
        is_changed, text = shown != text, shown
        kind = ThinkingBlock if thinking else TextBlock
        current = self._text
        if current is None or not isinstance(current.block, kind):
            if not thinking:
                # Hosts send blank lines before the answer; a block starts with its first word.
                text = text.lstrip("\n")
                if not text:
                    return
            current = self._text = self._start(kind(id=self._new_block_id(), text=""), out)
        current.is_changed |= is_changed
        if text:
            _append_delta(out, current.grow(text))

    def _sign(self, seal: ThinkingSigned, out: list[Shown]) -> None:
        current = self._text
        thinks = current is not None and isinstance(current.block, ThinkingBlock)
        # A gateway may send the signature of a thought after the text that follows it.
        late = not thinks and seal.signature and not seal.redacted and self._unsigned()
        if late:
            current = late
        elif seal.redacted or current is None or not thinks:
            block = ThinkingBlock(id=self._new_block_id(), text="", redacted=seal.redacted)
            current = self._start(block, out)
        if not current.is_changed:  # the signature does not fit a changed text
            current.block = msgspec.structs.replace(current.block, signature=seal.signature)
        if seal.opaque is not None:
            current.block = msgspec.structs.replace(current.block, opaque=seal.opaque)
        self._text = self._text if late else None

    def _unsigned(self) -> _OpenBlock | None:
        """Return the newest thought without a seal."""
        for item in reversed(self._open):
            block = item.block
            if isinstance(block, ThinkingBlock):
                sealed = block.signature or block.redacted or block.opaque
                return None if sealed else item
        return None

    def _mark(self, opaque: dict[str, Any]) -> None:
        current = self._text
        if current is not None and isinstance(current.block, TextBlock):
            current.block = msgspec.structs.replace(current.block, opaque=opaque)
            self._text = None

    def _attach(self, data: dict[str, Any], index: int | None, out: list[Shown]) -> None:
        if index is None:
            thoughts = (one for one in self._open if isinstance(one.block, ThinkingBlock))
            item = next(thoughts, None)
            item = item or self._start(ThinkingBlock(id=self._new_block_id(), text=""), out)
        else:
            item = self._tools[index]
        if not isinstance(item.block, TextBlock):
            known = item.block.opaque or {}
            item.block = msgspec.structs.replace(item.block, opaque={**known, **data})

    def _start(
        self, block: TextBlock | ThinkingBlock | ToolUseBlock, out: list[Shown]
    ) -> _OpenBlock:
        item = _OpenBlock(block)
        self._open.append(item)
        out.append(
            BlockStarted(
                turn_id=self._turn_id,
                message_id=self._message_id,
                block_id=block.id,
                block=block,
            )
        )
        return item

    def _complete(self, items: Sequence[_OpenBlock]) -> list[Shown]:
        out: list[Shown] = []
        for item in items:
            block = item.finished(self._cards)
            self.blocks.append(block)
            out.append(
                BlockCompleted(
                    turn_id=self._turn_id,
                    message_id=self._message_id,
                    block_id=block.id,
                    block=block,
                )
            )
        self._forget()
        return out

    def _drop(self, items: Sequence[_OpenBlock], reason: str) -> list[Shown]:
        return [
            BlockDropped(
                turn_id=self._turn_id,
                message_id=self._message_id,
                block_id=item.block.id,
                reason=reason,
            )
            for item in items
        ]

    def _forget(self) -> None:
        self._open, self._text, self._tools = [], None, {}


def _append_delta(out: list[Shown], delta: BlockDelta) -> None:
    """Append a delta, or merge it with the one before if both belong to one block."""
    last = out[-1] if out else None
    if isinstance(last, BlockDelta) and last.block_id == delta.block_id:
        out[-1] = BlockDelta(block_id=last.block_id, at=last.at, add=last.add + delta.add)
    else:
        out.append(delta)
