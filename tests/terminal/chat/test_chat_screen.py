"""The chat at a terminal that draws: what is typed, what stands on the screen, what is sent."""

import base64
import os
import re
import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.answers import TokenUsage
from tests.support.chat_program import CTRL_C, CTRL_D, CTRL_J, IDLE, at_terminal
from tests.support.files import write
from tests.support.model_script import answer, failure, hold, text, thinking, tool_call
from tests.support.processes import children, gone, serving

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
LEFT, BACKSPACE = "\x1b[D", "\x7f"
UP = "\x1b[A"
RUNNING = "Enter tells the running turn"
# The smallest PNG: one white pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP6DwABBQECz6AuzQAAAABJRU5ErkJggg=="
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    write(root, {"a.txt": "one\r\n", "src/茶 prices.js": "x", "build/big.js": "y"})
    write(root, {".gitignore": "build/\n"})
    (root / "shot.png").write_bytes(PNG)
    return root


def asked(screen: Any, number: int = -1) -> Any:
    """What the user said in a request: a text, or parts."""
    messages = screen.model.chats[number].body["messages"]
    return next(m["content"] for m in reversed(messages) if m["role"] == "user")


async def test_leaving_right_behind_a_prompt_waits_for_its_answer(project: Path) -> None:
    async with at_terminal(project, [answer(text("the tea is served"))]) as screen:
        screen.type("serve it\n" + CTRL_D)
        assert await screen.left() == 0
        assert "the tea is served" in screen.history


async def test_wide_characters_are_edited_in_place(project: Path) -> None:
    async with at_terminal(project, [answer(text("ok"))]) as screen:
        screen.type("价格茶铺")
        await screen.shows("you › 价格茶铺")
        screen.type(BACKSPACE + LEFT + BACKSPACE + "目")
        await screen.shows("you › 价目茶")
        screen.type(LEFT + LEFT + LEFT + "看")
        await screen.shows("you › 看价目茶")
        # Each wide character has its two columns, and the cursor stands behind the first one.
        assert screen.emulator.cursor.x == len("you › ") + 2 * 1
        assert "铺" not in screen.display
        screen.type("\n")
        await screen.until("ok")
        assert asked(screen) == "看价目茶"


async def test_a_paste_of_100_kb_is_one_prompt(project: Path) -> None:
    pasted = "".join(f"line {number} 茶\n" for number in range(8_000))
    assert len(pasted.encode()) > 100_000
    async with at_terminal(project, [answer(text("ok")), answer(text("second"))]) as screen:
        screen.type("read: ")
        await screen.paste(pasted)
        await screen.shows("read: [pasted 1: 8,001 lines]")
        screen.type(" well?\n")
        await screen.until("ok")
        await screen.idle()
        assert asked(screen) == f"read: {pasted} well?"
        assert "line 7000" not in screen.history  # it is echoed as its word, too
        await screen.paste("two\nlines\tof \x1b[31mred\x1b]0;x\x07")  # a short one stands as it is
        await screen.shows("you › two\n      lines")
        screen.type("\n")
        await screen.until("second")
        assert asked(screen) == "two\nlines\tof [31mred]0;x"


async def test_several_lines_and_the_history_of_an_earlier_session(project: Path) -> None:
    async with at_terminal(project, [answer(text("ok"))]) as screen:
        screen.type(f"first\\\nsecond\x1b\nthird{CTRL_J}fourth")
        await screen.shows("you › first\n      second\n      third\n      fourth")
        screen.type("\n")
        await screen.until("ok")
        await screen.idle()
        assert asked(screen) == "first\nsecond\nthird\nfourth"
        screen.type("/mode\n")
        await screen.until("mode: review")
        screen.type(CTRL_D)
        assert await screen.left() == 0
    kept = Path(os.environ["KODE_HOME"]) / "chat-history.jsonl"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    async with at_terminal(project, []) as screen:
        screen.type(UP)
        await screen.shows("you › /mode")
        screen.type(CTRL_C)
        await screen.idle()
        screen.type("\x12sec")  # Ctrl-R
        await screen.shows("fourth")


