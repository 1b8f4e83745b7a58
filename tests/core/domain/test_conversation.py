"""The message tree."""

import pytest

from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import Message, Role
from kode_sidecar.errors import KodeError


def add(tree: Conversation, message_id: str, parent_id: str | None, role: Role = "user") -> None:
    message = Message(
        id=message_id,
        session_id="s",
        role=role,
        parent_id=parent_id,
        depth=tree.depth_below(parent_id),
        version=tree.next_version(parent_id, role),
    )
    tree.add(message)


def ids(messages: object) -> list[str]:
    return [message.id for message in messages]  # type: ignore[attr-defined]


def test_an_edited_prompt_is_a_sibling_with_the_next_version() -> None:  # A4
    tree = Conversation()
    add(tree, "u1", None)
    add(tree, "a1", "u1", "assistant")
    add(tree, "u2", "a1")
    add(tree, "a2", "u2", "assistant")
    add(tree, "u2b", "a1")

    assert (tree.get("u2b").version, tree.get("u2b").depth) == (2, 2)
    assert tree.next_version("a1", "user") == 3
    assert tree.next_version("a1", "assistant") == 1
    assert ids(tree.children("a1")) == ["u2", "u2b"]
    assert ids(tree.path("u2b")) == ["u1", "a1", "u2b"]
    assert ids(tree.path("a2")) == ["u1", "a1", "u2", "a2"]
    assert tree.head == "u2b"


def test_the_head_moves_to_any_message_and_new_roots_are_allowed() -> None:
    tree = Conversation()
    assert tree.head is None
    assert tree.path(None) == []
    add(tree, "u1", None)
    add(tree, "a1", "u1", "assistant")
    add(tree, "other", None)
    assert tree.get("other").version == 2
    tree.set_head("u1")
    assert tree.head == "u1"
    assert ids(tree.children(None)) == ["u1", "other"]


def test_an_unknown_message_is_named() -> None:
    tree = Conversation()
    attempts = (
        lambda: tree.get("nope"),
        lambda: tree.path("nope"),
        lambda: tree.children("nope"),
        lambda: tree.set_head("nope"),
        lambda: tree.depth_below("nope"),
        lambda: add(tree, "x", "nope"),
    )
    for attempt in attempts:
        with pytest.raises(KodeError, match="'nope'") as caught:
            attempt()
        assert caught.value.code == "MessageNotFound"


def test_an_id_is_used_once() -> None:
    tree = Conversation()
    add(tree, "u1", None)
    with pytest.raises(ValueError, match="in use"):
        add(tree, "u1", None)


def test_loading_bears_damage() -> None:
    """A lost line, a repeated id, and two messages that claim each other as parent."""
    stored = [
        Message(id="child", session_id="s", role="user", parent_id="lost"),
        Message(id="child", session_id="s", role="user", parent_id=None),
        Message(id="x", session_id="s", role="user", parent_id="y"),
        Message(id="y", session_id="s", role="user", parent_id="x"),
    ]
    tree = Conversation(stored)
    assert len(tree) == 3
    assert tree.head == "y"
    assert ids(tree.path("child")) == ["child"]
    assert ids(tree.path("y")) == ["x", "y"]
    assert ids(tree.children(None)) == ["child", "x"]
