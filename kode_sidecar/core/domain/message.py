"""Messages and content blocks: the one shape shared by model, disk and wire."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kode_sidecar.core.domain.change_set import Range

Role = Literal["system", "user", "assistant", "tool"]
ResultStatus = Literal["running", "ok", "error", "cancelled", "denied"]
ToolKind = Literal["read", "search", "edit", "run", "think", "ask", "other"]

OUR_ORIGINS = ("reminder", "steer", "compaction")
"""`meta.origin` of what stands among the user's messages and opened no turn."""
OWN_WORDS = "ownWords"
"""In a reminder's `meta`: true where no file, no program and no user had a part in its text."""
NEW_TOOLS = "newTools"
"""In `meta`: the names of tools on offer from this message on that were not before it."""
KEEPS = "keeps"
"""The name in a summary's `meta` of the first message before it that the model still sees."""


class BlockBase(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"
):
    """What every content block has. `id` is the `blockId` of events and deltas.

    It is given by the server; a block sent by an editor has none.
    """

    id: str = ""


class Blob(Struct, frozen=True, kw_only=True):
    """A text too large to travel at once: `kode/blob/read` reads it by its `ref`.

    `bytes` is the length of the whole text in UTF-8, `sha256` its hash in hex.
    """

    ref: str
    bytes: int
    sha256: str


class TextBlock(BlockBase, frozen=True, kw_only=True, tag="text"):
    """Plain text, Markdown where it comes from the model.

    With `blob`, which only the server sets, `text` is no more than the head of it. `opaque` are
    members that go back to the host that gave them with this text, and to no other.
    """

    text: str
    blob: Blob | None = None
    opaque: dict[str, Any] | None = None


