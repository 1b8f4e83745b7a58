"""`/undo`, `/redo`, `/fork`, `/session` and `/usage`: what was done, taken back or gone on from."""

import re
from pathlib import Path

import pytest

from tests.support.chat_program import at_dumb_terminal, by_lines
from tests.support.model_script import TokenUsage, answer, text, tool_call

pytestmark = pytest.mark.program

PROMPT = "you › "
PRICES = "茶 = 38\r\n酒 = 50\r\n".encode("gb18030")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "茶 shop"
    folder.mkdir()
    (folder / "价.txt").write_bytes(PRICES)
    return folder


def edit(old: str, new: str) -> object:
    edits = [{"old": old, "new": new}]
    return answer(tool_call("propose_edit", {"path": "价.txt", "edits": edits}))


TWO_TURNS = [
    edit("茶 = 38", "茶 = 40"),
    answer(text("a")),
    edit("酒 = 50", "酒 = 60"),
    answer(text("b")),
]
BOTH = "茶 = 40\r\n酒 = 60\r\n".encode("gb18030")
FIRST = "茶 = 40\r\n酒 = 50\r\n".encode("gb18030")


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ("/undo\n", FIRST),
        ("/undo\n/undo\n", PRICES),
        ("/undo\n/undo\n/undo\n", PRICES),
        ("/undo\n/undo\n/redo\n", FIRST),
        ("/undo\n/undo\n/redo\n/redo\n/redo\n", BOTH),
        ("/undo\n/redo\n/undo\n", FIRST),
    ],
)
async def test_undo_goes_back_step_by_step_and_redo_forward(
    project: Path, steps: str, left: bytes
) -> None:
    gbk = {"KODE_FILE_ENCODING": "gb18030"}
    done = await by_lines(project, f"one\ntwo\n{steps}", TWO_TURNS, "--accept", **gbk)
    assert (done.code, done.err) == (0, ""), done.out
    assert (project / "价.txt").read_bytes() == left, done.out
    assert "⚠" not in done.out
    assert done.out.count("taken back: 1 hunk(s) · 价.txt") == min(steps.count("/undo"), 2)
    assert ("nothing is applied" in done.out) == (steps.count("/undo") > 2)
    assert ("nothing was taken back" in done.out) == (steps.count("/redo") > 2)


async def test_what_the_user_changed_since_is_not_taken_back(project: Path) -> None:
    gbk = {"KODE_FILE_ENCODING": "gb18030"}
    async with at_dumb_terminal(project, TWO_TURNS, "--accept", **gbk) as screen:
        for prompt in ("one\n", "two\n"):
            screen.type(prompt)
            await screen.until("applied: 1")
            await screen.until(PROMPT)
        typed = "茶 = 40\r\n酒 = 61\r\n".encode("gb18030")
        (project / "价.txt").write_bytes(typed)
        screen.type("/undo\n")
        await screen.until("/undo skip leaves them")
        await screen.until(PROMPT)
        assert (project / "价.txt").read_bytes() == typed
        screen.type("/undo skip\n")
        await screen.until("taken back: 0")
        screen.type("/undo\n")
        await screen.until("taken back: 1")
        await screen.until(PROMPT)
        assert (project / "价.txt").read_bytes() == "茶 = 38\r\n酒 = 61\r\n".encode("gb18030")


def said(request: object) -> list[str]:
    messages = request.body["messages"]  # type: ignore[attr-defined]
    spoken = [message for message in messages if message["role"] in ("user", "assistant")]
    return [message["content"] for message in spoken if message.get("content")]


async def test_a_fork_goes_on_from_an_earlier_prompt(project: Path) -> None:
    answers = [answer(text(word)) for word in ("eins", "zwei", "drei", "vier")]
    lines = "one\ntwo\n/fork 2\nother\n/session\n/fork\nmore\n/fork 9\n"
    done = await by_lines(project, lines, answers)
    assert done.code == 0, done.out
    assert done.model is not None
    assert said(done.model.chats[2]) == ["one", "eins", "other"]
    assert said(done.model.chats[3]) == ["one", "eins", "other", "drei", "more"]
    assert re.search(r"1  one\n +2  other\n", done.out)
    assert done.out.count("from here on in a copy: ") == 2
    assert "there is no prompt 9" in done.out


