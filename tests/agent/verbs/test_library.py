"""Verbs from files: which there are, what they say, and what hostile files come to (F15)."""

import os
import time
from pathlib import Path

import pytest

from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.verbs.library import MAX_VERBS, VerbFolder, VerbLibrary, VerbTable
from kode_sidecar.agent.verbs.verb_file import MAX_VERB_BYTES, Verb
from kode_sidecar.core.domain.event_parts import Locale
from kode_sidecar.errors import KodeError
from tests.support.files import write

BUILT_IN = ["ask", "commit", "doc", "explain", "fix", "goal", "init", "refactor", "review", "tests"]


def library(*folders: VerbFolder, locale: Locale = "en") -> VerbLibrary:
    return VerbLibrary(PromptFiles(find_prompts(), locale), lambda: folders)


def own(table: VerbTable) -> dict[str, Verb]:
    return {verb.name: verb for verb in table.verbs if verb.place.source != "builtin"}


def test_the_built_in_verbs_are_the_same_in_both_languages() -> None:
    english, chinese = (library(locale=locale).table() for locale in ("en", "zh"))
    assert [verb.name for verb in english.verbs] == BUILT_IN
    assert english.problems == chinese.problems == ()
    for en, zh in zip(english.verbs, chinese.verbs, strict=True):
        assert (en.name, en.context, en.mode, en.agent) == (zh.name, zh.context, zh.mode, zh.agent)
        assert bool(en.arguments) == bool(zh.arguments)
        assert en.title.isascii()
        assert not zh.description.isascii()
        assert zh.body != en.body


def test_every_field_of_a_verb_is_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "commands/git/标签.md": "---\ntitle: 打标签\ndescription: 准备一个标签。\n"
            "arguments: '[版本]'\ncontext: [changes, file]\nagent: coder\nmode: auto\n"
            "model: kimi-k2\neffort: high\nother: 1\n---\n为 $1 打标签。\n"
        },
    )
    verb = own(library(VerbFolder("user", tmp_path)).table())["git:标签"]
    assert (verb.title, verb.description, verb.arguments) == (
        "打标签",
        "准备一个标签。",
        "[版本]",
    )
    assert verb.context == ("changes", "file")
    assert (verb.agent, verb.mode, verb.model, verb.effort) == (
        "coder",
        "auto",
        "kimi-k2",
        "high",
    )
    assert verb.body == "为 $1 打标签。"


@pytest.mark.parametrize(
    ("name", "text", "suffix", "about", "hint"),
    [
        ("pr.md", "# Check a PR\nDo $1\n", ".md", "Check a PR", ""),
        ("pr.md", "---\nallowed-tools: Bash(git:*)\n---\nGo\n", ".md", "Go", ""),
        ("pr.md", "---\n---\nGo on\n", ".md", "Go on", ""),
        (
            "pr.md",
            "---\r\ndescription: >-\r\n  two\r\n  lines\r\nargument-hint: [a] [it's]\r\n"
            "model: opus\r\nmode: yolo\r\n---\r\nGo\r\n",
            ".md",
            "two lines",
            "[a] [it's]",
        ),
        ("pr.prompt.md", "---\nmode: agent\ntools: ['x']\n---\nGo\n", ".prompt.md", "Go", ""),
        ("pr.toml", 'description = "A\\nB"\nprompt = """Go {{args}}"""\n', ".toml", "A B", ""),
        ("pr.toml", 'prompt = "Go"\n', ".toml", "Go", ""),
    ],
)
def test_files_of_other_tools_are_read_where_they_lie(
    tmp_path: Path, name: str, text: str, suffix: str, about: str, hint: str
) -> None:
    write(tmp_path, {f"there/{name}": text})
    table = library(VerbFolder("user", tmp_path, "there", foreign=True, suffix=suffix)).table()
    assert table.problems == ()
    verb = own(table)["pr"]
    assert (verb.description, verb.arguments) == (about, hint)
    assert (verb.model, verb.mode, verb.agent) == (None, None, None)


