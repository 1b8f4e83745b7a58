"""kode-sidecar: the agent back end that an editor spawns over stdio."""

__version__ = "0.1.0"
__all__ = ["run_ide_chat"]


def run_ide_chat(
    user_input: str,
    conversation_id: str | None = None,
    focus_message_id: str | None = None,
    meta: dict[str, object] | None = None,
) -> dict[str, object]:
    """Say something in a conversation and wait for the answer; blocks, without an editor.

    Settings and state folder are the user's own, as behind the editor. Without `conversation_id`
    a new conversation begins; without `focus_message_id` its newest message is answered, else that
    one. `meta` is kept with the prompt, and with a new conversation; `projectRoot` in it, a path,
    is the folder that the tools may read.

    Returns `{conversation_id, user_message: {id, content}, assistant_message: {id, content}}`,
    contents as text. Raises `errors.KodeError`, whose `code` says what is wrong: `AuthRequired`,
    `SessionNotFound`, `MessageNotFound`, `ReadOnly` while another process has the conversation,
    `Storage`, or how the turn failed. Not to be called from a running event loop.
    """
    from kode_sidecar import ide_chat  # noqa: PLC0415

    return ide_chat.run_ide_chat(user_input, conversation_id, focus_message_id, meta)
