"""What a person sees: cards, diffs, streams; and what must never reach a terminal."""

import io
import sys
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.shown_text import clipped, columns, with_code_points, without_controls
from kode_sidecar.terminal.client.diff_view import hunk_diff, line_diff
from kode_sidecar.terminal.client.labels import labels_for
from kode_sidecar.terminal.client.terminal import Terminal, wants_color
from tests.support.session_fold import SessionFold

Json = dict[str, Any]


class Play:
    """Feeds a fold and a terminal as `Watch` does."""

    def __init__(self, locale: str = "en", *, color: bool = False) -> None:
        self.out = io.StringIO()
        self.terminal = Terminal(self.out, labels_for(locale), color=color)
        self.fold = SessionFold("s1")
        self._seq = 0
        self.event("message.added", messageId="m1", role="assistant")

    def event(self, kind: str, **fields: Any) -> None:
        self._seq += 1
        event = {"seq": self._seq, "type": kind, "turnId": "t1", **fields}
        self.fold.event(event)
        self.terminal.event(self.fold.session, event)

    def block(self, kind: str, block: Json, message: str = "m1") -> None:
        self.event(f"block.{kind}", messageId=message, blockId=block["id"], block=block)

    def delta(self, block_id: str, at: int, add: str) -> None:
        added = self.fold.delta({"blockId": block_id, "at": at, "add": add})
        if added:
            self.terminal.growth(self.fold.session, block_id, added)

    def say(self, block_id: str, kind: str, *adds: str) -> None:
        self.block("started", {"type": kind, "id": block_id, "text": ""})
        at = 0
        for add in adds:
            self.delta(block_id, at, add)
            at += len(add)
        self.block("completed", {"type": kind, "id": block_id, "text": "".join(adds)})

    @property
    def shown(self) -> str:
        return self.out.getvalue().removeprefix("\n")


def test_text_streams_as_it_comes_and_thinking_is_dim() -> None:
    play = Play(color=True)
    play.say("b1", "thinking", "hm ", "茶")
    play.block("started", {"type": "text", "id": "b2", "text": ""})
    play.delta("b2", 0, "Hello")
    assert play.shown == ("\x1b[2mthinking · \x1b[0m\x1b[2mhm \x1b[0m\x1b[2m茶\x1b[0m\nHello")


def test_what_was_lost_is_shown_at_the_end() -> None:
    play = Play()
    play.block("started", {"type": "text", "id": "b1", "text": ""})
    play.delta("b1", 0, "He")
    play.delta("b1", 4, "o")
    play.block("completed", {"type": "text", "id": "b1", "text": "Hello"})
    assert play.shown == "Hello\n"


def test_a_discarded_attempt_is_said() -> None:
    play = Play()
    play.block("started", {"type": "text", "id": "b1", "text": ""})
    play.delta("b1", 0, "Hel")
    play.event("block.dropped", messageId="m1", blockId="b1")
    assert play.shown == "Hel\n↺ this attempt broke off and is discarded\n"


def test_tool_cards_are_one_line() -> None:
    play = Play()
    use = {"type": "tool_use", "id": "b1", "toolUseId": "read_file:0", "name": "read_file"}
    play.block("started", use)
    play.block("completed", {**use, "input": {"path": "src/茶.js", "deep": {"x": 1}}})
    play.event("message.added", messageId="m2", role="tool")
    result = {"type": "tool_result", "id": "b2", "toolUseId": "read_file:0"}
    play.block("started", result, "m2")
    play.block("completed", {**result, "summary": "22 lines\nunsaved"}, "m2")
    assert play.shown == "⚙ read_file · src/茶.js · 22 lines unsaved · ✓ ok\n"
    denied = {**result, "id": "b3", "isError": True, "status": "denied", "summary": "no"}
    play.block("started", denied, "m2")
    play.block("completed", denied, "m2")
    assert play.shown.endswith("⚙ read_file · src/茶.js · no · ✗ denied\n")


