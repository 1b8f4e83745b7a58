"""The tree of a conversation: every message has one parent, like a commit in git."""

from collections.abc import Iterable, KeysView, Sequence

from kode_sidecar.core.domain.message import Message, Role
from kode_sidecar.errors import KodeError


class Conversation:
    """Messages by id, with their branches and one head.

    Loading is tolerant: a message whose parent does not precede it (its line was damaged) becomes a
    root, and of two messages with one id the first counts. Adding is strict.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: dict[str, Message] = {}
        self._parents: dict[str, str | None] = {}
        self._children: dict[str | None, list[Message]] = {}
        self._head: str | None = None
        for message in messages:
            if message.id not in self._messages:
                self._insert(message)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def ids(self) -> KeysView[str]:
        """The ids of all messages."""
        return self._messages.keys()

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    @property
    def head(self) -> str | None:
        """Id of the message that a new turn starts below; None before the first message."""
        return self._head

    def set_head(self, message_id: str | None) -> None:
        """Move the head. Raises KodeError `MessageNotFound`."""
        self._check(message_id)
        self._head = message_id

    def add(self, message: Message) -> None:
        """Insert a message below its parent and make it the head.

        Raises KodeError `MessageNotFound` for an unknown parent, ValueError for an id in use.
        """
        self._check(message.parent_id)
        if message.id in self._messages:
            raise ValueError(f"message id {message.id!r} is in use")
        self._insert(message)

    def get(self, message_id: str) -> Message:
        """Return a message. Raises KodeError `MessageNotFound`."""
        self._check(message_id)
        return self._messages[message_id]

    def path(self, leaf_id: str | None) -> list[Message]:
        """Return the messages from the root to `leaf_id`, both included; empty for None.

        Raises KodeError `MessageNotFound`.
        """
        self._check(leaf_id)
        found: list[Message] = []
        step = leaf_id
        while step is not None:
            found.append(self._messages[step])
            step = self._parents[step]
        found.reverse()
        return found

    def parent_of(self, message_id: str) -> str | None:
        """Return the id of the parent, None at a root. Raises KodeError `MessageNotFound`."""
        self._check(message_id)
        return self._parents[message_id]

    def children(self, parent_id: str | None) -> Sequence[Message]:
        """Return the messages right below `parent_id` (None: the roots), oldest first.

        Raises KodeError `MessageNotFound`.
        """
        self._check(parent_id)
        return tuple(self._children.get(parent_id, ()))

    @property
    def newest(self) -> str | None:
        """Id of the most recently written message, independent of the head."""
        return next(reversed(self._messages), None)

    @property
    def messages(self) -> Sequence[Message]:
        """All messages, in the order written."""
        return tuple(self._messages.values())

    def leaves(self) -> Sequence[Message]:
        """Return the last message of each branch, oldest first."""
        return tuple(one for one in self._messages.values() if one.id not in self._children)

    def next_version(self, parent_id: str | None, role: Role) -> int:
        """Return the version of a new message: 1 + the highest among siblings of that role."""
        versions = (child.version for child in self.children(parent_id) if child.role == role)
        return 1 + max(versions, default=0)

    def depth_below(self, parent_id: str | None) -> int:
        """Return the depth of a new message below `parent_id`; roots have depth 0."""
        self._check(parent_id)
        return 0 if parent_id is None else self._messages[parent_id].depth + 1

    def _insert(self, message: Message) -> None:
        # Only an earlier message counts as parent, so links never form a cycle.
        parent = message.parent_id if message.parent_id in self._messages else None
        self._messages[message.id] = message
        self._parents[message.id] = parent
        self._children.setdefault(parent, []).append(message)
        self._head = message.id

    def _check(self, message_id: str | None) -> None:
        if message_id is not None and message_id not in self._messages:
            text = f"There is no message {message_id!r} in this session; reload its messages."
            raise KodeError("MessageNotFound", text)