def test_the_users_verb_replaces_a_built_in_one_and_a_projects_does_not(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "home/commands/fix.md": "My fix\n",
            "app/.kode/commands/fix.md": "Their fix\n",
            "app/.kode/commands/explain.md": "Their explain\n",
            "app/.kode/commands/ship.md": "Ship\n",
        },
    )
    project = VerbFolder("project", tmp_path / "app", ".kode/commands")
    table = library(VerbFolder("user", tmp_path / "home"), project).table()
    bodies = {verb.name: verb.body for verb in table.verbs}
    assert bodies["fix"] == "My fix"
    assert bodies["project:fix"] == "Their fix"
    assert bodies["explain"].startswith("Explain this code")
    assert bodies["project:explain"] == "Their explain"
    assert bodies["ship"] == "Ship"
    assert [problem.message for problem in table.problems] == [
        "app/.kode/commands/explain.md: the name `explain` is taken by verbs/explain.md: "
        "use `/project:explain`.",
        "app/.kode/commands/fix.md: the name `fix` is taken by home/commands/fix.md: "
        "use `/project:fix`.",
    ]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("---\nmode: auto\n---\nGo", "line 2: `mode`: a project's verb cannot apply edits"),
        ("---\ntitle: a\nmode: fast\n---\nGo", "line 3: `mode`: 'fast' is not known; use review"),
        ("---\ncontext: [screen]\n---\nGo", "line 2: `context`: 'screen' is not known"),
        ("---\ncontext: file\n---\nGo", "line 2: `context`: expected a list"),
        ("---\neffort: {a: 1}\n---\nGo", "line 2: `effort`: expected a text"),
        ("---\ntitle: " + "x" * 300 + "\n---\nGo", "has 300 characters; the limit is 200"),
        ("---\ntitle: a\n", "the front matter does not end"),
        ("---\n- a\n---\nGo", "expected lines such as"),
        ("---\ntitle: a\n---\n \n", "it holds no prompt"),
        ("", "it holds no prompt"),
    ],
)
def test_a_wrong_file_is_a_problem_with_its_place(tmp_path: Path, text: str, reported: str) -> None:
    write(tmp_path, {".kode/commands/bad.md": text, ".kode/commands/good.md": "Go"})
    table = library(VerbFolder("project", tmp_path, ".kode/commands")).table()
    assert list(own(table)) == ["good"]
    (problem,) = table.problems
    assert problem.file == f"{tmp_path.name}/.kode/commands/bad.md"
    assert reported in problem.message
    with pytest.raises(KodeError, match="bad") as caught:
        table.get("bad")
    assert caught.value.code == "ConfigInvalid"
    assert table.get("nothing") is None


def hostile(number: int) -> bytes:
    """Return one of many files that mean harm."""
    bombs = [
        b"---\n"
        + b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % (c, c, *[c - 1] * 7)
            for c in range(98, 117)
        )
        + b"---\nGo",
        b"---\n" + b"[" * 15_000 + b"\n---\nGo",
        b"---\n" + b"{a: " * 4_000 + b"\n---\nGo",
        b"---\ntitle: !!python/object/apply:os.system ['touch /tmp/harm']\n---\nGo",
        b"---\ntitle: a\ntitle: b\n---\nGo",
        b"---\n" + b"x: 1\n" * 5_000 + b"---\nGo",
        b"---\ntitle: a\n" + b"# " * 20_000,
        b"\xff\xfe\x00G\x00o",
        b'---\ntitle: "\\u202eevil\\u0007"\n---\n\x1b]0;x\x07Go\xe2\x80\xae',
        b"x" * 10_000_000,
        b'key = "sk-' + b"a1B2c3D4" * 6 + b'"',
        b"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\n",
    ]
    return bombs[number % len(bombs)]


def test_a_hundred_hostile_files_are_read_without_harm(tmp_path: Path) -> None:
    folder = tmp_path / "app" / ".kode" / "commands"
    folder.mkdir(parents=True)
    for number in range(94):
        (folder / f"bad{number:02}.{'toml' if number % 9 == 8 else 'md'}").write_bytes(
            hostile(number)
        )
    if os.name != "nt":
        (folder / "a\x1b[31mb.md").write_bytes(b"Go")
        with open(os.fsencode(folder) + b"/\xff.md", "wb") as file:
            file.write(b"Go")
        (tmp_path / "secret.md").write_text("outside")
        (folder / "link.md").symlink_to(tmp_path / "secret.md")
        (folder / "out").symlink_to(tmp_path, target_is_directory=True)
        (folder / "loop.md").symlink_to(folder / "loop.md")
        os.mkfifo(folder / "pipe.md")
    (folder / ("x" * 100 + ".md")).write_bytes(b"Go")
    (folder / "good.md").write_bytes(b"Go")
    table = library(
        VerbFolder("project", tmp_path / "app", ".kode/commands"),
        VerbFolder("project", tmp_path / "app", ".kode/commands", suffix=".toml"),
    ).table()
    found = own(table)
    assert found["good"].body == "Go"
    assert "outside" not in "".join(verb.body for verb in found.values())
    shown = "".join(
        text
        for verb in found.values()
        for text in (verb.name, verb.title, verb.description, verb.body)
    ) + "".join(problem.message + problem.file for problem in table.problems)
    assert not any(char in shown for char in "\x1b\x07\u202e\udcff")
    assert len(table.problems) > 80
    assert max(len(problem.message) for problem in table.problems) < 1_000
    assert all(len(verb.body) <= MAX_VERB_BYTES for verb in found.values())


def test_too_many_files_are_cut_and_reported(tmp_path: Path) -> None:
    write(tmp_path, {f"commands/v{number:03}.md": "Go" for number in range(MAX_VERBS + 50)})
    table = library(VerbFolder("user", tmp_path)).table()
    assert len(own(table)) == MAX_VERBS
    assert [problem.message for problem in table.problems] == [
        f"{tmp_path.name}/commands: Only the first {MAX_VERBS} files of this folder are read."
    ]


def test_a_changed_file_counts_at_once_and_an_unchanged_one_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"commands/go.md": "Go"})
    old = time.time() - 100
    os.utime(tmp_path / "commands" / "go.md", (old, old))
    verbs = library(VerbFolder("user", tmp_path))
    first = own(verbs.table())["go"]
    assert own(verbs.table())["go"] is first
    write(tmp_path, {"commands/go.md": "Go on"})
    assert own(verbs.table())["go"].body == "Go on"
    (tmp_path / "commands" / "go.md").unlink()
    assert own(verbs.table()) == {}
