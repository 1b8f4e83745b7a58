"""Files with several names (hard links): read and edited where no name is somebody else's. W11"""

import os
from pathlib import Path

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace import second_names
from kode_sidecar.infrastructure.workspace.saving import replace_file
from kode_sidecar.infrastructure.workspace.workspace import Purpose, Workspace
from tests.support.files import write


@pytest.fixture
def app(tmp_path: Path) -> Path:
    write(
        tmp_path,
        {"store/pkg.ts": "export const n = 1\n", "app/a.md": "one\n", "app/package.json": "{}\n"},
    )
    return tmp_path / "app"


def linked(app: Path, name: str, target: str) -> str:
    (app / name).parent.mkdir(parents=True, exist_ok=True)
    os.link(app / target, app / name)
    return name


def denied(app: Path, name: str, purpose: Purpose) -> str:
    with pytest.raises(KodeError) as caught:
        Workspace([app], "utf-16").document(name, purpose=purpose)
    assert caught.value.code == "Denied"
    return caught.value.message


def text(app: Path, name: str, purpose: Purpose) -> str:
    return Workspace([app], "utf-16").document(name, purpose=purpose).text


@pytest.mark.parametrize("folder", ["node_modules/.pnpm/pkg", ".venv/lib/site-packages/pkg"])
def test_what_a_package_manager_linked_is_read_and_not_edited(app: Path, folder: str) -> None:
    name = linked(app, f"{folder}/pkg.ts", "../store/pkg.ts")
    assert text(app, name, "read") == "export const n = 1\n"
    assert "a store that other projects use" in denied(app, name, "edit")


def test_a_file_with_all_of_its_names_in_the_folder_is_edited_in_place(app: Path) -> None:
    linked(app, "deep/second.md", "a.md")
    assert text(app, "a.md", "edit") == "one\n"
    place = Workspace([app], "utf-16").locate("a.md")
    replace_file(place, b"one\n", b"two\n", second_names=True)
    assert (app / "deep" / "second.md").read_text() == "two\n"
    with pytest.raises(KodeError, match="hard link"):
        replace_file(place, b"two\n", b"three\n")


def test_a_name_outside_is_found_missing(app: Path) -> None:
    linked(app, "hard.ts", "../store/pkg.ts")
    linked(app, "harder.ts", "../store/pkg.ts")
    for purpose in ("read", "edit"):
        assert "perhaps outside of the open folder" in denied(app, "hard.ts", purpose)


def test_a_name_of_credentials_counts_for_all(app: Path) -> None:
    write(app, {".env": "MODE=dev\n"})
    assert "credentials" in denied(app, linked(app, "notes.txt", ".env"), "read")


@pytest.mark.parametrize("guarded", ["package.json", ".git/hooks/pre-commit"])
def test_what_needs_a_yes_is_not_edited_by_another_name(app: Path, guarded: str) -> None:
    write(app, {".git/hooks/pre-commit": "x\n"})
    name = linked(app, "alias.txt", guarded)
    assert text(app, name, "read")
    assert f"a hard link to {guarded}" in denied(app, name, "edit")


def test_the_look_for_names_is_bounded_and_sees_what_moved(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked(app, "b/second.md", "a.md")
    space = Workspace([app], "utf-16")
    assert space.document("a.md", purpose="edit").text == "one\n"
    (app / "b" / "second.md").rename(app.parent / "away.md")
    with pytest.raises(KodeError, match="hard link"):
        space.document("a.md", purpose="edit")
    monkeypatch.setattr(second_names, "MAX_ENTRIES", 1)
    (app.parent / "away.md").rename(app / "b" / "second.md")
    assert "perhaps outside" in denied(app, "a.md", "edit")
