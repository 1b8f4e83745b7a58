"""`AGENTS.md` of trusted folders (C12, W12)."""

import os
from pathlib import Path

import pytest

from kode_sidecar.agent.context.project_notes import (
    MAX_CHARS,
    MAX_CHARS_BELOW,
    NOTE_FILES,
    ProjectNotes,
)
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


def test_its_own_notes_come_before_those_for_other_assistants(folders: list[Path]) -> None:
    (folders[0] / ".github").mkdir()
    for number, name in enumerate(reversed(NOTE_FILES)):
        (folders[0] / name).write_text(f"number {number}", "utf-8")
        (found,) = notes(folders).read()
        assert (found.file, found.text) == (name, f"number {number}")
    (folders[0] / "AGENTS.override.md").write_text(" \n", "utf-8")
    assert notes(folders).read()[0].file == "AGENTS.md", "an empty file says nothing"


def test_on_the_way_to_a_file_the_nearest_notes_come_last(folders: list[Path]) -> None:
    inner = folders[0] / "src" / "inner"
    inner.mkdir(parents=True)
    (folders[0] / "AGENTS.md").write_text("Notes of the root.", "utf-8")
    (inner.parent / "CLAUDE.md").write_text("Notes of src.", "utf-8")
    (inner / "AGENTS.md").write_text("y" * (MAX_CHARS_BELOW + 1), "utf-8")
    (inner / "a.py").write_text("a", "utf-8")
    cut = f"[cut after {MAX_CHARS_BELOW} of {MAX_CHARS_BELOW + 1} characters]"
    reader = notes(folders)
    for path in ("src/inner/a.py", "src/inner/new.py", str(inner)):
        outer, nearest = reader.on_the_way(path)
        assert (outer.file, outer.text) == ("CLAUDE.md", "Notes of src.")
        assert nearest.text == f"{'y' * MAX_CHARS_BELOW}\n{cut}"
    for path in (".", "../x", "/etc/passwd", "src/\0", str(folders[1])):
        assert list(reader.on_the_way(path)) == [], path
    assert list(notes(folders, trusted=False).on_the_way("src/inner/a.py")) == []
