"""kode-sidecar: the agent back end that an editor spawns over stdio."""

from collections.abc import Callable

TYPE_CHECKING = False  # that of `typing` costs what the front door has no time for
if TYPE_CHECKING:
    from kode_sidecar.core.domain.event_parts import Mode

__version__ = "0.1.0"
__all__ = ["run_ide_chat", "run_ide_chat_async"]


def run_ide_chat(
    user_input: str,
    conversation_id: str | None = None,
    focus_message_id: str | None = None,
    meta: dict[str, object] | None = None,
    *,
    model: str | None = None,
    agent: str | None = None,
    mode: "Mode | None" = None,
    on_text: Callable[[str], None] | None = None,
) -> dict[str, object]:
    """Say something in a conversation and wait for the answer; blocks, without an editor.

    Settings and state folder are the user's own, as behind the editor. Without `conversation_id`
    a new conversation begins; without `focus_message_id` its newest message is answered, else that
    one. `meta` is kept with the prompt, and with a new conversation; `projectRoot` in it, a path,
    is the folder that the tools may read. `model`, `agent` and `mode` are those of the settings
    unless given; the agent is that of a new conversation. `on_text` gets the text of the answer as
    it grows; an attempt that broke off may be told twice, so the result is what counts.

    Returns `{conversation_id, user_message: {id, content}, assistant_message: {id, content},
    stop_reason, usage, cost, proposed_edits}`, contents as text. An edit that is proposed has a
    path, hunks and the unified diff of its change set; no file is written. Raises
    `errors.KodeError`, whose `code` says what is wrong: `AuthRequired`, `SessionNotFound`,
    `MessageNotFound`, `ReadOnly` while another process has the conversation, `Storage`, or how the
    turn failed. Not to be called from a running event loop: `run_ide_chat_async` is for that.
    """
    from kode_sidecar import ide_chat  # noqa: PLC0415

    said = (user_input, conversation_id, focus_message_id, meta or {})
    return ide_chat.converse_blocking(ide_chat.Prompt(*said, model, agent, mode, on_text))


async def run_ide_chat_async(
    user_input: str,
    conversation_id: str | None = None,
    focus_message_id: str | None = None,
    meta: dict[str, object] | None = None,
    *,
    model: str | None = None,
    agent: str | None = None,
    mode: "Mode | None" = None,
    on_text: Callable[[str], None] | None = None,
) -> dict[str, object]:
    """`run_ide_chat` for programs with an event loop; `on_text` is called on it."""
    from kode_sidecar import ide_chat  # noqa: PLC0415

    said = (user_input, conversation_id, focus_message_id, meta or {})
    return await ide_chat.converse(ide_chat.Prompt(*said, model, agent, mode, on_text))
