"""A recording's files are laid out as they were, or the one that cannot be is named."""

from pathlib import Path

import pytest

from kode_sidecar.devtools.recording.folders import FolderCopies
from kode_sidecar.devtools.recording.recorded_lines import (
    RecordedFile,
    RecordingHead,
    StateFile,
    StateLock,
)
from kode_sidecar.devtools.recording.state_files import StateCopies
from kode_sidecar.errors import KodeError

HEAD = RecordingHead(format=2, version="0", started="", platform="Linux", roots=("/x/tea",))
SESSION = "conversations/session-0123456789abcdef"


def file(path: str, text: str | None = "x") -> RecordedFile:
    return RecordedFile(root=0, path=path, text=text)


@pytest.mark.parametrize(
    "states",
    [
        (file("a"), file("a/b")),
        (file("a/b"), file("a")),
        (file("a/b"), file("a", None)),
        (file("a"), file("a/b", None)),
        (file("n" * 5_000),),
    ],
    ids=["below a file", "a folder", "a folder removed", "removed below a file", "too long a name"],
)
def test_files_that_contradict_each_other(tmp_path: Path, states: tuple[RecordedFile, ...]) -> None:
    copies = FolderCopies(HEAD, tmp_path)
    for state in states[:-1]:
        copies.write(state)
    with pytest.raises(KodeError, match="record") as refused:
        copies.write(states[-1])
    assert refused.value.code == "Storage"
    assert states[-1].path in refused.value.message


def test_a_root_with_too_long_a_name(tmp_path: Path) -> None:
    head = RecordingHead(format=2, version="0", started="", platform="Linux", roots=("n" * 5_000,))
    with pytest.raises(KodeError) as refused:
        FolderCopies(head, tmp_path)
    assert refused.value.code == "Storage"


def test_files_of_the_state_folder_that_contradict_each_other(tmp_path: Path) -> None:
    copies = StateCopies(tmp_path, lambda value: value)
    copies.write(StateFile(path=f"{SESSION}/a", text="x"))
    with pytest.raises(KodeError) as refused:
        copies.write(StateFile(path=f"{SESSION}/a/b", text="x"))
    assert refused.value.code == "Storage"
    (tmp_path / SESSION / "lock").mkdir()
    with pytest.raises(KodeError) as refused:
        copies.write(StateLock(session_id=Path(SESSION).name, held=True))
    assert refused.value.code == "Storage"
