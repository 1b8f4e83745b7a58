"""`read_file`: which text, which lines, what is left out. A8"""

from pathlib import Path

import msgspec
import pytest

from kode_sidecar.agent.tools.read_file import MAX_LINES, ReadFileParams, read_file_tool
from kode_sidecar.core.text.shown_text import strip_line_numbers
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.workspace import TextView, Workspace
from tests.support.files import call, write


def workspace(root: Path, file_encoding: str | None = None) -> Workspace:
    return Workspace([root], "utf-16", file_encoding=file_encoding)


async def test_numbered_lines_under_a_header(tmp_path: Path) -> None:
    write(tmp_path, {"src/a.py": "one\n\ttwo\n\nfour"})
    outcome = await call(read_file_tool(workspace(tmp_path)), path="src/a.py")
    rev = text_rev("one\n\ttwo\n\nfour")[:12]
    assert outcome.content == (
        f"[src/a.py · lines 1-4 of 4 · base_rev {rev} · from disk · no newline at the end]\n"
        "     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour"
    )
    assert (outcome.ok, outcome.summary) == (True, "Read src/a.py 1-4")
    assert strip_line_numbers(outcome.content.partition("\n")[2]) == "one\n\ttwo\n\nfour"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"start": 2, "end": 3}, ["b", "c"]),
        ({"start": 4}, ["d"]),
        ({"end": 1}, ["a"]),
        ({"start": 3, "end": 99}, ["c", "d"]),
        ({"start": 2, "end": 2}, ["b"]),
    ],
)
async def test_ranges(tmp_path: Path, arguments: dict[str, int], shown: list[str]) -> None:
    write(tmp_path, {"a.txt": "a\nb\nc\nd\n"})
    outcome = await call(read_file_tool(workspace(tmp_path)), path="a.txt", **arguments)
    lines = outcome.content.split("\n")[1:]
    assert [line.partition("\t")[2] for line in lines] == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"start": 5}, "has 4 lines"), ({"start": 3, "end": 2}, "before start")],
)
async def test_ranges_that_cannot_be(
    tmp_path: Path, arguments: dict[str, int], message: str
) -> None:
    write(tmp_path, {"a.txt": "a\nb\nc\nd\n"})
    with pytest.raises(KodeError, match=message) as caught:
        await call(read_file_tool(workspace(tmp_path)), path="a.txt", **arguments)
    assert caught.value.code == "InvalidArguments"


async def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": ""})
    outcome = await call(read_file_tool(workspace(tmp_path)), path="a.txt")
    assert "the file is empty" in outcome.content
    assert "\n" not in outcome.content


async def test_open_text_beats_the_disk_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "disk\n"})
    space = workspace(tmp_path)
    space.documents.open(path_to_uri(tmp_path / "a.txt"), "text", 1, "bufför\r\n")
    outcome = await call(read_file_tool(space), path="a.txt")
    assert "     1\tbufför" in outcome.content
    assert "from the editor's open buffer · line ends CRLF" in outcome.content
    assert "disk" not in outcome.content


async def test_pending_edits_are_shown_and_noted(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "old\n"})
    reads: list[tuple[str, str, int, int]] = []

    class Seen(Workspace):
        def view(self, document: Document) -> TextView:
            return TextView(document.lf_text.replace("old", "new\nlines"), "with 1 pending edit")

    def on_shown(document: Document, text: str, start: int, end: int) -> None:
        reads.append((document.key, text, start, end))

    space = Seen([tmp_path], "utf-16")
    outcome = await call(read_file_tool(space, on_shown=on_shown), path="a.txt")
    rev = text_rev("new\nlines\n")
    assert f"lines 1-2 of 2 · base_rev {rev[:12]} · with 1 pending edit" in outcome.content
    assert reads == [(space.document("a.txt", purpose="read").key, "new\nlines\n", 1, 2)]


async def test_long_output_is_cut_at_a_stated_line(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "".join(f"{number}\n" for number in range(1, 2_501))})
    tool = read_file_tool(workspace(tmp_path))
    outcome = await call(tool, path="a.txt")
    assert outcome.content.endswith(f"[cut after line {MAX_LINES}; next: start={MAX_LINES + 1}]")
    rest = await call(tool, path="a.txt", start=MAX_LINES + 1)
    assert "  2001\t2001" in rest.content
    assert rest.content.endswith("  2500\t2500")


async def test_long_lines_are_cut_and_the_whole_stays_bounded(tmp_path: Path) -> None:
    # W16
    write(tmp_path, {"a.txt": ("x" * 9_000 + "\n") * 100})
    outcome = await call(read_file_tool(workspace(tmp_path)), path="a.txt")
    assert "[7000 characters cut]" in outcome.content
    assert len(outcome.content) < 60_000
    assert "next: start=" in outcome.content


async def test_control_characters_are_not_shown(tmp_path: Path) -> None:
    # W13
    write(tmp_path, {"a.txt": "red\x1b[31m\x0c\x9b\ttab\u2028\n"})
    outcome = await call(read_file_tool(workspace(tmp_path)), path="a.txt")
    assert outcome.content.endswith("     1\tred[31m\ttab\u2028")
    assert "3 control characters not shown" in outcome.content


async def test_a_file_in_gbk_says_its_encoding(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "中文\r\n".encode("gbk")})
    outcome = await call(read_file_tool(workspace(tmp_path, "gbk")), path="a.txt")
    assert "     1\t中文" in outcome.content
    assert "gb18030 · line ends CRLF" in outcome.content


def test_parameters_are_strict() -> None:
    for wrong in ({"path": "a", "begin": 1}, {"path": "a", "start": 0}, {}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, ReadFileParams)
    schema = msgspec.json.schema(ReadFileParams)["$defs"]["ReadFileParams"]
    assert "base_rev" in schema["description"]
    assert schema["required"] == ["path"]


async def test_a_line_that_was_cut_does_not_count_as_shown(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": f"one\n{'x' * 2_001}\nthree\n", "b.txt": f"{'x' * 2_000}\n"})
    reads: list[tuple[int, int]] = []

    def on_shown(document: Document, text: str, start: int, end: int) -> None:
        reads.append((start, end))

    tool = read_file_tool(workspace(tmp_path), on_shown=on_shown)
    await call(tool, path="a.txt")
    assert reads == [(1, 1), (3, 3)]
    await call(tool, path="b.txt")
    assert reads[2:] == [(1, 1)]
