"""The conversation as one turn sees it: where messages go, and the next request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kode_sidecar.context.editor_context import EditorNote
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Block, Message, Role, TextBlock
from kode_sidecar.kernel.contracts import (
    Clock,
    Incoming,
    ModelRequest,
    NewId,
    ToolChoice,
    ToolSpec,
)
from kode_sidecar.main_session.totals import Totals

BuildRequest = Callable[[Sequence[Message], Sequence[ToolSpec], ToolChoice], ModelRequest]


_EDITOR_CONTEXT = "editorContext"


class MessageLog(Protocol):
    """Where finished messages are kept, `records.conversation_store`."""

    def append(self, message: Message) -> None:
        """Write one message. Raises KodeError `Storage`."""
        ...


class TurnContext:
    """`kernel.contracts.Context` over the session's tree, from one leaf on.

    `build` gets the messages of this turn, oldest first. Every message carries
    `meta.turnId`, so that a branch knows which turns made it.
    """

    def __init__(
        self,
        *,
        session_id: str,
        turn_id: str,
        conversation: Conversation,
        log: MessageLog,
        clock: Clock,
        new_id: NewId,
        parent_id: str | None,
        build: BuildRequest,
        reminders: Callable[[], str | None],
    ) -> None:
        self.session_id = session_id
        self._turn_id = turn_id
        self._conversation = conversation
        self._log = log
        self._clock = clock
        self._new_id = new_id
        self._leaf = parent_id
        self._build = build
        self._reminders = reminders
        self._steering: list[Incoming] = []
        self._added: list[Message] = []
        self.totals = Totals()

    @property
    def leaf_id(self) -> str | None:
        """The newest message of this turn; before the first one, what it grows from."""
        return self._leaf

    @property
    def messages(self) -> Sequence[Message]:
        """What this turn has committed so far, oldest first."""
        return tuple(self._added)

    def open(self, role: Role, meta: Mapping[str, Any]) -> Message:
        """A new, empty message below the newest."""
        return Message(
            id=self._new_id("message"),
            session_id=self.session_id,
            role=role,
            parent_id=self._leaf,
            depth=self._conversation.depth_below(self._leaf),
            version=self._conversation.next_version(self._leaf, role) if role == "user" else 1,
            created_at=self._clock.timestamp(),
            meta={**meta, "turnId": self._turn_id},
        )

    def commit(self, message: Message) -> None:
        """Write the finished message and make it the newest. Raises KodeError `Storage`."""
        self._log.append(message)
        self._conversation.add(message)
        self._leaf = message.id
        self._added.append(message)
        self.totals.add_message(message)

    def request(self, tools: Sequence[ToolSpec], tool_choice: ToolChoice) -> ModelRequest:
        """The exact next request."""
        return self._build(self._added, tools, tool_choice)

    def steer(self, blocks: tuple[Block, ...]) -> None:
        """Input from the user for the next step of this turn."""
        self._steering.append(Incoming("user", blocks, {"origin": "steer"}))

    def take_steering(self) -> Sequence[Incoming]:
        """What the user said and no step has taken yet."""
        taken, self._steering = self._steering, []
        return taken

    def take_incoming(self) -> Sequence[Incoming]:
        """Reminders first, then what the user said meanwhile."""
        taken = self.take_steering()
        reminder = self._reminders()
        return taken if reminder is None else [reminder_input(reminder), *taken]

    def wants_another_step(self) -> bool:
        """Has the user steered since the last request?"""
        return bool(self._steering)


def reminder_input(text: str, editor_context: Mapping[str, Any] | None = None) -> Incoming:
    """What the sidecar tells the model on its own account, as a persisted message.

    `editor_context` is what it says of the editor.
    """
    meta: dict[str, Any] = {"origin": "reminder"}
    if editor_context is not None:
        meta[_EDITOR_CONTEXT] = editor_context
    return Incoming("user", (TextBlock(text=text),), meta)


def prompt_reminder(
    decided: str | None, note: EditorNote | None, window: Sequence[Message]
) -> Incoming | None:
    """What goes before a prompt: what was decided about edits, and what the user looks at.

    The latter only if the messages that the model gets do not say so already.
    """
    said = (message.meta.get(_EDITOR_CONTEXT) for message in reversed(window))
    told = next((context for context in said if context is not None), None)
    if note is None or note.meta == told:
        return None if decided is None else reminder_input(decided)
    text = note.text if decided is None else f"{decided}\n\n{note.text}"
    return reminder_input(text, note.meta)
