"""Messages and content blocks: the one shape shared by model, disk and wire."""

from typing import Any, Literal

from msgspec import Struct, field

Role = Literal["system", "user", "assistant", "tool"]
ResultStatus = Literal["ok", "error", "cancelled", "denied"]


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

    With `blob`, which only the server sets, `text` is no more than the head of it.
    """

    text: str
    blob: Blob | None = None


class ThinkingBlock(BlockBase, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning. An empty text is a thinking block too: some hosts demand it back.

    `signature` is the host's seal on a finished block and goes back to it unchanged, "" as well.
    `redacted`: the host hides the text, and the signature is all there is of it.
    """

    text: str
    signature: str | None = None
    redacted: bool = False


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


class ToolUseBlock(BlockBase, frozen=True, kw_only=True, tag="tool_use"):
    """A tool call. `tool_use_id` is the model's own id, kept verbatim.

    `invalid_input` holds the raw argument text when it was no JSON object; such a call
    is never run and goes back to the model with empty arguments and an error result.
    """

    tool_use_id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    invalid_input: str | None = None


ResultContent = TextBlock | ImageBlock


class ToolResultBlock(BlockBase, frozen=True, kw_only=True, tag="tool_result"):
    """The answer to a tool call. `summary` is the collapsed line of a tool card.

    `artifact` is the whole output where the model got no more than the beginning of it.
    """

    tool_use_id: str
    content: tuple[ResultContent, ...] = ()
    is_error: bool = False
    status: ResultStatus = "ok"
    summary: str = ""
    artifact: Blob | None = None


Block = TextBlock | ThinkingBlock | ImageBlock | ResourceBlock | ToolUseBlock | ToolResultBlock


class Usage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Token counts. `cached_tokens` and `cache_write_tokens` are part of `input_tokens`.

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
        """The sum of two usages."""
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


class Message(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One node of a conversation tree.

    `parent_id` is None at a root. `version` counts the siblings that replace each other
    (an edited prompt is version 2). `created_at` is RFC 3339 in UTC, `duration_ms` wall time.
    With `is_api_error_message` the last block is the text of the error that ended its turn.
    `provider` and `model` say who answered; the model's id is the one that was served.
    """

    id: str
    session_id: str
    role: Role
    content: tuple[Block, ...] = ()
    parent_id: str | None = None
    depth: int = 0
    version: int = 1
    created_at: str = ""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: Usage | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    duration_ms: int | None = None
    response_id: str | None = None
    provider: str | None = None
    model: str | None = None
    is_api_error_message: bool = False

    @property
    def waits_for_answer(self) -> bool:
        """Whether the model has yet to say something about it: it failed, or was never asked."""
        return self.role != "assistant" or self.is_api_error_message
