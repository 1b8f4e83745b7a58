"""What a model says, normalised over all providers.

A provider yields batches of these, one batch per socket read. Ordering: `ResponseStarted`
first; deltas in the order of the stream; `UsageReported` at most once; the last event is
exactly one of `ResponseFinished` and `ResponseFailed`. `AttemptDropped` takes back
everything since the last `ResponseStarted`; a new `ResponseStarted` follows it, after a
`RetryPlanned` if the host is asked again. `AttemptLost` is never taken back.
"""

from typing import Any, Literal

from msgspec import Struct

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Cost, LostUsage, Usage
from kode_sidecar.core.domain.notice_codes import NoticeCode

# `incomplete`: the stream ended without its end mark; `paused`: the host wants to be asked to go
# on; `other`: a reason we do not know.
FinishReason = Literal[
    "stop", "tool_calls", "length", "content_filter", "paused", "incomplete", "other"
]


class ResponseStarted(Struct, frozen=True, gc=False):
    """The model began to answer. Ids are the provider's; `model` is the one it serves."""

    response_id: str | None
    model: str | None
    provider: str | None = None


class TextDelta(Struct, frozen=True, gc=False):
    text: str


class ThinkingDelta(Struct, frozen=True, gc=False):
    """A piece of reasoning; an empty one opens an empty thinking block."""

    text: str


class ThinkingSigned(Struct, frozen=True, gc=False):
    """The open thinking block is whole, and this is the host's seal on it.

    With `redacted` it is a block of its own, whose text the host does not show. `opaque` is what
    the host wants back with it instead of a signature.
    """

    signature: str | None
    redacted: bool = False
    opaque: dict[str, Any] | None = None


class TextMarked(Struct, frozen=True):
    """The open text is whole, and `opaque` is what the host wants back with it."""

    opaque: dict[str, Any]


class OpaqueData(Struct, frozen=True):
    """What the host wants back with the call of this `index`; None: with its reasoning.

    Reasoning of which nothing was told gets a block of its own.
    """

    data: dict[str, Any]
    index: int | None = None


class ToolUseStarted(Struct, frozen=True, gc=False):
    """A tool call opened. `index` names it within the response, whatever the wire did."""

    index: int
    tool_use_id: str
    name: str


class ToolUseDelta(Struct, frozen=True, gc=False):
    """A piece of the raw JSON text of the arguments."""

    index: int
    json: str


class UsageReported(Struct, frozen=True):
    usage: Usage
    cost: Cost | None = None
    cost_usd: float | None = None


class ModelNotice(Struct, frozen=True):
    """Something the user should be told once, such as a retired model id."""

    code: NoticeCode
    message: str


class AttemptDropped(Struct, frozen=True):
    """The attempt failed after something was shown; another one follows."""

    reason: str


class AttemptLost(Struct, frozen=True):
    """The attempt came to nothing, and has to be paid for."""

    lost: LostUsage


class RetryPlanned(Struct, frozen=True):
    """The model is asked again in `seconds`; `attempt` counts from 1. Nothing comes until then.

    `code` is that of the error that came instead of an answer.
    """

    reason: str
    seconds: float
    attempt: int
    code: str = ""


class ResponseFinished(Struct, frozen=True):
    """The end of the answer. `raw_reason` is the provider's own word."""

    reason: FinishReason
    raw_reason: str | None = None


class ResponseFailed(Struct, frozen=True):
    """No answer, or a broken one; all retries are spent."""

    error: ErrorInfo


ModelEvent = (
    ResponseStarted
    | TextDelta
    | ThinkingDelta
    | ThinkingSigned
    | TextMarked
    | OpaqueData
    | ToolUseStarted
    | ToolUseDelta
    | UsageReported
    | ModelNotice
    | AttemptDropped
    | AttemptLost
    | RetryPlanned
    | ResponseFinished
    | ResponseFailed
)
