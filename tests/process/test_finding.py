"""Files are found, and only the one that is meant: names, ignore rules, checkouts, folders."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import World, sidecar

NOT_ON_WINDOWS = pytest.mark.skipif(os.name == "nt", reason="Windows forbids these names")


def results(world: World) -> list[str]:
    """What the tools answered, as the model's last request holds it."""
    return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


async def run(
    roots: Sequence[Path],
    *calls: tuple[str, dict[str, Any]],
    looked_at: Path | None = None,
    folders: dict[str, Any] | None = None,
) -> list[str]:
    """One turn that makes these calls, a step each; the tools' answers."""
    script = [answer(tool_call(name, arguments)) for name, arguments in calls]
    async with sidecar([*script, answer(text("ok"))], roots=roots) as world:
        if folders is not None:
            world.client.notify("workspace/didChangeWorkspaceFolders", folders)
        if looked_at is not None:
            world.client.notify("kode/editor/didChangeContext", {"uri": looked_at.as_uri()})
        session = await world.session(mode="auto")
        await world.turn(session, "go")
        return results(world)


def edit(path: str, old: str = "same", new: str = "changed") -> tuple[str, dict[str, Any]]:
    return "propose_edit", {"path": path, "edits": [{"old": old, "new": new}]}


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    write(
        tmp_path,
        {
            "backend/package.json": "same\n",
            "backend/src/a.ts": "needle\n",
            "frontend/package.json": "same\n",
            "frontend/only.txt": "same\n",
            "frontend/src/a.ts": "needle\n",
            "frontend/web/page.ts": "x\n",
        },
    )
    return [tmp_path / "backend", tmp_path / "frontend"]


@pytest.mark.parametrize(
    "call",
    [
        edit("package.json"),
        ("propose_file", {"action": "delete", "path": "package.json"}),
        ("propose_file", {"action": "move", "path": "package.json", "to": "frontend/p.json"}),
        ("propose_file", {"action": "move", "path": "frontend/only.txt", "to": "package.json"}),
        ("propose_file", {"action": "overwrite", "path": "./package.json", "content": "x\n"}),
        ("propose_file", {"action": "create", "path": "NEW.md", "content": "x\n"}),
        ("propose_file", {"action": "create", "path": "src/new.ts", "content": "x\n"}),
        ("propose_file", {"action": "create", "path": "new/folder/a.ts", "content": "x\n"}),
    ],
)
async def test_no_file_is_changed_by_a_name_that_means_several(
    two: list[Path], call: tuple[str, dict[str, Any]]
) -> None:
    before = {file: file.read_bytes() for root in two for file in root.rglob("*.*")}
    (reported,) = await run(two, call, looked_at=two[0] / "package.json")
    assert "backend/" in reported
    assert "frontend/" in reported
    assert {file: file.read_bytes() for root in two for file in root.rglob("*.*")} == before


async def test_a_name_that_means_one_file_is_enough(two: list[Path]) -> None:
    reported = await run(
        two,
        edit("only.txt"),
        edit("backend/src/a.ts", "needle"),
        ("propose_file", {"action": "create", "path": "web/new.ts", "content": "x\n"}),
        ("propose_file", {"action": "create", "path": "backend/NEW.md", "content": "x\n"}),
    )
    assert [one.split(" ")[0] for one in reported] == ["What"] * 4
    assert ["frontend/only.txt" in reported[0], "backend/src/a.ts" in reported[1]] == [True, True]
    assert (two[1] / "web/new.ts").exists()
    assert (two[0] / "NEW.md").exists()


@pytest.mark.parametrize(("looked_at", "chosen"), [("backend", 0), ("frontend", 1)])
async def test_a_read_takes_what_the_user_looks_at_and_says_so(
    two: list[Path], looked_at: str, chosen: int
) -> None:
    names = [f"{name}/package.json" for name in ("backend", "frontend")]
    (reported,) = await run(
        two, ("read_file", {"path": "package.json"}), looked_at=two[0].parent / looked_at / "x.md"
    )
    assert reported.startswith(f"[{names[chosen]} ")
    assert f"[the same name has: {names[1 - chosen]}]" in reported


async def test_a_folder_of_several_roots_is_listed_and_searched_in_each(two: list[Path]) -> None:
    listed, found = await run(
        two,
        ("list_files", {"directory": "src"}),
        ("search_code", {"query": "needle", "path": "src"}),
    )
    assert listed.split("\n")[1:] == ["backend/src/a.ts", "frontend/src/a.ts"]
    assert found.split("\n")[1:] == ["backend/src/a.ts:1: needle", "frontend/src/a.ts:1: needle"]


