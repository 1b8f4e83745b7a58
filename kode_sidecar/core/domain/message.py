"""Messages and content blocks: the same structs for model, disk and wire."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kode_sidecar.core.domain.change_set import Range

Role = Literal["system", "user", "assistant", "tool"]
ResultStatus = Literal["running", "ok", "error", "cancelled", "denied"]
ToolKind = Literal["read", "search", "edit", "run", "think", "ask", "other"]

OUR_ORIGINS = ("reminder", "steer", "compaction")
"""`meta.origin` of messages with the role `user` that opened no turn."""
OWN_WORDS = "ownWords"
"""In a reminder's `meta`: true if its text contains nothing from files, programs or the user."""
NEW_TOOLS = "newTools"
"""In `meta`: the names of tools that are offered from this message on, but not before."""
FIND_TOOLS = "find_tools"
"""The tool that finds those that requests do not describe, and calls them."""
REFUSED = "refused"
"""In the `meta` of a failed answer: why the host refused what it was sent (`refused_content`)."""
WORDS = "words"
"""In a summary's `meta`: the id of the oldest message of the user before it that stays as it is."""
DECISIONS = "What became of edits you proposed:\n"
"""How a reminder begins that holds what the user decided, with the user's comments."""
KEEPS = "keeps"
"""In a summary's `meta`: the id of the first message before it that the model still sees."""


class BlockBase(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"
):
    """The fields of every content block. `id` is the `blockId` of events and deltas.

    The server assigns it; a block sent by an editor has none.
    """

    id: str = ""


class Blob(Struct, frozen=True, kw_only=True):
    """A text too large to be sent at once: `kode/blob/read` reads it by its `ref`.

    `bytes` is the length of the whole text in UTF-8, `sha256` its hash in hex.
    """

    ref: str
    bytes: int
    sha256: str


class TextBlock(BlockBase, frozen=True, kw_only=True, tag="text"):
    """Plain text, Markdown where it comes from the model.

    With `blob`, which only the server sets, `text` is only its beginning. `opaque` holds members
    that are sent back to the host that sent them with this text, and to no other.
    """

    text: str
    blob: Blob | None = None
    opaque: dict[str, Any] | None = None


class ThinkingBlock(BlockBase, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning. The text may be empty: some hosts require even that back.

    `signature` is the host's signature of a finished block, sent back unchanged, even "".
    `redacted`: the host hides the text and sends only the signature. `opaque` holds more members
    that are sent back to the host that sent them, and to no other.
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
    """A file or selection that the user attached. `text` is its content when attached.

    Lines count from 1; `end_line` is the last one. `name` is what the user's editor calls it.
    """

    uri: str
    name: str | None = None
    text: str | None = None
    language_id: str | None = None
    start_line: int | None = None
    end_line: int | None = None


class CallLocation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file or folder that a call is about; `range` (whole lines) if the call names lines."""

    uri: str
    range: Range | None = None


def _other() -> ToolKind:
    return "other"


class ToolUseBlock(BlockBase, frozen=True, kw_only=True, tag="tool_use"):
    """A tool call. `tool_use_id` is the model's own id, unchanged.

    `kind`, `title` and `locations` let a client show a card without knowing the tool. While the
    call grows, the title is the tool's; then it describes the call. All three are always sent.
    `invalid_input` holds the raw argument text if it was no JSON object; such a call
    never runs and is sent back to the model with empty arguments and an error result. `opaque`
    holds members that are sent back to the host that sent them, and to no other.
    """

    tool_use_id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    invalid_input: str | None = None
    opaque: dict[str, Any] | None = None
    # Fields with our own factories are always sent; sessions of older versions lack these three.
    kind: ToolKind = field(default_factory=_other)
    title: str = field(default_factory=str)
    locations: tuple[CallLocation, ...] = field(default_factory=tuple[CallLocation, ...])

    @property
    def runs(self) -> str:
        """The tool that runs: `find_tools` calls those that it found."""
        found: object = self.input.get("tool")
        return found if self.name == FIND_TOOLS and isinstance(found, str) else self.name


PromptBlock = TextBlock | ImageBlock | ResourceBlock
ResultContent = TextBlock | ImageBlock


def _ok() -> ResultStatus:
    return "ok"


class ToolResultBlock(BlockBase, frozen=True, kw_only=True, tag="tool_result"):
    """The answer to a tool call. `summary` is the collapsed line of a tool card.

    It starts as `running`, without content. `call_block_id` is the block of the call; absent in
    sessions of older versions. `artifact` is the whole output if the model got only its beginning.
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
    """Return the result for a call that never got one: cancelled, with `why` as its text."""
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
    """Token counts; all are always present.

    `cached_tokens` and `cache_write_tokens` are part of `input_tokens`.

    The former were read from the host's cache, the latter written to it at their own price.
    `reasoning_tokens` are part of `output_tokens`; 0 if the host does not report them.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def written_tokens(self) -> int:
        """What is billed as output: some hosts count reasoning only in the total."""
        return max(self.output_tokens, self.total_tokens - self.input_tokens)

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
    """What failed attempts used: the host charges for them, too.

    `estimated`: the host had not reported all of it when the answer broke off.
    """

    usage: Usage
    cost: Cost | None = None
    cost_usd: float | None = None
    estimated: bool = False

    def plus(self, other: "LostUsage | None") -> "LostUsage":
        """Return the sum; its cost is None for amounts in two currencies."""
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
    one is version 2, and `replaces` is the one it was made from. `created_at` is RFC 3339 in UTC,
    `duration_ms` wall time. With `is_api_error_message` the last block is the text of the error
    that ended its turn. `provider` and `model` say who answered; the model's id is the one that the
    host served. `usage` and `cost` are those of this answer alone; `lost` is what failed or broken
    attempts used.
    """

    id: str
    session_id: str
    role: Role
    # Fields with our own factories are always sent: every message has them.
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
        """The id of its turn; empty outside of a turn."""
        return str(self.meta.get("turnId", ""))

    @property
    def origin(self) -> str:
        """Its special origin; empty for a plain message of the user, the model or a tool."""
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
        """Return the message with changed results; its other blocks stay."""
        content = (
            change(block) if isinstance(block, ToolResultBlock) else block for block in self.content
        )
        return replace(self, content=tuple(content))

    @property
    def is_summary(self) -> bool:
        """Whether it sums up the messages before it."""
        return self.meta.get("origin") == "compaction"

    @property
    def is_prompt(self) -> bool:
        """Whether the user opened a turn with it."""
        return self.role == "user" and self.meta.get("origin") not in OUR_ORIGINS

    @property
    def is_of_user(self) -> bool:
        """Whether it holds the user's own words: a prompt, steering, or decisions on edits."""
        if self.role != "user" or self.is_summary:
            return False
        texts = texts_of(self.content)
        decided = bool(texts) and texts[0].startswith(DECISIONS)
        return decided or self.is_prompt or self.origin == "steer"

    @property
    def waits_for_answer(self) -> bool:
        """Whether the model has yet to answer: it failed, or was never asked."""
        return self.role != "assistant" or self.is_api_error_message
