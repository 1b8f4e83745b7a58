"""Open text first, disk second; encodings; what is never read or never edited."""

import codecs
from pathlib import Path

import pytest

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.sensitive import is_refused, runs_in_build, why_sensitive
from kode_sidecar.infrastructure.workspace.workspace import Purpose, Workspace, default_view
from tests.support.files import link, write

CHINESE = "第一行\r\n中文，😀\r\n"


def workspace(root: Path, file_encoding: str | None = None) -> Workspace:
    return Workspace([root], "utf-16", file_encoding=file_encoding)


def refusal(space: Workspace, path: str, purpose: Purpose = "read") -> KodeError:
    with pytest.raises(KodeError) as caught:
        space.document(path, purpose=purpose)
    return caught.value


@pytest.mark.parametrize(
    ("data", "setting", "encoding", "bom"),
    [
        (CHINESE.encode(), None, "utf-8", False),
        (codecs.BOM_UTF8 + CHINESE.encode(), None, "utf-8", True),
        (codecs.BOM_UTF16_LE + CHINESE.encode("utf-16-le"), None, "utf-16-le", True),
        (codecs.BOM_UTF16_BE + CHINESE.encode("utf-16-be"), "gbk", "utf-16-be", True),
        (codecs.BOM_UTF32_LE + CHINESE.encode("utf-32-le"), None, "utf-32-le", True),
        (CHINESE.encode("gb18030"), "gbk", "gb18030", False),
        (CHINESE.encode("gb18030"), "GB2312", "gb18030", False),
        (CHINESE.encode(), "gbk", "utf-8", False),
    ],
)
def test_encodings(
    tmp_path: Path, data: bytes, setting: str | None, encoding: str, bom: bool
) -> None:
    write(tmp_path, {"a.txt": data})
    document = workspace(tmp_path, setting).document("a.txt", purpose="edit")
    assert (document.text, document.encoding, document.bom) == (CHINESE, encoding, bom)
    assert (document.eol, document.version, document.is_open) == ("\r\n", None, False)
    assert document.rev == workspace(tmp_path, setting).document("a.txt", purpose="read").rev


@pytest.mark.parametrize(
    ("data", "setting", "hint"),
    [
        (CHINESE.encode("gb18030"), None, "fileEncoding"),
        (b"abc\x81", "ascii", "ascii"),
        (codecs.BOM_UTF8 + b"\xff", "gbk", "BOM"),
        (b"\x7fELF\x00\x00", "latin-1", "binary"),
    ],
)
def test_what_cannot_be_decoded_is_never_guessed(
    tmp_path: Path, data: bytes, setting: str | None, hint: str
) -> None:
    write(tmp_path, {"a.txt": data})
    error = refusal(workspace(tmp_path, setting), "a.txt")
    assert error.code == "NotEditable"
    assert hint in error.message


@pytest.mark.parametrize("name", ["klingon", "hex", "a b", "\x00"])
def test_a_wrong_setting_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(KodeError, match="fileEncoding") as caught:
        workspace(tmp_path, name)
    assert caught.value.code == "ConfigInvalid"


def test_open_text_beats_the_disk(tmp_path: Path) -> None:
    write(tmp_path, {"src/a.py": "disk\n", "src/b.py": "other\n"})
    space = workspace(tmp_path)
    assert space.document("src/a.py", purpose="read").text == "disk\n"
    uri = path_to_uri(tmp_path / "src" / "a.py").replace("/src/", "/%73rc/")
    space.documents.open(uri, "python", 3, "buffer\n")
    document = space.document("src/a.py", purpose="edit")
    assert (document.uri, document.text, document.version) == (uri, "buffer\n", 3)
    assert default_view(document).note == "from the editor's open buffer"
    assert default_view(space.document("src/b.py", purpose="read")).note == "from disk"
    space.documents.close(uri)
    assert space.document("src/a.py", purpose="read").text == "disk\n"