@pytest.mark.parametrize("order", [("app", "app/packages/x"), ("app/packages/x", "app")])
async def test_a_root_inside_another_is_listed_once(tmp_path: Path, order: list[str]) -> None:
    write(tmp_path, {"app/a.py": "needle\n", "app/packages/x/b.py": "needle\n"})
    listed, found = await run(
        [tmp_path / name for name in order],
        ("list_files", {}),
        ("search_code", {"query": "needle"}),
    )
    assert listed.split("\n")[1:] == ["app/a.py", "x/b.py"]
    assert found.split("\n")[1:] == ["app/a.py:1: needle", "x/b.py:1: needle"]


@NOT_ON_WINDOWS
@pytest.mark.parametrize(
    "name",
    [
        "src/aux.c", "con.py", "nul/a.txt", "notes~1.md", "LICENSE.", "a .d/b ", "a:b.md",
        "10:00/x.md", "back\\slash.txt", "d\\e/f.txt", "clock$", "COM1.log",
    ],
)  # fmt: skip
async def test_what_only_windows_forbids_is_used_where_it_exists(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"other.txt": "x\n"})
    place = tmp_path.joinpath(*name.split("/"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("needle\n")
    listed, found, read, edited, inside = await run(
        [tmp_path],
        ("list_files", {}),
        ("search_code", {"query": "needle"}),
        ("read_file", {"path": name}),
        edit(name, "needle", "found"),
        ("read_file", {"path": str(place)}),
    )
    assert name in listed.split("\n")
    assert f"{name}:1: needle" in found
    assert "1\tneedle" in read
    assert edited.startswith("What became of 1 hunk"), edited
    assert "1\tfound" in inside


@pytest.mark.parametrize("name", ["nul", "src/aux.c", "a:b.md", "x~1.md", "end.", "end "])
async def test_such_a_name_is_never_made(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"a.txt": "x\n"})
    made, moved = await run(
        [tmp_path],
        ("propose_file", {"action": "create", "path": name, "content": "x\n"}),
        ("propose_file", {"action": "move", "path": "a.txt", "to": name}),
    )
    assert not made.startswith("What became"), made
    assert not moved.startswith("What became"), moved
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["a.txt"]


@NOT_ON_WINDOWS
async def test_a_name_with_a_line_end_is_one_entry(tmp_path: Path) -> None:
    write(tmp_path, {"x\ny.txt": "a\n", "z.txt": "a\n"})
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a\n")
    (reported,) = await run([tmp_path], ("list_files", {}))
    cannot = "(cannot be opened: no path can hold such a name)"
    assert reported.split("\n")[1:] == [f"x\\ny.txt {cannot}", "z.txt", f"\\udcff.txt {cannot}"]


HIDDEN: dict[str, str | bytes] = {
    ".gitignore": "scripts/*\nbuild/\n*.log\n*.{txt,md}\n",
    "scripts/writer.py": "needle\n",
    "scripts/deep/er.py": "needle\n",
    "build/o.bin": "needle\n",
    "made/.gitignore": "*\n",
    "made/m.py": "needle\n",
    "a.log": "needle\n",
    "b.py": "x\n",
    "braces.txt": "braced\n",
}


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"path": "scripts"}, ["scripts/deep/er.py", "scripts/writer.py"]),
        ({"path": "scripts/deep"}, ["scripts/deep/er.py"]),
        ({"path": "build"}, ["build/o.bin"]),
        ({"path": "made"}, ["made/m.py"]),
        ({"path": "a.log"}, ["a.log"]),
        ({"query": "braced"}, ["braces.txt"]),
    ],
)
async def test_what_is_named_is_searched_whichever_rule_hides_it(
    tmp_path: Path, search: dict[str, str], expected: list[str]
) -> None:
    write(tmp_path, HIDDEN)
    (reported,) = await run([tmp_path], ("search_code", {"query": "needle", **search}))
    hits = [line.partition(":")[0] for line in reported.split("\n")[1:] if not line.startswith("[")]
    assert hits == expected