async def test_an_earlier_session_goes_on_in_another_process(project: Path) -> None:
    first = await by_lines(
        project, "one\n/session\n", [edit("茶 = 38", "茶 = 40"), answer(text("a"))]
    )
    (found,) = re.findall(r"session (\S+) · ", first.out)
    lines = f"/session list\n/session nobody\n/session {found[:13]}\ntwo\n"
    done = await by_lines(project, lines, [answer(text("b"))])
    assert done.code == 0, done.out
    assert re.search(rf"{found}  \d\d\d\d-.*  one\n", done.out)
    assert "begins with nobody" in done.out
    assert done.model is not None
    assert said(done.model.chats[0])[0] == "one"
    assert said(done.model.chats[0])[-1].endswith("two")


async def test_an_undecided_edit_of_an_earlier_process_is_reviewed(project: Path) -> None:
    gbk = {"KODE_FILE_ENCODING": "gb18030"}
    answers = [edit("茶 = 38", "茶 = 40"), answer(text("a"))]
    async with at_dumb_terminal(project, answers, **gbk) as screen:
        screen.type("one\n")
        await screen.until("accept?")
        screen.type("q\n")
        await screen.until("wait: /review")
        screen.type("/session\n")
        shown = await screen.until(" · one\n")
        (found,) = re.findall(r"session (\S+) · one", shown)
        screen.type("/quit\n")
        await screen.left()
    done = await by_lines(
        project, f"/session {found}\n/review\n/undo\n/redo\n", [], "--accept", **gbk
    )
    assert done.code == 0, done.out
    assert "1 hunk(s) wait" in done.out
    assert "⚠" not in done.out
    assert (project / "价.txt").read_bytes() == "茶 = 40\r\n酒 = 50\r\n".encode("gb18030")


async def test_the_context_is_in_the_users_hand(project: Path) -> None:  # F12
    steps = (
        "a secret 密语\n/context\n/context leave 1\ntwo\n/context restore 4\n"
        "/context pin 1\nthree\n/context undo\n/context leave 99\n"
    )
    said = [answer(text(one)) for one in "abc"]
    done = await by_lines(project, steps, said)
    assert done.model is not None
    asked = [str(chat.body["messages"]) for chat in done.model.chats]
    assert ["密语" in one for one in asked] == [True, False, True], done.out
    assert "1 · prompt" in done.out
    assert done.out.count("of them anew") == 3, done.out
    assert "nothing to take back" in done.out
    assert re.search(r"next request: about \d+ tokens of \d+", done.out)
    assert re.search(r"cached: \d+ tokens, at least until \d\d:\d\d:\d\d", done.out)
    assert re.search(r"costs about 0\.\d{4} USD, 0\.\d{4} if nothing is cached", done.out)


async def test_a_summary_is_taken_back(project: Path) -> None:  # F12
    lists = tool_call("list_files", {"directory": "."})
    said = [
        answer(text("one " * 3_000, size=3_000), usage=TokenUsage(prompt=9_000, completion=3_000)),
        answer(lists, usage=TokenUsage(prompt=18_500)),
        answer(text("The gist of it."), usage=TokenUsage(prompt=18_700, completion=20)),
        answer(text("two"), usage=TokenUsage(prompt=5_000)),
        answer(text("three")),
    ]
    window = {"KODE_CONTEXT_WINDOW": "20000", "KODE_MAX_TOKENS": "2000"}
    done = await by_lines(project, "密语\nlist\n/context undo\nand now?\n", said, **window)
    assert done.model is not None
    before, after = (str(chat.body["messages"]) for chat in done.model.chats[-2:])
    assert "密语" in before, done.out  # the user's words stay below a summary
    assert ("The gist" in before, "one one" in before) == (True, False), done.out
    assert ("The gist" in after, "one one" in after) == (False, True), done.out


async def test_usage_counts_this_session_and_today(project: Path) -> None:
    counted = [answer(text("a")), answer(text("b")), answer(text("c"))]
    done = await by_lines(
        project, "one\ntwo\n/usage\n/session new\n/usage\nthree\n/usage\n", counted
    )
    assert done.code == 0, done.out
    sessions = re.findall(r"this session: (\d+) answer", done.out)
    today = re.findall(r"today, all sessions: (\d+) answer", done.out)
    assert (sessions, today) == (["2", "0", "1"], ["2", "2", "3"]), done.out
