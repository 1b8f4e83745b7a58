"""Converts what a user sends to prompt blocks, and saved messages to updates that show them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    PromptBlock,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.domain.permission import EDIT_TOOLS
from kode_sidecar.core.protocol.change_set import ChangeSetView
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.dialect import short_message_id
from kode_sidecar.servers.acp.tool_cards import (
    PLAN_TOOL,
    Json,
    diff_content,
    plan_entry,
    tool_call,
    tool_result,
)
from kode_sidecar.servers.acp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

_OURS = ("reminder", "compaction")


def prompt_input(content: Sequence[Content]) -> tuple[PromptBlock, ...]:
    """Return the blocks of a prompt. Raises KodeError `InvalidParams` for unsupported content."""
    return tuple(_input(block, position) for position, block in enumerate(content))


def _input(block: Content, position: int) -> PromptBlock:
    match block:
        case TextContent():
            return TextBlock(text=block.text)
        case ImageContent():
            return ImageBlock(media_type=block.mime_type, data=block.data)
        case ResourceLink():
            return ResourceBlock(uri=block.uri, name=block.title or block.name or None)
        case EmbeddedResource(resource=resource) if resource.text is not None:
            return ResourceBlock(uri=resource.uri, text=resource.text)
        case EmbeddedResource(resource=resource):
            kind = resource.mime_type or ""
            if kind.startswith("image/") and resource.blob is not None:
                return ImageBlock(media_type=kind, data=resource.blob)
        case _:
            pass
    text = f"$.prompt[{position}]: send text, images, or resources that are text or images."
    raise KodeError("InvalidParams", text, details={"path": f"$.prompt[{position}]"})


def replayed(
    messages: Sequence[Message], change_sets: Sequence[ChangeSetView], folder: Path
) -> Iterator[Json]:
    """Yield the updates that show a saved conversation, message by message along its path."""
    diffs = _Diffs(change_sets)
    names: dict[str, tuple[str, str, list[Json]]] = {}
    plans: dict[str, ToolUseBlock] = {}
    for message in messages:
        if message.origin in _OURS or message.role == "system":
            continue
        for block in message.content:
            match block:
                case ToolUseBlock(name=name) if name == PLAN_TOOL:
                    plans[block.tool_use_id] = block
                case ToolResultBlock() if block.tool_use_id in plans:
                    yield from _plan(plans.pop(block.tool_use_id), block)
                case ToolUseBlock():
                    kept = diffs.take(message, block)
                    names[block.tool_use_id] = block.id, block.name, kept
                    call = {"toolCallId": block.id, **tool_call(block, folder), "content": kept}
                    yield {"sessionUpdate": "tool_call", **call, "status": "pending"}
                case ToolResultBlock() if block.tool_use_id in names:
                    card_id, name, kept = names.pop(block.tool_use_id)
                    result = tool_result(name, block, kept)
                    yield {"sessionUpdate": "tool_call_update", "toolCallId": card_id, **result}
                case _:
                    yield from _chunk(message, block)
    for card_id, _, _ in names.values():  # calls whose turn was cut off
        yield {"sessionUpdate": "tool_call_update", "toolCallId": card_id, "status": "failed"}


def _plan(call: ToolUseBlock, result: ToolResultBlock) -> Iterator[Json]:
    """Yield the plan that a call has written."""
    with suppress(msgspec.ValidationError):
        steps = msgspec.convert(call.input.get("items"), list[dict[str, str]])
        if result.status == "ok":
            entries = [plan_entry(one.get("text", ""), one.get("state", "")) for one in steps]
            yield {"sessionUpdate": "plan", "entries": entries}


def _chunk(message: Message, block: Block) -> Iterator[Json]:
    kind = "user_message_chunk" if message.role == "user" else "agent_message_chunk"
    match block:
        case TextBlock():
            content: Json = {"type": "text", "text": block.text}
        case ThinkingBlock() if block.text:
            kind, content = "agent_thought_chunk", {"type": "text", "text": block.text}
        case ImageBlock():
            content = {"type": "image", "mimeType": block.media_type, "data": block.data}
        case ResourceBlock() if block.text is not None:
            content = {"type": "resource", "resource": {"uri": block.uri, "text": block.text}}
        case ResourceBlock():
            name = block.name or block.uri.rpartition("/")[2] or block.uri
            content = {"type": "resource_link", "uri": block.uri, "name": name}
        case _:
            return
    yield {"sessionUpdate": kind, "messageId": short_message_id(message.id), "content": content}


class _Diffs:
    """Gives the hunks of a session to the first call of their turn that edits their file."""

    def __init__(self, change_sets: Sequence[ChangeSetView]) -> None:
        self._left = {one.turn_id: list(one.files) for one in change_sets}

    def take(self, message: Message, block: ToolUseBlock) -> list[Json]:
        if block.name not in EDIT_TOOLS:
            return []
        files = self._left.get(message.turn_id, [])
        path = block.input.get("path")
        mine = [file for file in files if path is None or file.path.endswith(str(path))]
        for file in mine:
            files.remove(file)
        return [diff_content(file, hunk) for file in mine for hunk in file.hunks]
