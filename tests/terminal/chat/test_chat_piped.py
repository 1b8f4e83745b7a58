"""The chat fed by a pipe: nobody is asked, and files are written back byte for byte."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_program import by_lines
from tests.support.model_script import answer, failure, text, tool_call

pytestmark = pytest.mark.program

GBK = "// 茶铺的价目\r\nlet 单价 = 38;\r\n\r\nlet 数量 = 2;\nkeep('€', '𠮷');\r\n"
BOM = "\ufeff" + "// unsaved 🍵\r\na = 1\r\nb = 2"


def propose(path: str, *edits: tuple[str, str]) -> Any:
    return tool_call(
        "propose_edit", {"path": path, "edits": [{"old": o, "new": n} for o, n in edits]}
    )


def file(action: str, path: str, **more: str) -> Any:
    return tool_call("propose_file", {"action": action, "path": path, **more})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "茶 shop"
    folder.mkdir()
    (folder / "价目.js").write_bytes(GBK.encode("gb18030"))
    (folder / "bom.py").write_bytes(BOM.encode())
    (folder / ".vscode").mkdir()
    (folder / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    return folder


GBK_EDIT = propose("价目.js", ("let 单价 = 38;", "let 单价 = 40; // 涨价 🍵\nlet 新 = '€';"))
GBK_AFTER = GBK.replace("单价 = 38;", "单价 = 40; // 涨价 🍵\r\nlet 新 = '€';")
BOTH = [answer(GBK_EDIT, propose("bom.py", ("b = 2", "b = 3"))), answer(text("Done."))]


@pytest.mark.parametrize("mode", ["review", "auto", "ask"])
async def test_accepted_hunks_are_written_and_nothing_else(project: Path, mode: str) -> None:
    done = await by_lines(
        project, "edit\n", BOTH, "--accept", "--mode", mode, KODE_FILE_ENCODING="gb18030"
    )
    assert (done.code, done.err) == (0, ""), done.out
    assert (project / "价目.js").read_bytes() == GBK_AFTER.encode("gb18030")
    assert (project / "bom.py").read_bytes() == BOM.replace("b = 2", "b = 3").encode()
    assert done.out.count(" is written") == 2
    assert len(re.findall(r"#\d · applied", done.out)) == 2


async def test_without_accept_hunks_are_rejected(project: Path) -> None:
    responses = [*BOTH, answer(text("I see."))]
    done = await by_lines(project, "edit\nwell?\n", responses, KODE_FILE_ENCODING="gb18030")
    assert done.code == 0, done.out
    assert (project / "价目.js").read_bytes() == GBK.encode("gb18030")
    assert (project / "bom.py").read_bytes() == BOM.encode()
    assert len(re.findall(r"#\d · rejected", done.out)) == 2
    assert done.model is not None
    assert "rejected" in str(done.model.chats[-1].body["messages"])
    assert "\x1b" not in done.out  # no terminal, no colours


FILES = [
    answer(
        file("create", "src/新.py", content="a = '🍵'\nb = 2\n"),
        file("create", "empty.py", content=""),
        propose("价目.js", ("let 单价 = 38;", "let 单价 = 39;")),
        file("move", "价目.js", to="sub/价.js"),
        file("delete", "bom.py"),
    ),
    answer(text("Done.")),
]


@pytest.mark.parametrize("mode", ["review", "auto"])
async def test_accepted_files_are_made_moved_and_deleted(project: Path, mode: str) -> None:
    done = await by_lines(
        project, "files\n", FILES, "--accept", "--mode", mode, KODE_FILE_ENCODING="gb18030"
    )
    assert (done.code, done.err) == (0, ""), done.out
    assert "⚠" not in done.out
    assert (project / "src" / "新.py").read_bytes() == "a = '🍵'\nb = 2\n".encode()
    assert (project / "empty.py").read_bytes() == b""
    moved = GBK.replace("单价 = 38", "单价 = 39").encode("gb18030")
    assert (project / "sub" / "价.js").read_bytes() == moved
    assert not (project / "价目.js").exists()
    assert not (project / "bom.py").exists()
    assert len(re.findall(r"#\d · applied", done.out)) == 5
    assert done.out.count(" is written") == 3
    assert f"{project / '价目.js'} is moved to {project / 'sub' / '价.js'}" in done.out
    assert f"{project / 'bom.py'} is deleted" in done.out


async def test_without_accept_no_file_is_touched(project: Path) -> None:
    before = sorted(project.rglob("*"))
    done = await by_lines(project, "files\n", FILES, KODE_FILE_ENCODING="gb18030")
    assert (done.code, done.err) == (0, ""), done.out
    assert "⚠" not in done.out
    assert sorted(project.rglob("*")) == before
    assert (project / "价目.js").read_bytes() == GBK.encode("gb18030")
    assert len(re.findall(r"#\d · rejected", done.out)) == 5


async def test_a_permission_is_never_given_by_a_pipe(project: Path) -> None:  # W15
    edit = propose(".vscode/tasks.json", ("[]", '[{"command": "rm"}]'))
    done = await by_lines(project, "edit\ny\n", [answer(edit), answer(text("ok"))] * 2, "--accept")
    assert (project / ".vscode" / "tasks.json").read_bytes() == b'{"tasks": []}\n'
    assert "asks: " in done.out
    assert "denied" in done.out


async def test_a_pipe_makes_no_choice(project: Path) -> None:
    asks = tool_call("ask_user", {"question": "Which?", "choices": ["a", "b"]})
    done = await by_lines(project, "go\n1\n", [answer(asks), answer(text("ok"))] * 2)
    assert done.code == 0, done.out
    assert "? Which?" in done.out
    assert done.model is not None
    assert "The user chose nothing" in str(done.model.chats[1].body["messages"])


async def test_a_prompt_of_several_lines_and_the_commands(project: Path) -> None:
    lines = (
        "/help\n/model\n/model kimi-k2.6\n/mode plan\n/mode wild\n/session\n/nonsense\n/review\n"
        "first \\\nsecond 茶\\\n\nnext\n/quit\nnever\n"
    )
    done = await by_lines(project, lines, [answer(text("one")), answer(text("two"))])
    assert done.code == 0, done.out
    assert done.model is not None
    prompts = [chat.body["messages"][-1]["content"] for chat in done.model.chats]
    assert prompts == ["first \nsecond 茶\n", "next"]
    assert {chat.body["model"] for chat in done.model.chats} == {"kimi-k2.6"}
    assert "planning only" in done.model.chats[0].body["messages"][0]["content"]  # the mode `plan`
    for shown in (
        "/session list",
        "model: ide-chat",
        "there are ide-chat, ",
        "there is no mode wild",
        "/nonsense",
        "nothing waits",
    ):
        assert shown in done.out, shown
    (records,) = re.findall(r"^records: (.+)$", done.out, re.MULTILINE)
    assert (Path(records) / "messages.jsonl").is_file()


async def test_a_new_session_knows_nothing_of_the_first(project: Path) -> None:
    done = await by_lines(
        project, "remember 4711\n/session new\ntwo\n", [answer(text("a")), answer(text("b"))]
    )
    assert done.model is not None
    assert "4711" not in str(done.model.chats[1].body["messages"])
    assert "b" in done.out.splitlines()


async def test_without_a_key_it_says_what_to_set(project: Path) -> None:
    done = await by_lines(project, "hello\n", None)
    assert done.code == 1
    assert "KIMI_API_KEY" in done.out
    assert "run `kode-sidecar setup`" in done.out


async def test_a_failed_turn_is_told_and_ends_with_1(project: Path) -> None:
    wrong = failure(400, "invalid_request_error", "no such thing")
    done = await by_lines(project, "hello\n", [wrong])
    assert done.code == 1
    assert "turn ended: error" in done.out
    assert done.out.count("no such thing") == 1


async def test_a_root_that_is_none(tmp_path: Path) -> None:
    done = await by_lines(tmp_path / "nowhere", "hello\n", ())
    assert done.code == 1
    assert "is no folder" in done.err