async def test_files_commands_and_modes_are_completed(project: Path) -> None:
    async with at_terminal(project, [answer(text("ok"))]) as screen:
        screen.type("see @pri")
        await screen.shows("src/茶 prices.js")
        screen.type("\t")
        await screen.shows('you › see @"src/茶 prices.js"')
        screen.type(" and @big")
        await screen.shows("and @big")
        assert "build/" not in screen.display  # it is ignored
        screen.type("\n")
        await screen.until("ok")
        reported = asked(screen)
        assert reported.startswith('see @"src/茶 prices.js" and @big')
        assert f"Attached: {project / 'src' / '茶 prices.js'}" in reported
        await screen.idle()
        screen.type("/mo")
        await screen.shows("/model", "/mode", "show or choose")
        screen.type("de pl")
        await screen.shows("\n plan")
        screen.type("\t\n\n")  # taken, then sent
        await screen.until("the next turns have the mode plan")


async def test_an_image_goes_along_by_its_path_and_when_it_is_dropped(project: Path) -> None:
    shot = str(project / "shot.png")
    async with at_terminal(project, [answer(text("ok"))], "--model", "kimi-k2.6") as screen:
        await screen.paste(f"'{shot}'")
        await screen.shows(f"you › @{shot}"[:90])
        screen.type("what is it?\n")
        await screen.until("ok")
        image, reported = asked(screen)
        assert image["image_url"]["url"].endswith(base64.b64encode(PNG).decode())
        assert reported["text"].endswith("what is it?")