def test_the_end_of_a_turn_tells_reason_usage_and_error() -> None:
    play = Play("zh")
    usage = {"inputTokens": 100, "outputTokens": 7, "cachedTokens": 64}
    error = {"code": "Provider", "message": "the host is down"}
    cost = {"amount": 0.0123, "currency": "CNY"}
    play.event("turn.completed", stopReason="error", usage=usage, error=error, cost=cost)
    assert "■ 本轮结束：出错 · 输入 100 token（缓存 64），输出 7 · 0.0123 CNY" in play.shown
    assert "⚠ the host is down (Provider)" in play.shown


def test_no_control_character_reaches_the_terminal() -> None:  # W13
    play = Play(color=False)
    evil = "a\x1b]0;title\x07b\x9b31m\rc\x08\x00\tok\n"
    play.say("b1", "text", evil)
    play.event("notice", code="x", message=evil, level="warning")
    play.event("message.added", messageId="m2", role="tool")
    result = {"type": "tool_result", "id": "b2", "toolUseId": "x", "summary": evil}
    play.block("started", result, "m2")
    play.block("completed", result, "m2")
    assert without_controls(play.shown) == play.shown
    assert "a]0;titleb31mc\tok" in play.shown


@given(st.text(max_size=60))
def test_controls_are_removed_and_nothing_else(text: str) -> None:
    shown = without_controls(text)
    assert all(char in "\n\t" or not (ord(char) < 32 or 127 <= ord(char) < 160) for char in shown)
    assert shown == "".join(char for char in text if char in shown)


def test_hidden_characters_of_a_flagged_hunk_are_written_out() -> None:  # W13
    assert with_code_points("if \u202e x \u200b 🏳\ufe0f\u200d🌈").startswith(
        "if <U+202E> x <U+200B> "
    )
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    hunk = {"hunkId": "h1", "state": "proposed", "kind": "modify", "range": place}
    texts = {"oldText": "a\n", "newText": "\u202eb\n", "flags": ["invisibleCharacters"]}
    file = {"uri": "file:///a", "path": "a.js", "hunks": [{**hunk, **texts}]}
    play = Play()
    play.event("changeSet.updated", changeSetId="c", state="proposed", files=[file])
    play.terminal.change_set(play.fold.session.hunks_of("c"), {"file:///a": "a\nz\n"})
    assert "✎ 1 change(s) proposed in a.js" in play.shown
    assert "mind: invisibleCharacters" in play.shown
    assert "+ <U+202E>b" in play.shown
    decided = {**file, "hunks": [{"hunkId": "h1", "state": "rejected"}]}
    play.event("changeSet.updated", changeSetId="c", state="decided", files=[decided])
    assert "✎ a.js · #1 · rejected" in play.shown


def test_a_hunk_is_shown_with_line_numbers_of_the_buffer() -> None:
    text = "一\r\n二\r\n🍵 = 1;\r\n四\r\n五\r\n六\r\n"
    place = {"start": {"line": 2, "character": 5}, "end": {"line": 2, "character": 6}}
    (group,) = hunk_diff({"range": place, "newText": "2;\r\nx"}, text)
    assert group.header == "@@ -1,5 +1,6 @@"
    assert [(line.old_number, line.new_number, line.kind, line.text) for line in group.lines] == [
        (1, 1, " ", "一"),
        (2, 2, " ", "二"),
        (3, None, "-", "🍵 = 1;"),
        (None, 3, "+", "🍵 = 2;"),
        (None, 4, "+", "x;"),
        (4, 5, " ", "四"),
        (5, 6, " ", "五"),
    ]
    assert hunk_diff({"oldText": "a", "newText": "b"}, None)[0].header == "@@ -1,1 +1,1 @@"