class ThinkingBlock(BlockBase, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning. An empty text is a thinking block too: some hosts demand it back.

    `signature` is the host's seal on a finished block and goes back to it unchanged, "" as well.
    `redacted`: the host hides the text, and the signature is all there is of it. `opaque` are more
    members that go back to the host that gave them, and to no other.
    """

    text: str
    signature: str | None = None
    redacted: bool = False
    opaque: dict[str, Any] | None = None


class ImageBlock(BlockBase, frozen=True, kw_only=True, tag="image"):
    """An image as base64; `media_type` such as `image/png`."""

    media_type: str
    data: str


class ResourceBlock(BlockBase, frozen=True, kw_only=True, tag="resource"):
    """A file or selection that the user attached. `text` is what the user saw when attaching.

    Lines count from 1; `end_line` is the last one.
    """

    uri: str
    text: str | None = None
    language_id: str | None = None
    start_line: int | None = None
    end_line: int | None = None


class CallLocation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file or folder that a call is about; `range`, whole lines, where it names some."""

    uri: str
    range: Range | None = None


def _other() -> ToolKind:
    return "other"


class ToolUseBlock(BlockBase, frozen=True, kw_only=True, tag="tool_use"):
    """A tool call. `tool_use_id` is the model's own id, kept verbatim.

    `kind`, `title` and `locations` are for a card that knows no tool. While the call still grows
    the title is the tool's; the whole call says what it is about. All three are always sent.
    `invalid_input` holds the raw argument text when it was no JSON object; such a call
    is never run and goes back to the model with empty arguments and an error result. `opaque` are
    members of the call that go back to the host that gave them, and to no other.
    """

    tool_use_id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    invalid_input: str | None = None
    opaque: dict[str, Any] | None = None
    # Factories of ours are never left out; sessions of older versions have none of the three.
    kind: ToolKind = field(default_factory=_other)
    title: str = field(default_factory=str)
    locations: tuple[CallLocation, ...] = field(default_factory=tuple[CallLocation, ...])


PromptBlock = TextBlock | ImageBlock | ResourceBlock
ResultContent = TextBlock | ImageBlock


def _ok() -> ResultStatus:
    return "ok"


class ToolResultBlock(BlockBase, frozen=True, kw_only=True, tag="tool_result"):
    """The answer to a tool call. `summary` is the collapsed line of a tool card.

    It starts as `running`, without content. `call_block_id` is the block of the call; absent in
    sessions of older versions. `artifact` is the whole output where the model got no more than the
    beginning of it.
    """

    tool_use_id: str
    call_block_id: str = ""
    content: tuple[ResultContent, ...] = field(default_factory=tuple[ResultContent, ...])
    is_error: bool = field(default_factory=bool)
    status: ResultStatus = field(default_factory=_ok)
    summary: str = field(default_factory=str)
    artifact: Blob | None = None


Block = TextBlock | ThinkingBlock | ImageBlock | ResourceBlock | ToolUseBlock | ToolResultBlock


def unanswered(call: ToolUseBlock, why: str, *, block_id: str = "") -> ToolResultBlock:
    """Return what stands for the result of a call that never came to one."""
    return ToolResultBlock(
        id=block_id,
        tool_use_id=call.tool_use_id,
        call_block_id=call.id,
        content=(TextBlock(text=why),),
        is_error=True,
        status="cancelled",
        summary=why,
    )


def texts_of(blocks: Iterable[Block]) -> list[str]:
    """Return the texts among blocks."""
    return [block.text for block in blocks if isinstance(block, TextBlock)]


class Usage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Token counts; all are always there.

    `cached_tokens` and `cache_write_tokens` are part of `input_tokens`.

    The former were read from the host's cache, the latter put into it at a price of its own.
    `reasoning_tokens` are part of `output_tokens`; 0 where the host does not tell.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of two usages."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


class Cost(Struct, frozen=True):
    """An amount in the provider's currency (ISO 4217)."""

    amount: float
    currency: str


def _first() -> int:
    return 1


class LostUsage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What attempts used that came to nothing: the host wants to be paid for them all the same.

    `estimated`: the host did not tell all of it before the answer broke off.
    """

    usage: Usage
    cost: Cost | None = None
    cost_usd: float | None = None
    estimated: bool = False

    def plus(self, other: "LostUsage | None") -> "LostUsage":
        """Return the sum; amounts in two currencies have none."""
        if other is None:
            return self
        return LostUsage(
            usage=self.usage.plus(other.usage),
            cost=_sum(self.cost, other.cost),
            cost_usd=_dollars(self.cost_usd, other.cost_usd),
            estimated=self.estimated or other.estimated,
        )


def _sum(one: Cost | None, other: Cost | None) -> Cost | None:
    if one is None or other is None:
        return one or other
    if one.currency != other.currency:
        return None
    return Cost(one.amount + other.amount, one.currency)


def _dollars(one: float | None, other: float | None) -> float | None:
    return (one or 0.0) + (other or 0.0) if one is not None or other is not None else None


class Message(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One node of a conversation tree.

    `parent_id` is absent at a root. `version` counts the prompts that replace each other: an edited
    one is version 2 and names in `replaces` which one it was made from. `created_at` is RFC 3339 in
    UTC, `duration_ms` wall time. With `is_api_error_message` the last block is the text of the
    error that ended its turn. `provider` and `model` say who answered; the model's id is the one
    that was served. `usage` and `cost` are those of this answer alone; `lost` is what attempts
    before it used, or a broken one.
    """

    id: str
    session_id: str
    role: Role
    # Factories of ours are never left out: what every message has is always told.
    content: tuple[Block, ...] = field(default_factory=tuple[Block, ...])
    parent_id: str | None = None
    depth: int = field(default_factory=int)
    version: int = field(default_factory=_first)
    replaces: str | None = None
    created_at: str = field(default_factory=str)
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: Usage | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    lost: LostUsage | None = None
    duration_ms: int | None = None
    response_id: str | None = None
    provider: str | None = None
    model: str | None = None
    is_api_error_message: bool = False

    @property
    def turn_id(self) -> str:
        """The turn that it was said in; empty for what was said in none."""
        return str(self.meta.get("turnId", ""))

    @property
    def origin(self) -> str:
        """Where it came from, empty for what the user, the model or a tool just said."""
        return str(self.meta.get("origin", ""))

    @property
    def calls(self) -> list[ToolUseBlock]:
        """Its tool calls."""
        return [block for block in self.content if isinstance(block, ToolUseBlock)]

    @property
    def results(self) -> list[ToolResultBlock]:
        """Its results of tool calls."""
        return [block for block in self.content if isinstance(block, ToolResultBlock)]

    def with_results(self, change: Callable[[ToolResultBlock], ToolResultBlock]) -> "Message":
        """Return the same with other results; its other blocks stay."""
        content = (
            change(block) if isinstance(block, ToolResultBlock) else block for block in self.content
        )
        return replace(self, content=tuple(content))

    @property
    def is_summary(self) -> bool:
        """Whether it stands for what was said before it."""
        return self.meta.get("origin") == "compaction"

    @property
    def is_prompt(self) -> bool:
        """Whether the user opened a turn with it."""
        return self.role == "user" and self.meta.get("origin") not in OUR_ORIGINS

    @property
    def waits_for_answer(self) -> bool:
        """Whether the model has yet to say something about it: it failed, or was never asked."""
        return self.role != "assistant" or self.is_api_error_message
