"""Check the user's context edits against the conversation, and combine them."""

from kode_sidecar.agent.context.left_out import in_force
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.protocol.turn import ContextEditParams, ContextUndoCompactionParams
from kode_sidecar.errors import KodeError


def edited(
    conversation: Conversation,
    edits: ContextEdits,
    params: ContextEditParams | ContextUndoCompactionParams,
) -> ContextEdits:
    """Return the context edits in force after this one.

    Raises KodeError `MessageNotFound`, and `InvalidParams` if a message has two kinds of edit or
    there is no summary to undo.
    """
    if isinstance(params, ContextUndoCompactionParams):
        return _without_summary(conversation, edits, params.summary_message_id)
    named = {"leaveOut": params.leave_out, "pin": params.pin, "restore": params.restore}
    seen: dict[str, str] = {}
    for name, ids in named.items():
        for at, message_id in enumerate(ids):
            path = f"$.{name}[{at}]"
            if message_id not in conversation:
                text = f"There is no message {message_id!r} in this session, at `{path}`; "
                text += "kode/context/inspect names those of the next request."
                raise KodeError("MessageNotFound", text, details={"path": path})
            if seen.setdefault(message_id, name) != name:
                text = f"{message_id!r} stands under `{seen[message_id]}`, too, at `{path}`"
                raise KodeError("InvalidParams", text, details={"path": path})
    return edits.edited(params.leave_out, params.pin, params.restore)


def _without_summary(
    conversation: Conversation, edits: ContextEdits, message_id: str | None
) -> ContextEdits:
    """Return the edits without one summary, by default the newest in force."""
    if message_id is not None:
        if not conversation.get(message_id).is_summary:
            text = "That message is no summary, at `$.summaryMessageId`: without it, the newest is."
            raise KodeError("InvalidParams", text, details={"path": "$.summaryMessageId"})
        return edits.edited(leave_out=[message_id])
    path = in_force(conversation.path(conversation.head), edits)
    summaries = [one.id for one in path if one.is_summary]
    if not summaries:
        text = "No summary stands in the place of earlier messages: there is nothing to take back."
        raise KodeError("InvalidParams", text)
    return edits.edited(leave_out=summaries[-1:])
