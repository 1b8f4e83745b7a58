"""The events of a model's answer, the same for all providers.

A provider yields batches of these, one batch per socket read. Ordering: `ResponseStarted`
first, after a `RequestHeld` and its `RequestSent` if it had to wait; deltas in the order of the
stream; `UsageReported` at most once; the last event is exactly one of `ResponseFinished` and
`ResponseFailed`. `AttemptDropped` takes back everything since the last `ResponseStarted`; a new
`ResponseStarted` follows it, after a `RetryPlanned` if the host is asked again. `AttemptLost`
always stays.
"""

from typing import Any, Literal

from msgspec import Struct

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Cost, LostUsage, Usage
from kode_sidecar.core.domain.notice_codes import NoticeCode

# `incomplete`: the stream ended without its end mark; `paused`: the host waits for a request to
# continue; `other`: a reason we do not know.
FinishReason = Literal[
    "stop", "tool_calls", "length", "content_filter", "paused", "incomplete", "other"
]


class ResponseStarted(Struct, frozen=True, gc=False):
    """The model has begun to answer. Ids are the provider's; `model` is the one it serves."""

    response_id: str | None
    model: str | None
    provider: str | None = None


class TextDelta(Struct, frozen=True, gc=False):
    text: str


class ThinkingDelta(Struct, frozen=True, gc=False):
    """A piece of reasoning; an empty one opens an empty thinking block."""

    text: str


class ThinkingSigned(Struct, frozen=True, gc=False):
    """The open thinking block is complete; `signature` is the host's.

    With `redacted` it is a separate block whose text the host hides. `opaque` is what the host
    requires back instead of a signature.
    """

    signature: str | None
    redacted: bool = False
    opaque: dict[str, Any] | None = None


class TextMarked(Struct, frozen=True):
    """The open text is complete; `opaque` is what the host requires back with it."""

    opaque: dict[str, Any]


class OpaqueData(Struct, frozen=True):
    """Data that the host requires back with the call of this `index`; None: with its reasoning.

    If no reasoning was sent, an empty thinking block is added for it.
    """

    data: dict[str, Any]
    index: int | None = None


class ToolUseStarted(Struct, frozen=True, gc=False):
    """A tool call has begun. `index` identifies it within the response, for every provider."""

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
    """Something to report to the user once, such as a retired model id."""

    code: NoticeCode
    message: str


class AttemptDropped(Struct, frozen=True):
    """The attempt failed after something was shown; another one follows."""

    reason: str


class AttemptLost(Struct, frozen=True):
    """The attempt failed, but the host charges for it."""

    lost: LostUsage


class RetryPlanned(Struct, frozen=True):
    """The model is asked again in `seconds`; `attempt` counts from 1. No event comes until then.

    `code` is that of the error that came instead of an answer.
    """

    reason: str
    seconds: float
    attempt: int
    code: str = ""


class RequestHeld(Struct, frozen=True):
    """The request is not sent yet; `RequestSent` follows.

    `limited`: the host's rate limit lets it go in `seconds`. `queued`: the host answers others of
    ours first.
    """

    kind: Literal["limited", "queued"]
    reason: str
    seconds: float | None = None


class RequestSent(Struct, frozen=True):
    """A request that was held is sent now."""


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
    | RequestHeld
    | RequestSent
    | ResponseFinished
    | ResponseFailed
)
