"""The user types while hunks wait and while an edit is on its way: no text is lost or doubled."""

import asyncio
import itertools
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.domain.change_set import HunkView
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.protocol.change_set import HunkDecision
from kode_sidecar.core.text.line_diff import split_lines
from tests.support.edit_buffer import Buffer, ChangeStyle
from tests.support.edit_editor import Desk

STYLES: list[ChangeStyle] = ["minimal", "descending", "whole", "one_span"]


@dataclass(frozen=True)
class Key:
    """The user adds a line before line `line`, or changes it, or deletes it."""

    kind: str
    line: int


@dataclass(frozen=True)
class Story:
    lines: tuple[str, ...]
    eol: str
    final_eol: bool
    style: ChangeStyle
    hunks: dict[int, tuple[str, ...]]
    before: tuple[Key, ...]
    handling: tuple[str, str]
    during: tuple[Key, ...]
    rejected: frozenset[int]


WORDS = st.sampled_from(["}", "x", "中 😀", "end"])


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Few words, so that lines repeat and an edit can be told in several ways."""
    lines = draw(st.lists(WORDS, min_size=3, max_size=9))
    places = draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=3, unique=True))
    hunks = {
        at: draw(st.sampled_from([(), (lines[at], lines[at]), (lines[at], "new"), ("new", "}")]))
        for at in places
    }
    at_line = st.integers(0, len(lines) - 1)
    key = st.builds(Key, st.sampled_from(["change", "insert", "delete"]), at_line)
    # A deletion on the way could be just what the hunk asks for, told from nothing.
    marking = st.builds(Key, st.sampled_from(["change", "insert"]), at_line)
    handling = st.sampled_from(["do", "drop", "type then do", "do then type", "do and type"])
    return Story(
        lines=tuple(lines),
        eol=draw(st.sampled_from(["\n", "\r\n"])),
        final_eol=draw(st.booleans()),
        style=draw(st.sampled_from(STYLES)),
        hunks=hunks,
        before=tuple(draw(st.lists(key, max_size=2))),
        handling=(draw(handling), draw(handling)),
        during=tuple(draw(st.lists(marking, max_size=2))),
        rejected=frozenset(draw(st.sets(st.integers(0, 2), max_size=1))),
    )


class Player:
    """Tells a story and knows which lines the user has added and taken."""

    def __init__(self, desk: Desk, story: Story, buffer: Buffer) -> None:
        self.desk = desk
        self.story = story
        self.buffer = buffer
        self.added: list[str] = []
        self.taken: list[str] = []
        self.gone: set[str] = set()
        self.was: dict[str, str] = {}

    def press(self, key: Key) -> None:
        lines = split_lines(self.buffer.text) or [""]
        at = min(key.line, len(lines) - 1)
        start = sum(map(len, lines[:at]))
        content = lines[at].rstrip("\r\n")
        mark = f"用户{len(self.added)}😀"
        if key.kind == "insert":
            self.added.append(mark)
            self.buffer.type(start, mark + self.story.eol)
        elif key.kind == "change":
            self.added.append(content + mark)
            self.taken.append(content)
            self.was[content + mark] = content
            self.buffer.type(start + len(content), mark)
        elif lines[at] != content:
            self.taken.append(content)
            while content:  # a line that was changed first is gone as it was, too
                self.gone.add(content)
                content = self.was.get(content, "")
            self.buffer.type(start, "", delete=len(lines[at]))

    async def apply(self, edit: DocumentEdit) -> ApplyAnswer:
        editor = self.desk.editor
        handling = self.story.handling[min(len(editor.edits), 2) - 1]
        keys = self.story.during
        if handling == "drop":
            return ApplyAnswer(True)
        if handling == "type then do":
            for key in keys:
                self.press(key)
        answer = editor.do(edit)
        if handling == "do then type":
            editor.report(self.buffer)
        if handling != "type then do" and handling != "do":
            for key in keys:
                self.press(key)
        editor.report(self.buffer)
        return ApplyAnswer(answer)


async def play(story: Story, root: Path) -> None:
    desk = Desk(root, "utf-16", story.style)
    lf = "\n".join(story.lines) + "\n" * story.final_eol
    buffer = desk.editor.open(desk.file("a.txt", ""), lf.replace("\n", story.eol))
    lines = [word for at, line in enumerate(story.lines) for word in story.hunks.get(at, (line,))]
    target = "\n".join(lines) + "\n" * (story.final_eol and bool(lines))
    if target == lf:
        return
    call = ToolCall("tool-1", "propose_edit", "s-1", "t-1", "m-1")
    await desk.sets.proposals.propose("a.txt", lambda document, text: target, call)
    assert desk.text("a.txt") == target
    player = Player(desk, story, buffer)
    for key in story.before:
        player.press(key)
        desk.editor.report(buffer)
    desk.editor.on_apply = player.apply
    decisions = [
        HunkDecision(hunk_id=hunk.hunk_id, action="reject" if k in story.rejected else "accept")
        for k, hunk in enumerate(desk.hunks)
    ]
    result = await desk.decide(*decisions)
    check(desk, player, lf, result.applied)


def check(desk: Desk, player: Player, lf: str, applied: tuple[str, ...]) -> None:
    """What is left is what was there, what the user did, and what was applied: as lines.

    A deletion that the user has made, too, counts once.
    """
    text = player.buffer.text
    found = Counter(text.replace("\r\n", "\n").split("\n"))
    del found[""]
    sent = [hunk for hunk in desk.hunks if hunk.hunk_id in applied]
    both = [
        hunk for hunk in sent if not hunk.new_text and set(_lines(hunk.old_text)) <= player.gone
    ]
    diverged = "diverged" in desk.states.values()
    possible = [
        _expected(lf, player, [hunk for hunk in sent if hunk not in done])
        for size in range(len(both) + 1)
        for done in itertools.combinations(both, size)
    ]
    assert diverged or +found in possible, (text, desk.states)
    assert desk.workspace.document("a.txt", purpose="read").text == text
    offered = any(hunk.merge_of for hunk in desk.hunks)  # what is left of a conflict waits
    assert offered or desk.text("a.txt") == text.replace("\r\n", "\n")
    eols = text.count("\n") - text.count("\r\n")
    assert eols == 0 if player.story.eol == "\r\n" else "\r" not in text


def _expected(lf: str, player: Player, applied: Sequence[HunkView]) -> Counter[str]:
    expected = Counter(lf.split("\n")) + Counter(player.added)
    expected.subtract(player.taken)
    for hunk in applied:
        expected.subtract(line for line in _lines(hunk.old_text))
        expected.update(_lines(hunk.new_text))
    del expected[""]
    return +expected


def _lines(text: str | None) -> list[str]:
    return [line for line in (text or "").replace("\r\n", "\n").split("\n") if line]


_A_KEY_HIDES_A_DELETION = Story(
    lines=("}", "}", "}", "中 😀", "}", "中 😀", "}"),
    eol="\n",
    final_eol=False,
    style="whole",
    hunks={0: (), 3: ("中 😀", "中 😀"), 5: ("new", "}")},
    before=(),
    handling=("do and type", "do"),
    during=(Key("change", 4),),
    rejected=frozenset({0}),
)


_THE_USER_CHANGES_AND_DELETES_IT_FIRST = Story(
    lines=("}", "}", "}", "}", "}", "x"),
    eol="\n",
    final_eol=False,
    style="minimal",
    hunks={0: ()},
    before=(Key("change", 4), Key("delete", 4)),
    handling=("do", "do"),
    during=(),
    rejected=frozenset(),
)


@given(stories())
@example(_A_KEY_HIDES_A_DELETION)
@example(_THE_USER_CHANGES_AND_DELETES_IT_FIRST)
def test_typing_and_accepting_never_lose_or_double_a_line(story: Story) -> None:
    with tempfile.TemporaryDirectory() as root:
        asyncio.run(play(story, Path(root).resolve()))