def test_an_open_file_is_found_through_links(tmp_path: Path) -> None:
    write(tmp_path, {"src/a.py": "disk\n"})
    link(tmp_path / "alias.py", "src/a.py")
    space = workspace(tmp_path)
    space.documents.open(path_to_uri(tmp_path / "alias.py"), "python", 1, "buffer\n")
    assert space.document("src/a.py", purpose="read").text == "buffer\n"
    assert space.document("alias.py", purpose="read").text == "buffer\n"


def test_an_open_file_outside_is_not_reached_by_a_hard_link(tmp_path: Path) -> None:
    write(tmp_path, {"outside.txt": "private\n", "app/x.txt": ""})
    (tmp_path / "app" / "hard.txt").hardlink_to(tmp_path / "outside.txt")
    space = workspace(tmp_path / "app")
    space.documents.open(path_to_uri(tmp_path / "outside.txt"), "text", 1, "private\n")
    assert refusal(space, "hard.txt").code == "Denied"
    assert refusal(space, str(tmp_path / "outside.txt")).code == "PathOutsideRoots"


def test_an_open_buffer_knows_the_encoding_of_its_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": CHINESE.encode("gb18030"), "b.txt": codecs.BOM_UTF8 + b"x"})
    space = workspace(tmp_path, "gbk")
    for name in ("a.txt", "b.txt", "new.txt"):
        space.documents.open(path_to_uri(tmp_path / name), "text", 1, "typed\n")
    facts = [
        (document.encoding, document.bom)
        for name in ("a.txt", "b.txt", "new.txt")
        for document in [space.document(name, purpose="edit")]
    ]
    assert facts == [("gb18030", False), ("utf-8", True), ("utf-8", False)]


def test_files_that_exist_only_in_the_editor(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    space.documents.open(path_to_uri(tmp_path / "new.py"), "python", 1, "new\n")
    space.documents.open("untitled:Untitled-1", "python", 1, "draft\n")
    assert space.document("new.py", purpose="edit").text == "new\n"
    assert space.document("untitled:Untitled-1", purpose="edit").text == "draft\n"
    assert space.display_path("untitled:Untitled-1") == "untitled:Untitled-1"
    assert refusal(space, "untitled:Untitled-2").code == "PathOutsideRoots"


def test_an_unsynced_document_is_neither_read_nor_edited(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "disk\n"})
    space = workspace(tmp_path)
    uri = path_to_uri(tmp_path / "a.py")
    space.documents.mark_unsynced(uri, "a message could not be decoded")
    for purpose in ("read", "edit"):
        error = refusal(space, "a.py", purpose)
        assert (error.code, error.retryable) == ("Unsynced", True)
        assert "a message could not be decoded" in error.message
    space.documents.change(uri, 2, [{"text": "whole\n"}])
    assert space.document("a.py", purpose="edit").text == "whole\n"


def test_missing_files_are_named_with_what_is_near(tmp_path: Path) -> None:
    write(tmp_path, {"src/application.py": ""})
    error = refusal(workspace(tmp_path), "src/aplication.py")
    assert error.code == "NotFound"
    assert "src/application.py" in error.message


@pytest.mark.parametrize(
    "name",
    """
    .env .env.local prod.env .ENV certs/server.pem a.key .npmrc .netrc id_rsa id_ed25519
    .aws/credentials .ssh/config .kube/config k.p12 .docker/config.json secrets.yaml
    .git-credentials .pypirc .git/config
    """.split(),  # noqa: SIM905
)
def test_credentials_are_denied_by_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: "user=me\n"})
    space = workspace(tmp_path)
    assert refusal(space, name).code == "Denied"
    space.documents.open(path_to_uri(tmp_path / name), "text", 1, "user=me\n")
    assert refusal(space, name, "edit").code == "Denied"


@pytest.mark.parametrize("name", [".env.example", "id_rsa.pub", "environment.py", "keys.py"])
def test_harmless_names_are_read(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: "user=me\n"})
    assert workspace(tmp_path).document(name, purpose="read").text == "user=me\n"