def test_words_that_changed_are_marked_and_a_new_file_has_no_old_line() -> None:
    (group,) = line_diff("let 茶铺 = price(38);", "let 茶馆 = price(40);")
    old, new = group.lines
    assert [old.text[a:b] for a, b in old.changed] == ["铺", "38"]
    assert [new.text[a:b] for a, b in new.changed] == ["馆", "40"]
    (group,) = line_diff("wholly", "another")
    assert [line.changed for line in group.lines] == [(), ()]
    (group,) = line_diff("", "a\nb\n")
    assert group.header == "@@ -0,0 +1,2 @@"
    assert [(line.kind, line.text) for line in group.lines] == [("+", "a"), ("+", "b")]


lines = st.lists(st.sampled_from("abcd"), max_size=12)


@given(lines, lines)
def test_a_diff_holds_every_change_once(before: list[str], after: list[str]) -> None:
    groups = line_diff("\r\n".join(before), "\n".join(after), context=1)
    # Beside a text nothing at all has no lines: a new file is nothing but new ones.
    old = dict(enumerate(before if after else "\n".join(before).split("\n"), 1))
    new = dict(enumerate(after if before else "\n".join(after).split("\n"), 1))
    gone: set[int] = set()
    come: set[int] = set()
    for line in (line for group in groups for line in group.lines):
        if line.old_number is not None:
            assert old[line.old_number] == line.text
        if line.new_number is not None:
            assert new[line.new_number] == line.text
        if line.kind == "-":
            gone.add(line.old_number or 0)
        if line.kind == "+":
            come.add(line.new_number or 0)
    kept_old = [text for number, text in old.items() if number not in gone]
    kept_new = [text for number, text in new.items() if number not in come]
    assert kept_old == kept_new


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python run."""
    count = 0

    def trace(frame: object, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def test_a_diff_of_many_lines_costs_as_many_steps_as_it_has_lines() -> None:
    def replaced(count: int) -> int:
        before = "{\n  old\n}\n" * count
        after = "{\n  new\n  line\n}\n" * count
        return steps(lambda: line_diff(before, after))

    assert replaced(800) < 6 * replaced(200)  # four times the lines, and not sixteen times the work
    out = io.StringIO()
    changed = "".join(f"{n};\n" for n in range(20_000))
    Terminal(out, labels_for("en"), color=False).difference(changed, changed.replace(";", ""))
    assert out.getvalue().count("\n") == 40_002  # a header, and the empty line at the end


def test_wide_characters_take_two_columns() -> None:
    assert columns("茶🍵e\u0301") == 5
    assert clipped("茶茶茶", 5) == "茶茶…"
    assert clipped("茶茶茶", 6) == "茶茶茶"


def test_colours_only_where_they_are_wanted() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert wants_color(Screen(), {})
    assert not wants_color(io.StringIO(), {})
    assert not wants_color(Screen(), {"NO_COLOR": "1"})
    assert not wants_color(Screen(), {"TERM": "dumb"})


def test_scouts_are_told_of_at_their_end_and_when_they_must_report() -> None:
    play = Play()
    scout = {"scoutId": "s1", "toolUseId": "explore:0", "title": "where\x1b[31m prices\nare 茶"}
    for state, calls in (("running", 0), ("running", 7), ("reporting", 7), ("timed_out", 8)):
        play.event("scout.updated", **scout, state=state, toolCalls=calls, elapsedMs=61_500)
    assert play.shown.splitlines() == [
        "⌕ scout where[31m prices are 茶: told to report · 7 calls · 61.5 s",
        "⌕ scout where[31m prices are 茶: out of time · 8 calls · 61.5 s",
    ]
    (view,) = play.fold.scouts.values()
    assert (view.state, view.tool_calls, view.tool_use_id) == ("timed_out", 8, "explore:0")
    assert play.fold.anomalies == []
    play.event("scout.updated", **scout, state="done")
    assert play.fold.anomalies == ["scout s1 is told of after its end"]
