"""kode-sidecar: the agent back end that an editor spawns over stdio."""

from collections.abc import Callable, Mapping

TYPE_CHECKING = False  # that of `typing` costs time that the handshake does not have
if TYPE_CHECKING:
    from typing import Any

    from kode_sidecar.core.domain.event_parts import Mode
    from kode_sidecar.ide_chat import ChatResult
    from kode_sidecar.infrastructure.providers.model_answer import ModelAnswer

__version__ = "0.1.0"
__all__ = ["run_ide_chat", "run_ide_chat_async", "send_message", "send_message_async"]


def run_ide_chat(
    user_input: str,
    conversation_id: str | None = None,
    focus_message_id: str | None = None,
    meta: Mapping[str, object] | None = None,
    *,
    model: str | None = None,
    agent: str | None = None,
    mode: "Mode | None" = None,
    on_text: Callable[[str], None] | None = None,
    on_event: "Callable[[dict[str, Any]], None] | None" = None,
) -> "ChatResult":
    """Say something in a conversation and wait for the answer; blocks, without an editor.

    Settings and state folder are the user's own, as behind the editor. Without `conversation_id`
    a new conversation begins; without `focus_message_id` its newest message is answered, else that
    one. `meta` is saved with the prompt, and with a new conversation; `projectRoot` in it, a path,
    is the folder that the tools may read. `model`, `agent` and `mode` are those of the settings
    unless given; the agent is that of a new conversation. Mode `ask` is refused, because nobody is
    there to decide. `on_text` gets the text of the answer as it grows; an attempt that broke off
    may come twice, so the result is what counts. `on_event` gets every event of the session as it
    is on the wire: blocks, tool calls and their results, proposed edits, notices.

    Returns `{conversation_id, user_message: {id, content}, assistant_message: {id, content},
    stop_reason, usage, cost, proposed_edits}`, contents as text. An edit that is proposed has a
    path, hunks and the unified diff of its change set; no file is written. Raises
    `errors.KodeError`, whose `code` says what is wrong: `AuthRequired`, `SessionNotFound`,
    `MessageNotFound`, `InvalidParams` for a mode, `ReadOnly` while another call or process has the
    conversation, `Storage`, or how the turn failed. Raises RuntimeError in a running event loop:
    `run_ide_chat_async` is for that.
    """
    from kode_sidecar import ide_chat  # noqa: PLC0415

    said = (user_input, conversation_id, focus_message_id, meta or {})
    prompt = ide_chat.Prompt(
        *said, model=model, agent=agent, mode=mode, on_text=on_text, on_event=on_event
    )
    return ide_chat.converse_blocking(prompt)


async def run_ide_chat_async(
    user_input: str,
    conversation_id: str | None = None,
    focus_message_id: str | None = None,
    meta: Mapping[str, object] | None = None,
    *,
    model: str | None = None,
    agent: str | None = None,
    mode: "Mode | None" = None,
    on_text: Callable[[str], None] | None = None,
    on_event: "Callable[[dict[str, Any]], None] | None" = None,
) -> "ChatResult":
    """`run_ide_chat` for programs with an event loop; `on_text` and `on_event` run on it."""
    from kode_sidecar import ide_chat  # noqa: PLC0415

    said = (user_input, conversation_id, focus_message_id, meta or {})
    prompt = ide_chat.Prompt(
        *said, model=model, agent=agent, mode=mode, on_text=on_text, on_event=on_event
    )
    return await ide_chat.converse(prompt)


def send_message(text: str, *, model: str | None = None, system: str = "") -> "ModelAnswer":
    """Send one message to a model and wait for the whole answer: no conversation, no tools.

    Nothing is saved, and no budget counts it. The answer has `content` as blocks, `usage`, `cost`,
    `finish_reason` and more. Raises `errors.KodeError`, and RuntimeError in a running event loop:
    `send_message_async` is for that.
    """
    from kode_sidecar import ide_chat  # noqa: PLC0415

    return ide_chat.ask_model_blocking(text, model=model, system=system)


async def send_message_async(
    text: str, *, model: str | None = None, system: str = ""
) -> "ModelAnswer":
    """`send_message` for programs with an event loop."""
    from kode_sidecar import ide_chat  # noqa: PLC0415

    return await ide_chat.ask_model(text, model=model, system=system)
