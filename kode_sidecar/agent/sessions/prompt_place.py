"""Find where a prompt goes in the tree, and check if a turn may begin without one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UnsetType

from kode_sidecar.core.domain.agent_event import TurnCompleted
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import Message
from kode_sidecar.errors import invalid_at

_NOT_DONE = frozenset(
    {"max_tool_rounds", "max_tokens", "budget", "cancelled", "interrupted", "error"}
)


@dataclass(frozen=True)
class PromptPlace:
    """The parent of a prompt (None: it comes first); `replaces` is the prompt it edits."""

    parent_id: str | None
    replaces: str | None = None
    version: int | None = None

    @property
    def known(self) -> Mapping[str, Any]:
        """The fields that its place gives the prompt's message."""
        if self.replaces is None:
            return {}
        return {"replaces": self.replaces, "version": self.version}


def prompt_place(
    conversation: Conversation, parent_id: str | UnsetType | None, replaces: str | None
) -> PromptPlace:
    """Return where a prompt goes: below the head if both ids are missing.

    Raises KodeError `MessageNotFound`, `InvalidParams`.
    """
    if replaces is None:
        if isinstance(parent_id, UnsetType):
            return PromptPlace(conversation.head)
        conversation.path(parent_id)  # raises if it does not exist
        return PromptPlace(parent_id)
    edited = conversation.get(replaces)
    if not edited.is_prompt:
        raise invalid_at(
            "$.replaces", "that message is no prompt of the user, which alone is edited."
        )
    above = _above(conversation, edited)
    if not isinstance(parent_id, UnsetType) and parent_id not in (above, edited.parent_id):
        raise invalid_at(
            "$.parentId", "the prompt that is replaced has another parent: leave it out."
        )
    return PromptPlace(above, replaces, _next_version(conversation, edited))


def _above(conversation: Conversation, prompt: Message) -> str | None:
    """Return the parent of the prompt's turn, above the reminders that belong to the turn."""
    parent = conversation.parent_of(prompt.id)
    while parent is not None:
        message = conversation.get(parent)
        if message.origin != "reminder" or message.turn_id != prompt.turn_id:
            break
        parent = conversation.parent_of(parent)
    return parent


def _next_version(conversation: Conversation, edited: Message) -> int:
    """Return 1 + the highest version in the family of edits that `edited` belongs to."""
    first = edited.id
    origin = {one.id: one.replaces for one in conversation.messages if one.replaces is not None}
    while first in origin:
        first = origin[first]
    beside = conversation.children(conversation.parent_of(edited.id))
    family = {first, *(one.id for one in beside if one.is_prompt)}
    for message in conversation.messages:  # an edit is younger than what it was made from
        if message.replaces in family:
            family.add(message.id)
    versions = (one.version for one in conversation.messages if one.id in family)
    return 1 + max(versions)


def may_go_on(last: TurnCompleted | None) -> bool:
    """Return whether the last turn ended before the model was done."""
    return last is not None and last.stop_reason in _NOT_DONE


def check_may_go_on(conversation: Conversation, parent_id: str | None, *, stopped: bool) -> None:
    """Raise KodeError `InvalidParams` unless a turn without a prompt may begin below a message.

    `stopped`: the last turn ended before the model was done, and the head is where it ended.
    """
    if parent_id is not None and conversation.get(parent_id).waits_for_answer:
        return
    if stopped and parent_id is not None and parent_id == conversation.head:
        return
    raise invalid_at(
        "$.input",
        "the prompt is empty. Send text; an empty prompt only goes on after a turn that"
        " stopped with max_tool_rounds, was cancelled or interrupted, or below a message without an"
        " answer.",
    )
