"""The next request, shown part by part."""

import hashlib
from collections.abc import Collection, Iterable

import msgspec

from kode_sidecar.agent.context.fitting import Fitted
from kode_sidecar.agent.context.token_count import (
    message_weight,
    shares,
    system_weight,
    tool_weight,
)
from kode_sidecar.agent.turns.services import RequestBody
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import Incoming
from kode_sidecar.core.protocol.turn import (
    ContextEditResult,
    ContextInspectResult,
    Segment,
    SegmentOrigin,
)

_HEAD_CHARS = 200
_ORIGINS: dict[str, SegmentOrigin] = {
    "reminder": "reminder",
    "steer": "steer",
    "compaction": "summary",
}


def unwritten(incoming: Incoming) -> Message:
    """A message that would be written, and is not."""
    return Message(
        id="",
        session_id="",
        role=incoming.role,
        content=incoming.content,
        meta={"unwritten": True, **incoming.meta},
    )


def inspection(
    fitted: Fitted,
    encoded: RequestBody,
    *,
    compaction_due: bool,
    with_body: bool,
    pinned: Collection[str] = (),
) -> ContextInspectResult:
    """The request with its parts and their tokens."""
    request, size = fitted.request, fitted.size
    tools = "\n".join(
        f"{tool.name}: {tool.description}\n{msgspec.json.encode(tool.schema).decode()}"
        for tool in request.tools
    )
    fixed: list[tuple[SegmentOrigin, str, float]] = [
        ("system", request.system, system_weight(request.system)),
        ("tools", tools, sum(map(tool_weight, request.tools))),
    ]
    weights = [weight for _, _, weight in fixed] + [*map(message_weight, request.messages)]
    tokens = shares(size, weights)
    segments = [
        _segment(origin, text, tokens[at], counted=size.counted > 0)
        for at, (origin, text, _) in enumerate(fixed)
    ]
    for at, message in enumerate(request.messages):
        segment = _segment(
            _origin(message),
            "\n".join(_texts(message.content)),
            tokens[len(fixed) + at],
            counted=at < size.counted,
        )
        stays = message.id in pinned
        named = msgspec.structs.replace(segment, message_id=message.id or None, pinned=stays)
        segments.append(named)
    return ContextInspectResult(
        model=encoded.model,
        tokens=size.tokens,
        safe_tokens=size.safe,
        fits=fitted.fits,
        segments=tuple(segments),
        bytes=len(encoded.body),
        sha256=hashlib.sha256(encoded.body).hexdigest(),
        counted=size.counted > 0,
        window=fitted.window,
        compaction_due=compaction_due,
        trimmed=fitted.is_trimmed,
        body=encoded.body.decode() if with_body else None,
    )


def left_out(messages: Iterable[Message]) -> tuple[Segment, ...]:
    """What the user left out, with the tokens that it would take about."""
    return tuple(
        msgspec.structs.replace(
            _segment(
                _origin(message),
                "\n".join(_texts(message.content)),
                round(message_weight(message)),
                counted=False,
            ),
            message_id=message.id,
        )
        for message in messages
    )


def edit_result(edits: ContextEdits, before: Fitted, after: Fitted) -> ContextEditResult:
    """What an edit of the context did to the next request, and to what its host has cached."""
    old, new = before.request.messages, after.request.messages
    pairs = enumerate(zip(old, new, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))
    weights = [*map(message_weight, new)]
    rest = sum(weights[same:]) if same < max(len(old), len(new)) else 0.0
    return ContextEditResult(
        edits=edits,
        tokens_before=before.size.tokens,
        tokens_after=after.size.tokens,
        reread_tokens=round(after.size.tokens * rest / after.size.weight),
    )


def _segment(origin: SegmentOrigin, text: str, tokens: int, *, counted: bool) -> Segment:
    size = len(text.encode("utf-8", "replace"))
    return Segment(
        origin=origin, tokens=tokens, bytes=size, head=text[:_HEAD_CHARS], counted=counted
    )


def _origin(message: Message) -> SegmentOrigin:
    if message.role == "assistant":
        return "answer"
    if message.role == "tool":
        return "result"
    named = _ORIGINS.get(message.origin)
    if named is not None:
        return named
    return "prompt" if message.id or message.meta.get("unwritten") else "note"


def _texts(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        match block:
            case ToolResultBlock():
                yield from _texts(block.content)
            case ToolUseBlock():
                yield f"{block.name} {msgspec.json.encode(block.input).decode()}"
            case ResourceBlock():
                yield f"{block.uri}\n{block.text or ''}"
            case ImageBlock():
                yield f"[{block.media_type}]"
            case _:
                yield block.text
