"""The next request, shown part by part."""

import hashlib
from collections.abc import Iterable

import msgspec

from kode_sidecar.context.fitting import Fitted
from kode_sidecar.context.token_count import message_weight, shares, text_weight, tool_weight
from kode_sidecar.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.kernel.contracts import Incoming
from kode_sidecar.protocol.turn import ContextInspectResult, Segment, SegmentOrigin
from kode_sidecar.turns.services import EncodedRequest

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
    fitted: Fitted, encoded: EncodedRequest, *, compaction_due: bool, with_body: bool
) -> ContextInspectResult:
    """The request with its parts and their tokens."""
    request, size = fitted.request, fitted.size
    tools = "\n".join(
        f"{tool.name}: {tool.description}\n{msgspec.json.encode(tool.schema).decode()}"
        for tool in request.tools
    )
    fixed: list[tuple[SegmentOrigin, str, float]] = [
        ("system", request.system, text_weight(request.system)),
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
        segments.append(msgspec.structs.replace(segment, message_id=message.id or None))
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
    named = _ORIGINS.get(str(message.meta.get("origin", "")))
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