def test_a_link_does_not_hide_credentials(tmp_path: Path) -> None:
    write(tmp_path, {".env": "K=1\n", "plain.txt": "x\n"})
    link(tmp_path / "notes.txt", ".env")
    link(tmp_path / "server.pem", "plain.txt")
    assert refusal(workspace(tmp_path), "notes.txt").code == "Denied"
    assert refusal(workspace(tmp_path), "server.pem").code == "Denied"


BASE64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
OF_A_CERTIFICATE = "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ"


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        (f"-----BEGIN RSA PRIVATE KEY-----\n{BASE64}\n", True),
        (f'{{"key": "-----BEGIN PRIVATE KEY-----\\n{BASE64}"}}', True),
        ("aws = 'AKIA" + "Q3EGRTLK7MZX2B5N'", True),
        ("key: sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4", True),
        ("token = ghp_" + "a1B2c3D4e5" * 4, True),
        ("pattern = '-----BEGIN [A-Z ]*PRIVATE KEY-----'\n", False),
        ("aws = 'AKIAIOSFODNN7EXAMPLE'", False),
        (".sk-fading-circle-with-a-long-name-12 { }", False),
        ("task-a1B2c3D4e5F6g7H8i9J0k1L2m3", False),
        (f"-----BEGIN CERTIFICATE-----\n{OF_A_CERTIFICATE}\n", False),
    ],
)
def test_credentials_are_denied_by_content(tmp_path: Path, text: str, denied: bool) -> None:
    write(tmp_path, {"a.txt": text})
    space = workspace(tmp_path)
    if denied:
        error = refusal(space, "a.txt")
        assert error.code == "Denied"
        assert text[-16:] not in error.message
    else:
        assert space.document("a.txt", purpose="read").text == text


@pytest.mark.parametrize(
    "path",
    """
    .vscode/settings.json sub/.vscode/tasks.json x.code-workspace .idea/a.xml .nvim.lua .exrc
    .envrc .github/workflows/ci.yml .gitlab-ci.yml Jenkinsfile .husky/pre-commit .githooks/x
    .devcontainer/devcontainer.json AGENTS.md docs/CLAUDE.md .mcp.json .cursor/rules/a.mdc
    package.json .kode/config.yaml agents.MD .VSCode/a .vscode./a .vs\u200bcode/a
    .git/hooks/pre-commit conftest.py tests/conftest.py sitecustomize.py x.pth
    .gdbinit .eslintrc.cjs
    eslint.config.mjs .cargo/config.toml build.gradle.kts Gemfile .bashrc Package.swift mix.exs
    .cursorrules .clinerules .clinerules/a.md .claude/settings.json .codex/config.toml
    .gemini/settings.json GEMINI.md .windsurfrules .windsurf/rules/a.md .roo/mcp.json .roorules-code
    .github/copilot-instructions.md copilot-instructions.md a.instructions.md a.prompt.md
    .kilocode/mcp.json .amazonq/rules/a.md .augment-guidelines .goosehints .junie/guidelines.md
    .kiro/steering/a.md .trae/rules/a.md .qwen/settings.json opencode.json .opencode/agent/a.md
    crush.json CRUSH.md WARP.md .openhands/microagents/a.md .rules .aider.conf.yml .aiderignore
    .continue/config.yaml .tabnine/mcp.json .ruler/ruler.toml AGENT.md sub/.Mcp.json a.mdc .replit
    """.split(),  # noqa: SIM905
)
def test_sensitive_targets(path: str) -> None:
    assert why_sensitive(path.split("/"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a\u202egpj.py", "U+202E"),
        ("readme\u200b.txt", "U+200B"),
        ("tag\U000e0041.py", "U+E0041"),
        ("p\u0430yload.py", "alphabets"),  # Cyrillic
        ("\u03bfpen.txt", "alphabets"),  # Greek
        ("\uff4dain.py", "plain letters"),  # full width
    ],
)
def test_a_name_that_deceives_needs_a_yes(name: str, why: str) -> None:
    assert why in (why_sensitive(("src", name)) or "")
    assert why in (why_sensitive((name, "a.py")) or "")


