"""The tree of a conversation as the editor is shown it."""

from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Message, TextBlock, ToolUseBlock
from kode_sidecar.protocol.session import TreeNode

_TEXT_CHARS = 120


def tree_node(message: Message, conversation: Conversation) -> TreeNode:
    """One node. A message whose parent was lost is a root."""
    texts = (block.text for block in message.content if isinstance(block, TextBlock))
    lines = (line.strip() for text in texts for line in text.splitlines())
    return TreeNode(
        message_id=message.id,
        role=message.role,
        parent_id=conversation.parent_of(message.id),
        depth=message.depth,
        version=message.version,
        created_at=message.created_at,
        turn_id=str(message.meta.get("turnId", "")),
        origin=str(message.meta.get("origin", "")),
        text=next((line for line in lines if line), "")[:_TEXT_CHARS],
        tools=tuple(block.name for block in message.content if isinstance(block, ToolUseBlock)),
        is_api_error_message=message.is_api_error_message,
    )