async def test_the_line_is_edited_in_the_users_editor(project: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nprintf ' 茶\\nmore\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    async with at_terminal(project, [answer(text("ok"))], EDITOR=str(editor), VISUAL="") as screen:
        screen.type("one\x07")
        await screen.shows("you › one 茶\n      more")
        screen.type("\n")
        await screen.until("ok")
        assert asked(screen) == "one 茶\nmore"


async def test_a_running_turn_is_told_and_the_next_one_waits_in_sight(project: Path) -> None:
    call = tool_call("read_file", {"path": "a.txt"})
    responses = [
        answer(text("Let me look."), hold("gate"), call),
        answer(text("I see.")),
        answer(text("Later.")),
    ]
    async with at_terminal(project, responses) as screen:
        screen.type("go\n")
        await screen.shows("Let me look.", RUNNING)
        screen.type("mind the tea\n")
        await screen.shows("told › mind the tea")
        screen.type("then the rest\t")
        await screen.shows("next › then the rest")
        screen.type("no more\t")
        await screen.shows("next › no more")
        screen.type(UP)  # taken back, to be changed or dropped
        await screen.shows("you › no more")
        assert "next › no more" not in screen.display
        screen.type(BACKSPACE * 7)
        screen.model.release("gate")
        await screen.until("Later.")
        await screen.idle()
        assert "mind the tea" in str(screen.model.chats[1].body["messages"])
        assert asked(screen) == "then the rest"
        assert screen.display.count("› mind the tea") == 1
        assert "next ›" not in screen.display


MARKDOWN = """# Prices

The **tea** costs `38`, see [the list](https://shop.example/x).

```python
def total(cups: int):
    return cups * 38
```

| what | price |
|------|-------|
| 茶   | 38    |

Evil: \x1b]0;title\x07\x1b[2J &#x202e;back\u202ewards <b>tag</b> \U000e0041
"""


async def test_markdown_is_drawn_as_it_streams_and_stays_whole(project: Path) -> None:
    said = answer(text(MARKDOWN, size=5), hold("gate"), text("\nThe end 🍵.\n", size=3))
    async with at_terminal(project, [said]) as screen:
        screen.type("go\n")
        await screen.model.reached("gate")
        await screen.shows("Prices\n", "38, see the list (https://shop.example/x).", RUNNING)
        await screen.shows("Evil: ]0;title[2J <U+202E>back<U+202E>wards <b>tag</b> <U+E0041>")
        row = next(line for line in screen.display.splitlines() if "茶" in line)
        assert re.match(r" 茶 +38", row), row
        # The code has colours, the title weight, and nothing of the fences is left.
        where = next(y for y, line in enumerate(screen.emulator.display) if "def total" in line)
        assert screen.emulator.buffer[where][2].fg == "magenta"
        assert "```" not in screen.display
        assert screen.emulator.title == ""
        screen.model.release("gate")
        await screen.idle()
        whole = screen.history
        for line in ("Prices", "  def total(cups: int):", "The end 🍵."):
            assert len(re.findall(f"^{re.escape(line)} *$", whole, re.MULTILINE)) == 1, whole


async def test_the_window_is_resized_in_mid_stream(project: Path) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    said = answer(text(f"{words}\n\nnext ", size=50), hold("gate"), text(f"{words}\n"))
    async with at_terminal(project, [said]) as screen:
        screen.type("go\n")
        await screen.shows("word39", "next", RUNNING)
        screen.resize(48, 30)
        await screen.shows(RUNNING[:20])
        screen.model.release("gate")
        await screen.idle()
        below = screen.history.rpartition("next")[2]
        assert list(re.findall(r"word\d+", below)) == words.split()
        answered = [line for line in below.splitlines() if "word" in line]
        assert max(map(len, answered)) <= 48
        assert len(answered) >= 6


async def test_the_wait_for_the_model_is_told_with_a_countdown(project: Path) -> None:
    busy = failure(429, "rate_limit_reached_error", "too many requests")
    later = replace(busy, headers={"retry-after": "3"})
    async with at_terminal(project, [later, answer(text("Here."))]) as screen:
        screen.type("go\n")
        await screen.shows("asks again in 3 s")
        await screen.shows("asks again in 2 s", RUNNING)
        await screen.until("Here.")
        await screen.idle()
        assert "asks again" not in screen.display
        await screen.shows("ide-chat · review · context ")


BUDGET = """
budget: {currency: USD, session: 0.05}
providers: {kimi: {models: [{id: kimi-k2.6, price: {input: 1.0, cached: 0.1, output: 4.0}}]}}
"""


async def test_the_budget_stands_in_the_status_line_and_ends_a_turn(project: Path) -> None:
    config = project.parent / "config.yaml"
    config.write_text(BUDGET)
    said = [answer(text("One."), usage=TokenUsage(prompt=30_000)), answer(text("Two."))]
    chosen = {"KODE_CONFIG": str(config), "KODE_MODEL": "kimi/kimi-k2.6"}
    async with at_terminal(project, said, **chosen) as screen:
        screen.type("go\n")
        await screen.until("One.")
        await screen.idle()
        await screen.shows("· 0.0301 USD · budget of the session: 0.0301 of 0.05 USD")
        screen.type("and on\n")
        await screen.until("the budget is used up")
        assert len(screen.model.chats) == 1  # it was not asked


async def test_models_are_completed_by_their_names(project: Path) -> None:
    async with at_terminal(project, [answer(text("ok"))]) as screen:
        screen.type("/model\n")
        await screen.shows("kimi-k2.6")
        await screen.idle()
        screen.type("/model k2.6")
        await screen.shows("you › /model k2.6", "\n kimi-k2.6".strip())
        screen.type("\t\n\n")
        await screen.until("the next turns ask kimi/kimi-k2.6")


async def test_nothing_of_the_model_hides_in_a_card_a_diff_or_a_question(project: Path) -> None:
    evil = "\x1b]0;own\x07\x1b[2Jfile\u202etxt.exe\U000e0041"
    shown = "]0;own[2Jfile<U+202E>txt.exe<U+E0041>"
    edits = [{"old": "one", "new": f"two {evil}"}]
    calls = (
        tool_call("search_code", {"query": evil}),
        tool_call("propose_edit", {"path": "a.txt", "edits": edits}),
        tool_call("ask_user", {"question": "Q \u202e?", "choices": ["A \u202eb", "no"]}),
    )
    said = [*(answer(call) for call in calls), answer(text("Well."))]
    async with at_terminal(project, said, size=(140, 40)) as screen:
        screen.type("go\n")
        await screen.shows("? Q <U+202E>?", "1  A <U+202E>b", "number of your choice")
        screen.type("2\n")
        await screen.shows("hunk 1 of 1", f"+ two {shown}", "mind: unread, invisibleCharacters")
        screen.type("n\n")
        await screen.until("rejected: 1")
        assert screen.emulator.title == ""
        hidden = {"\u202e", "\U000e0041"}
        leaked = [line for line in screen.all.splitlines() if hidden & set(line)]
        assert not leaked
        assert "\x1b[2J" not in screen.all


async def test_silence_and_thoughts_are_shown(project: Path) -> None:
    thought = thinking("".join(f"thought {number}. " for number in range(60)))
    said = [answer(thought, hold("gate"), text("So."))]
    async with at_terminal(project, said, KODE_HTTP_SILENCE_TOLD="0.2") as screen:
        screen.type("go\n")
        await screen.shows("thought 59.", "said nothing for")
        screen.model.release("gate")
        await screen.until("So.")
        await screen.idle()
        assert "✻ thought 0. thought 1." in screen.display
        assert "thought 59." not in screen.display  # it is long
        assert "more lines" in screen.display


async def test_ctrl_c_clears_cancels_and_leaves(project: Path) -> None:
    responses = [answer(text("wait", size=9), hold("for ever"), text("never"))]
    async with at_terminal(project, responses) as screen:
        screen.type("some words")
        await screen.shows("some words")
        screen.type(CTRL_C)
        await screen.idle()
        screen.type("go\n")
        await screen.shows("wait", RUNNING)
        screen.type("half a")
        await screen.shows("› half a")
        screen.type(CTRL_C)
        await screen.until("turn ended: cancelled")
        await screen.shows("you › half a")  # what was typed is still there


async def test_two_ctrl_c_leave_nothing_of_the_line_behind(project: Path) -> None:
    async with at_terminal(project, []) as screen:
        screen.type(CTRL_C)
        await screen.until("Ctrl-C once more")
        screen.type(CTRL_C)
        assert await screen.left() == 130
        assert IDLE not in screen.display  # nothing of the line is left behind


async def test_ctrl_c_at_a_sidecar_that_does_not_answer_leaves_the_line_whole(
    project: Path,
) -> None:
    async with at_terminal(project, []) as screen:
        (child,) = children(serving(screen.pid))
        os.kill(child, signal.SIGSTOP)
        screen.type("go")
        await screen.shows("you › go")
        screen.type("\n")
        await screen.idle()
        screen.type(CTRL_C)
        await screen.shows("Ctrl-C once more", IDLE)
        said, line = (screen.display.index(part) for part in ("Ctrl-C once more", IDLE))
        assert said < line, "it is printed above the line, not over it"
        screen.type(CTRL_C)
        assert await screen.left() == 130
        assert gone(child)


async def test_without_colours_there_are_none(project: Path) -> None:
    said = [answer(text(MARKDOWN))]
    async with at_terminal(project, said, NO_COLOR="1") as screen:
        screen.type("go\n")
        await screen.until("Evil")
        await screen.idle()
        codes = re.findall(r"\x1b\[([0-9;]*)m", screen.all)
        hues = {
            code for codes_ in codes for code in codes_.split(";") if re.match(r"[349]\d", code)
        }
        assert hues <= {"39", "49"}


async def test_a_choice_and_a_question_are_answered_in_the_line(project: Path) -> None:
    ask = tool_call("ask_user", {"question": "Where to?", "choices": ["here", "数据库"]})
    async with at_terminal(project, [answer(ask), answer(text("Well."))]) as screen:
        screen.type("go\n")
        await screen.shows("? Where to?", "2  数据库", "number of your choice")
        screen.type("2\n")
        await screen.until("Well.")
        await screen.idle()
        reported = [m for m in screen.model.chats[-1].body["messages"] if m["role"] == "tool"]
        assert reported[0]["content"] == "The user chose:\n- 数据库"


async def test_chinese_from_end_to_end(project: Path) -> None:
    async with at_terminal(project, [answer(text("好。"))], "--locale", "zh") as screen:
        assert "请提问" in screen.display


async def test_a_stop_gives_the_prompt_for_later_back_into_the_line(project: Path) -> None:
    script = [answer(text("Well,"), hold("ever")), answer(text("As you like."))]
    async with at_terminal(project, script) as screen:
        screen.type("go\n")
        await screen.shows("Well,", RUNNING)
        screen.type("and then the tea\t")
        await screen.shows("next › and then the tea")
        screen.type(CTRL_C)
        await screen.shows("you › and then the tea")
        assert "next ›" not in screen.display
        assert len(screen.model.chats) == 1
        screen.type(", please\n")
        await screen.shows("As you like.")
        assert asked(screen) == "and then the tea, please"