@pytest.mark.parametrize(
    "name",
    [
        "报告.md",
        "m\u00fccke.py",
        "файл.py",
        "αβγ_test.py",
        "日本語file.txt",
        "🍵.md",
        "👨\u200d👩\u200d👧.md",
    ],
)
def test_honest_names_of_all_scripts_do_not(name: str) -> None:
    assert why_sensitive((name,)) is None


@pytest.mark.parametrize("path", ["src/a.py", "vscode/a", "git.py", "README.md", "ci/a", "x.lua"])
def test_other_targets_are_not_sensitive(path: str) -> None:
    assert not why_sensitive(path.split("/"))


@pytest.mark.parametrize(
    "path",
    """
    Makefile sub/pyproject.toml tox.ini tsconfig.json vite.config.ts Cargo.toml app.csproj pom.xml
    Dockerfile docker-compose.yml CMakeLists.txt justfile flake.nix noxfile.py
    """.split(),  # noqa: SIM905
)
def test_what_runs_in_a_build_is_flagged_and_not_asked_for(path: str) -> None:
    assert runs_in_build(path.split("/"))
    assert not why_sensitive(path.split("/"))
    assert not runs_in_build(["src", "main.py"])


@pytest.mark.parametrize("name", [".git", ".GIT", ".git ", ".g\u200cit", ".git::$INDEX_ALLOCATION"])
def test_git_is_refused_however_it_is_spelled(name: str) -> None:
    assert is_refused(["sub", name, "hooks", "pre-commit"])


def test_git_is_read_but_never_edited(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "ref\n", ".github/a.yml": "a\n", "state/x.yaml": "x\n"})
    link(tmp_path / "head", ".git/HEAD")
    space = Workspace([tmp_path], "utf-16", own_files=[tmp_path / "state"])
    assert space.document(".git/HEAD", purpose="read").text == "ref\n"
    assert refusal(space, ".git/HEAD", "edit").code == "Denied"
    assert refusal(space, "head", "edit").code == "Denied"
    assert space.document(".github/a.yml", purpose="edit").text == "a\n"
    assert [space.is_sensitive(name) for name in (".github/a.yml", "state/x.yaml", "b.py")] == [
        True,
        True,
        False,
    ]
    assert space.is_sensitive(path_to_uri(tmp_path / ".github" / "a.yml"))
    assert space.is_sensitive("../a.py")


def test_a_root_inside_a_sensitive_folder_is_not_sensitive_itself(tmp_path: Path) -> None:
    write(tmp_path, {".vscode/extensions/mine/a.py": ""})
    space = workspace(tmp_path / ".vscode" / "extensions" / "mine")
    assert not space.is_sensitive(path_to_uri(tmp_path / ".vscode/extensions/mine/a.py"))


def test_edits_have_limits_that_reading_has_not(tmp_path: Path) -> None:
    # W16
    write(tmp_path, {"lines.txt": "x\n" * 200_001, "wide.txt": "x" * 1_000_001})
    space = workspace(tmp_path)
    for name in ("lines.txt", "wide.txt"):
        assert space.document(name, purpose="read").text
        assert refusal(space, name, "edit").code == "TooLarge"


def test_paths_are_shown_below_their_root(tmp_path: Path) -> None:
    write(tmp_path, {"app/src/a.py": "", "lib/b.py": ""})
    one = workspace(tmp_path / "app")
    assert one.display_path(path_to_uri(tmp_path / "app/src/a.py")) == "src/a.py"
    assert one.display_path(tmp_path / "app" / "src" / "a.py") == "src/a.py"
    assert one.display_path(tmp_path / "lib" / "b.py") == "b.py"
    assert one.display_path("src\\a.py") == "src/a.py"
    two = Workspace([tmp_path / "app", tmp_path / "lib"], "utf-16")
    assert two.display_path(tmp_path / "lib" / "b.py") == "lib/b.py"
    two.set_roots([tmp_path / "lib"])
    assert two.display_path(tmp_path / "lib" / "b.py") == "b.py"
    assert refusal(two, str(tmp_path / "app/src/a.py")).code == "PathOutsideRoots"
