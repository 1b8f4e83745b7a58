"""Edits that show while the model writes them: true of the text, and of no consequence."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    ChangeSetForming,
    Event,
)
from kode_sidecar.core.domain.message import ToolUseBlock
from kode_sidecar.core.kernel.contracts import Emit
from kode_sidecar.core.text.growing_json import GrowingArguments
from kode_sidecar.core.text.shown_text import fix_surrogates
from tests.support.edit_editor import Desk

TEXT = "one\ntwo\nthree\n"


class Reported:
    """An `Emit` that remembers."""

    def __init__(self) -> None:
        self.events: list[Event | BlockDelta] = []

    def __call__(self, event: Event | BlockDelta) -> int:
        self.events.append(event)
        return 0

    async def flow(self) -> None: ...

    @property
    def forming(self) -> list[ChangeSetForming]:
        return [event for event in self.events if isinstance(event, ChangeSetForming)]


def began(emit: Emit, name: str = "propose_edit") -> ToolUseBlock:
    block = ToolUseBlock(id="b-1", tool_use_id="use-1", name=name)
    emit(BlockStarted(turn_id="t-1", message_id="m-1", block_id="b-1", block=block))
    return block


def grow(emit: Emit, text: str, at: int = 0) -> None:
    emit(BlockDelta(block_id="b-1", at=at, add=text))


def call(path: str, *pairs: tuple[str, str]) -> str:
    return json.dumps({"path": path, "edits": [{"old": old, "new": new} for old, new in pairs]})


async def test_a_finished_edit_shows_before_the_call_is_whole(tmp_path: Path) -> None:
    desk, reported = Desk(tmp_path), Reported()
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    emit = desk.sets.forming(reported, "t-1")
    block = began(emit)
    whole = call("a.txt", ("one", "ONE"), ("three", "3\n4"))
    cut = whole.index('{"old": "three"')
    grow(emit, whole[:cut])
    await desk.until(lambda: reported.forming)
    (hunk,) = reported.forming[0].hunks
    assert (hunk.old_text, hunk.new_text, hunk.range.start.line) == ("one\n", "ONE\n", 0)
    assert (reported.forming[0].block_id, reported.forming[0].path) == ("b-1", "a.txt")
    assert (desk.hunks, desk.text("a.txt"), buffer.text) == ([], TEXT, TEXT)  # nothing came of it
    grow(emit, whole[cut:-2], cut)
    await desk.until(lambda: len(reported.forming) == 2)
    assert [one.new_text for one in reported.forming[1].hunks] == ["ONE\n", "3\n4\n"]
    emit(BlockCompleted(turn_id="t-1", message_id="m-1", block_id="b-1", block=block))
    grow(emit, whole)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(reported.forming) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        call("a.txt", ("nowhere", "x"))[:-2],
        call("../outside.txt", ("one", "x"))[:-2],
        call(".env", ("KEY", "x"))[:-2],
        call("a.txt", ("one", "x")).replace('"old"', '"elsewhere"')[:-2],
        '{"edits": [{"old": "one", "new": "x"}',
        "[[[{}]]]",
        "}}}]",
    ],
)
async def test_what_would_be_refused_shows_nothing(tmp_path: Path, arguments: str) -> None:
    desk, reported = Desk(tmp_path), Reported()
    desk.editor.open(desk.file("a.txt", ""), TEXT)
    desk.file(".env", "KEY=1\n")
    emit = desk.sets.forming(reported, "t-1")
    began(emit)
    grow(emit, arguments)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks)
    assert reported.forming == []
    assert not any(task.exception() for task in tasks)


async def test_a_call_that_is_dropped_meanwhile_shows_nothing(tmp_path: Path) -> None:
    desk, reported = Desk(tmp_path), Reported()
    desk.editor.open(desk.file("a.txt", ""), TEXT)
    emit = desk.sets.forming(reported, "t-1")
    began(emit)
    grow(emit, call("a.txt", ("one", "ONE"))[:-2])
    emit(BlockDropped(message_id="m-1", block_id="b-1", reason="again"))
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    assert reported.forming == []


LINES = [f"line {at} of a text in lines\n" for at in range(60)]
CHANGED = [*LINES[:5], "five\n", *LINES[6:40], "more\n", *LINES[40:]]


def chunk(at: int, new: str) -> str:
    """A chunk that replaces one line of `LINES`, quoted with eight lines above it."""
    above = "".join(f" {line}" for line in LINES[at - 8 : at])
    return f"{above}-{LINES[at]}+{new}\n"


ADDED = "".join(f"+{line}" for line in LINES[:9])
PATCH = (
    f"*** Begin Patch\n*** Update File: a.txt\n@@\n{chunk(10, 'ten')}@@\n{chunk(30, 'thirty')}"
    f"*** Add File: new/b.txt\n{ADDED}*** Update File: c.txt\n@@\n{chunk(9, 'nine')}"
    "*** End Patch\n"
)
UNIFIED = (
    f"--- a/a.txt\n+++ b/a.txt\n@@ -3,9 +3,9 @@\n{chunk(10, 'ten')}@@ -1 +1 @@\n"
    f"{chunk(30, 'thirty')}--- /dev/null\n+++ b/new/b.txt\n@@ -0,0 +1,9 @@\n{ADDED}"
    f"--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n{chunk(9, 'nine')}--- a/x\n+++ b/x\n"
)


async def written(desk: Desk, tool: str, arguments: dict[str, str], size: int = 40) -> Reported:
    """A call that is written in pieces, each shown before the next one comes."""
    reported = Reported()
    emit = desk.sets.forming(reported, "t-1")
    began(emit, tool)
    whole = json.dumps(arguments)
    for at in range(0, len(whole) - 1, size):
        grow(emit, whole[at : min(at + size, len(whole) - 1)], at)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks)
        assert not any(task.exception() for task in tasks)
    return reported


def shown(reported: Reported) -> list[tuple[str, list[str]]]:
    return [(one.path, [hunk.new_text for hunk in one.hunks]) for one in reported.forming]


@pytest.mark.parametrize("patch", [PATCH, UNIFIED], ids=["apply_patch", "unified"])
async def test_each_chunk_of_a_patch_shows_when_the_next_one_begins(
    tmp_path: Path, patch: str
) -> None:
    desk = Desk(tmp_path)
    desk.editor.open(desk.file("a.txt", ""), "".join(LINES))
    desk.file("c.txt", "".join(LINES))
    reported = await written(desk, "propose_edit", {"patch": patch})
    assert shown(reported)[:2] == [("a.txt", ["ten\n"]), ("a.txt", ["ten\n", "thirty\n"])]
    lines = [new for path, (new, *_) in shown(reported) if path == "new/b.txt"]
    assert lines[-1] == "".join(LINES[:9])
    assert shown(reported)[-1] == ("c.txt", ["nine\n"])
    assert desk.hunks == []


async def test_a_whole_text_shows_what_its_lines_have_finished(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.file("c.txt", "".join(LINES))
    await desk.use("read_file", path="c.txt")
    arguments = {"action": "overwrite", "path": "c.txt", "content": "".join(CHANGED)}
    reported = await written(desk, "propose_file", arguments)
    assert shown(reported) == [("c.txt", ["five\n"]), ("c.txt", ["five\n", "more\n"])]
    (first, _), second = reported.forming[1].hunks, reported.forming[1].hunks[1]
    assert (first.range.start.line, first.old_text) == (5, LINES[5])
    assert (second.range.start.line, second.old_text) == (40, "")


async def test_a_new_file_shows_as_it_grows(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    arguments = {"action": "create", "path": "new.bat", "content": "".join(CHANGED)}
    reported = await written(desk, "propose_file", arguments)
    texts = [new for _, (new,) in shown(reported)]
    assert len(texts) > 3
    assert all("".join(CHANGED).startswith(one) and one.endswith("\n") for one in texts)
    assert texts == sorted(texts, key=len)
    assert (desk.hunks, (tmp_path / "new.bat").exists()) == ([], False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("propose_file", {"action": "overwrite", "path": "c.txt", "content": "".join(CHANGED)}),
        ("propose_file", {"action": "create", "path": "c.txt", "content": "".join(CHANGED)}),
        ("propose_file", {"action": "create", "path": ".env", "content": "".join(CHANGED)}),
        ("propose_file", {"action": "create", "path": "../x", "content": "".join(CHANGED)}),
        (
            "propose_file",
            {"action": "create", "path": "x", "content": "// ... existing code ...\n" * 20},
        ),
        ("propose_edit", {"patch": PATCH.replace("-line 10", "-nowhere")}),
        ("propose_edit", {"patch": PATCH.replace("Update File: a.txt", "Delete File: a.txt")}),
        ("propose_edit", {"path": "a.txt", "old": "one", "new": PATCH}),
    ],
)
async def test_a_call_that_would_be_refused_shows_nothing_either(
    tmp_path: Path, tool: str, arguments: dict[str, str]
) -> None:
    desk = Desk(tmp_path)
    desk.editor.open(desk.file("a.txt", ""), "".join(LINES))
    desk.file("c.txt", "".join(LINES))  # nobody has read it
    assert shown(await written(desk, tool, arguments)) == []


members = st.text(alphabet='a"\\{}[],:é😀\n', max_size=6)
objects = st.dictionaries(members, members | st.lists(st.dictionaries(members, members)))


@given(
    st.dictionaries(members, members, max_size=3),
    st.lists(objects, max_size=4),
    st.lists(st.integers(1, 9)),
)
def test_pieces_of_any_size_give_the_same(
    around: dict[str, str], items: list[dict[str, object]], sizes: list[int]
) -> None:
    text = json.dumps({**around, "edits": items, "more": "x"}, ensure_ascii=len(items) % 2 == 0)
    growing, at = GrowingArguments(), 0
    for size in [*sizes, len(text)]:
        growing.feed(text[at : at + size])
        at += size
        for name, begun in growing.unfinished.items():
            wanted = {**around, "more": "x"}.get(name)
            assert isinstance(wanted, str)
            assert fix_surrogates(wanted).startswith(begun.rstrip("\ud83d"))
    assert growing.items == items
    if "edits" not in around and "more" not in around:
        assert {name: growing.members.get(name) for name in around} == around
