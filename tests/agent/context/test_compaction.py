"""What a summary takes the place of, and what it keeps (C11)."""

from collections.abc import Sequence

import pytest

from kode_sidecar.agent.context.builder import shown_messages
from kode_sidecar.agent.context.compaction import (
    compaction_texts,
    is_undone,
    kept_from,
    summary_content,
    summary_meta,
)
from kode_sidecar.agent.context.prompt_files import Locale, PromptFiles, find_prompts
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import Message, Role, TextBlock


class Tree:
    """A conversation that grows below whatever message is named."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.edits = ContextEdits()

    def add(self, parent: str | None, *names: str, keeps: str | None = None) -> None:
        """`u…` is the user's, `a…` an answer, `t…` a tool's, `r…` a reminder, `s…` a summary."""
        for name in names:
            role: Role = {"a": "assistant", "t": "tool"}.get(name[0], "user")  # type: ignore[assignment]
            meta = {"s": {"origin": "compaction"}, "r": {"origin": "reminder"}}.get(name[0], {})
            if keeps is not None and name[0] == "s":
                meta = {**meta, "keeps": keeps}
            content = (TextBlock(text=name),)
            self.conversation.add(
                Message(
                    id=name, session_id="s", role=role, content=content, parent_id=parent, meta=meta
                )
            )
            parent = name

    def shown(self, leaf: str, limit: int | None = None) -> str:
        return names(shown_messages(self.conversation.path(leaf), limit, self.edits))

    def undone(self, leaf: str) -> bool:
        return is_undone(self.conversation.path(leaf), self.conversation.children, self.edits)


def names(messages: Sequence[Message]) -> str:
    return " ".join(message.id for message in messages)


def message(name: str, size: int = 0) -> Message:
    role: Role = {"a": "assistant", "t": "tool"}.get(name[0], "user")  # type: ignore[assignment]
    meta = {"origin": "compaction"} if name[0] == "s" else {}
    content = (TextBlock(text=name + "x" * size),)
    return Message(id=name, session_id="s", role=role, content=content, meta=meta)


def test_below_a_summary_the_model_gets_it_and_what_it_keeps() -> None:
    tree = Tree()
    tree.add(None, "u1", "a1", "u2", "a2", "t2", "s1", "a3", "u4", keeps="u2")
    assert tree.shown("u4") == "s1 u2 a2 t2 a3 u4"
    assert tree.shown("t2") == "u1 a1 u2 a2 t2"
    tree.add("u4", "a4", "s2", "u5")
    assert tree.shown("u5") == "s2 u5"
    tree.add("a4", "s3", "u6", keeps="gone")
    assert tree.shown("u6") == "s3 u6"


def test_a_summary_stays_in_every_window() -> None:  # A5
    tree = Tree()
    rest = [f"{kind}{number}" for number in range(40) for kind in "ua"]
    tree.add(None, "u", "a", "s", *rest)
    assert tree.shown("a39", 4) == "s u38 a38 u39 a39"
    assert tree.shown("a39", 100) == " ".join(["s", *rest])


def test_who_went_back_behind_a_summary_is_not_given_another() -> None:
    tree = Tree()
    tree.add(None, "u1", "a1", "u2", "a2", "r3", "u3", "s1", "a3")
    for leaf, undone in (("a3", False), ("s1", False), ("u3", True), ("a2", True), ("u1", False)):
        assert tree.undone(leaf) is undone, leaf
    tree.add("a2", "u4", "a4")
    assert tree.undone("a4")
    tree.add("a4", "s2", "u5")
    assert not tree.undone("u5")
    tree.add("a1", "u6", "a6")
    assert not tree.undone("a6")


def test_what_is_newest_is_kept_from_a_prompt_on() -> None:
    path = [message("u1", 9_000), message("a1", 9_000), message("u2"), message("a2", 100)]
    assert kept_from(path, None) == 2
    assert kept_from([*path, message("u3"), message("a3")], None) == 2
    # Within a long turn it begins with an answer, never with the results of another one.
    work = [message(f"{kind}{n}", 3_000) for n in range(9) for kind in "at"]
    at = kept_from([message("u1"), *work], None)
    assert at > 1
    assert [message("u1"), *work][at].role == "assistant"
    # It never reaches behind an older summary, nor beyond its share of the window.
    assert kept_from([message("s1", 9_000), message("u2"), message("a2")], None) == 1
    assert kept_from(path, 100) == len(path)


def test_what_the_user_just_said_is_kept_however_long_it_is() -> None:
    path = [message("u1"), message("a1"), message("u2", 9_000)]
    assert kept_from(path, 262_144) == 2
    assert kept_from([*path[:2], message("s3"), message("u4", 9_000)], None) == 3
    assert kept_from(path, 3_000) == 3


@pytest.mark.parametrize("locale", ["zh", "en"])
def test_a_summary_repeats_the_prompt_that_is_worked_on(locale: Locale) -> None:
    texts = compaction_texts(PromptFiles(find_prompts(), locale))
    dropped = [message("u1"), message("a1"), message("u2 do $this"), message("a2"), message("t2")]
    said = summary_content(texts, "the gist, $5", dropped, None)
    assert len(said) == 2
    assert said[0].text.endswith("\n\nthe gist, $5")
    assert said[1].text.endswith("\n\nu2 do $this")
    assert len(summary_content(texts, "x", dropped[:2], None)) == 1
    assert len(summary_content(texts, "x", dropped, "u2 do $this")) == 1, "it is there itself"
    long = [message("u", 20_000), message("t")]
    quoted = summary_content(texts, "x", long, None)[1].text
    assert "[12001 characters are left out]" in quoted
    assert summary_meta([]) == {"origin": "compaction"}
    assert summary_meta(dropped) == {"origin": "compaction", "keeps": "u1"}
    assert texts.instruction


def test_a_summary_that_is_left_out_is_taken_back_and_restored() -> None:  # F12
    tree = Tree()
    tree.add(None, "u1", "a1", "u2", "a2")
    tree.add("a2", "s1", "u3", "a3", keeps="u2")
    assert tree.shown("a3") == "s1 u2 a2 u3 a3"
    assert not tree.undone("a3")
    tree.edits = tree.edits.edited(leave_out=["s1"])
    assert tree.shown("a3") == "u1 a1 u2 a2 u3 a3"
    assert tree.undone("a3")
    tree.edits = tree.edits.edited(restore=["s1"])
    assert tree.shown("a3") == "s1 u2 a2 u3 a3"
    assert not tree.undone("a3")


def test_taking_back_the_second_summary_leaves_the_first_in_force() -> None:
    tree = Tree()
    tree.add(None, "u1", "a1")
    tree.add("a1", "s1", "u2", "a2", keeps="a1")
    tree.add("a2", "s2", "u3", keeps="a1")
    assert tree.shown("u3") == "s2 a1 u2 a2 u3"  # no summary stands in another
    tree.edits = tree.edits.edited(leave_out=["s2"])
    assert tree.shown("u3") == "s1 a1 u2 a2 u3"


def test_what_is_left_out_goes_with_its_results_and_what_is_pinned_stays_with_them() -> None:
    tree = Tree()
    tree.add(None, "u1", "a1", "t1", "a2", "u2", "a3", "t3", "a4")
    tree.edits = ContextEdits().edited(leave_out=["a1", "u2"])
    assert tree.shown("a4") == "u1 a2 a3 t3 a4"
    # A result alone stays where it is: its text goes later.
    tree.edits = ContextEdits().edited(leave_out=["t3"])
    assert tree.shown("a4") == "u1 a1 t1 a2 u2 a3 t3 a4"
    tree.edits = ContextEdits().edited(pin=["t1"])
    assert tree.shown("a4", 2) == "a1 t1 a3 t3 a4"
    tree.add("a4", "s1", "u3", keeps="a4")
    assert tree.shown("u3") == "s1 a1 t1 a4 u3"


def test_the_newest_word_about_a_message_counts() -> None:
    edits = ContextEdits().edited(leave_out=["a", "b", "b"]).edited(pin=["b"])
    assert edits == ContextEdits(left_out=("a",), pinned=("b",))
    assert edits.edited(leave_out=["b"], restore=["a"]) == ContextEdits(left_out=("b",))
    assert edits.renamed({"b": "c"}.get) == ContextEdits(pinned=("c",))


def test_nothing_that_a_summary_keeps_begins_at_an_older_pinned_message() -> None:
    path = [message("s1"), message("u1"), message("u3")]
    assert kept_from(path, None) == 1
    assert kept_from(path, None, {"u1"}) == 2
