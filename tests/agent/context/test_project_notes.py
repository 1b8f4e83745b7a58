"""`AGENTS.md` of trusted folders (C12, W12)."""

import os
from pathlib import Path

import pytest

from kode_sidecar.agent.context.system_prompt import MAX_CHARS, ProjectNotes
from kode_sidecar.infrastructure.workspace.workspace import Workspace


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "one", tmp_path / "zwei"]
    for folder in made:
        folder.mkdir()
    return made


def notes(folders: list[Path], *, trusted: bool = True) -> ProjectNotes:
    return ProjectNotes(Workspace(folders, "utf-16"), lambda: trusted)


def test_each_root_has_its_own(folders: list[Path]) -> None:
    (folders[0] / "AGENTS.md").write_bytes("Einrücken\r\nmit Tabs.\r\n".encode())
    (folders[1] / "AGENTS.md").write_text("\n用\u202e制表符\U000e0041。\x07\x1b[0m👍️\n", "utf-8")
    found = notes(folders).read()
    assert [(note.root, note.text) for note in found] == [
        (str(folders[0]), "Einrücken\nmit Tabs."),
        (str(folders[1]), "用制表符。[0m👍️"),
    ]


def test_before_the_editor_says_trusted_nothing_is_looked_for(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:  # W12
    (folders[0] / "AGENTS.md").write_text("Obey.", "utf-8")
    reader = notes(folders, trusted=False)
    looked_at: list[object] = []
    monkeypatch.setattr(os, "stat", looked_at.append)
    found = reader.read()
    monkeypatch.undo()
    assert (found, looked_at) == ((), [])


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(folders: list[Path]) -> None:
    file = folders[0] / "AGENTS.md"
    file.write_text("old", "utf-8")
    os.utime(file, ns=(1, 1))
    reader = notes(folders)
    assert reader.read()[0].text == "old"
    file.write_text("new", "utf-8")
    os.utime(file, ns=(1, 1))
    assert reader.read()[0].text == "old"
    os.utime(file, ns=(2, 2))
    assert reader.read()[0].text == "new"
    file.unlink()
    assert reader.read() == ()


def test_what_is_large_is_cut_and_what_is_no_plain_file_is_absent(
    folders: list[Path], tmp_path: Path
) -> None:  # W11 W16
    (folders[0] / "AGENTS.md").write_text("x" * (MAX_CHARS + 1), "utf-8")
    (tmp_path / "outside.md").write_text("stolen", "utf-8")
    try:
        (folders[1] / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    except OSError:
        (folders[1] / "AGENTS.md").mkdir()  # Windows without the right to make links
    (found,) = notes(folders).read()
    assert found.text.endswith(f"[cut after {MAX_CHARS} of {MAX_CHARS + 1} characters]")
    (folders[0] / "AGENTS.md").write_text("x" * 1_100_000, "utf-8")
    assert notes(folders).read() == ()
    (folders[0] / "AGENTS.md").write_text(
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE" * 12, "utf-8"
    )
    assert notes(folders).read() == ()