@pytest.mark.parametrize(
    ("search", "remark"),
    [
        ({"query": "needle"}, "files not searched: 7 ignored, 1 over 10 MB, 1 binary;"),
        ({"query": "needle", "glob": "*.log"}, "files not searched: 1 ignored;"),
        ({"query": "日本"}, "1 not UTF-8 and at best read as gb18030;"),
    ],
)
async def test_an_answer_says_what_was_not_searched(
    tmp_path: Path, search: dict[str, str], remark: str
) -> None:
    write(tmp_path, {**HIDDEN, "made/m.py": "x", "x.bin": b"\0needle", "node_modules/n.js": "x\n"})
    write(tmp_path, {"sjis.c": "日本語\n".encode("shift_jis"), "large.c": ""})
    os.truncate(tmp_path / "large.c", 10_000_001)
    (reported,) = await run([tmp_path], ("search_code", search))
    assert reported.startswith("No matches")
    assert remark in reported
    assert "name a file or folder as path to look there]" in reported


ROUTES: dict[str, str | bytes] = {
    "app/[id]/page.tsx": "needle\n",
    "app/i/page.tsx": "needle\n",
    "app/x/page.tsx": "needle\n",
    "app/(auth)/[...slug]/p.tsx": "needle\n",
    "app/[[...all]]/q.tsx": "needle\n",
    "app/[id]/[a-c].ts": "needle\n",
    "app/[id]/b.ts": "needle\n",
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("app/[id]/*.tsx", ["app/[id]/page.tsx", "app/i/page.tsx"]),
        ("**/[id]/page.*", ["app/[id]/page.tsx", "app/i/page.tsx"]),
        ("**/[...slug]/*", ["app/(auth)/[...slug]/p.tsx"]),
        ("app/[[...all]]/*", ["app/[[...all]]/q.tsx"]),
        ("app/[id]/[a-c].ts", ["app/[id]/[a-c].ts", "app/[id]/b.ts"]),
        ("app/{[id],x}/*.tsx", ["app/[id]/page.tsx", "app/i/page.tsx", "app/x/page.tsx"]),
        ("app/(auth)/**", ["app/(auth)/[...slug]/p.tsx"]),
        ("app/[wx]/*", ["app/x/page.tsx"]),
    ],
)
async def test_a_bracket_part_means_the_folder_of_that_name_too(
    tmp_path: Path, pattern: str, expected: list[str]
) -> None:
    write(tmp_path, ROUTES)
    listed, found = await run(
        [tmp_path],
        ("list_files", {"pattern": pattern}),
        ("search_code", {"query": "needle", "glob": pattern}),
    )
    assert listed.split("\n")[1:] == expected
    assert found.split("\n")[1:] == [f"{path}:1: needle" for path in expected]


@pytest.mark.parametrize("mark", [".git", ".git/HEAD"])
async def test_a_checkout_inside_is_another_project(tmp_path: Path, mark: str) -> None:
    write(
        tmp_path,
        {
            "main.py": "needle\n",
            ".trees/one/main.py": "needle\n",
            ".trees/one/deep/x.py": "needle\n",
            f".trees/one/{mark}": "gitdir: nowhere\n",
            "lib/other/x.py": "needle\n",
            f"lib/other/{mark}": "ref: x\n",
        },
    )
    listed, found, named, deep, read = await run(
        [tmp_path],
        ("list_files", {}),
        ("search_code", {"query": "needle"}),
        ("list_files", {"directory": "lib/other"}),
        ("search_code", {"query": "needle", "path": ".trees/one/deep"}),
        ("read_file", {"path": ".trees/one/main.py"}),
    )
    remark = "[not looked into, as checkouts of their own: .trees/one, lib/other; "
    assert listed.split("\n")[1:2] == ["main.py"]
    assert listed.split("\n")[2].startswith(remark)
    assert found.split("\n")[1] == "main.py:1: needle"
    assert remark in found
    assert ".trees/one/main.py:1" not in found
    assert named.split("\n")[1:] == ["lib/other/x.py"]
    assert ".trees/one/deep/x.py:1: needle" in deep
    assert "1\tneedle" in read


async def test_a_folder_of_repositories_is_no_repository(tmp_path: Path) -> None:
    write(tmp_path, {f"{name}/{file}": "x\n" for name in "ab" for file in ("a.py", ".git/HEAD")})
    (listed,) = await run([tmp_path], ("list_files", {}))
    assert listed.split("\n")[1:] == ["a/a.py", "b/a.py"]


async def test_a_change_of_folders_right_behind_the_start_counts(two: list[Path]) -> None:
    event = {
        "added": [{"uri": two[1].as_uri(), "name": "frontend"}],
        "removed": [{"uri": two[0].as_uri(), "name": "backend"}],
    }
    listed, read = await run(
        two[:1],
        ("list_files", {}),
        ("read_file", {"path": "only.txt"}),
        folders={"event": event},
    )
    assert listed.split("\n")[1:] == ["only.txt", "package.json", "src/a.ts", "web/page.ts"]
    assert "1\tsame" in read
