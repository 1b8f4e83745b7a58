"""Folders of disks that name entries without kinds: one that cannot be asked for is skipped."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.real_path import folder_entries, kind_of
from kode_sidecar.infrastructure.workspace.left_out import count_left_out
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, locate, make_roots
from kode_sidecar.infrastructure.workspace.second_names import SecondNames
from kode_sidecar.infrastructure.workspace.startup_files import find_startup_files
from tests.support.files import write


class Asked:
    """An entry whose kind the disk did not say, and refuses to say if it is `hidden`."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry

    def __getattr__(self, name: str) -> Any:
        if self._entry.name == "hidden" and name not in ("name", "path"):
            raise PermissionError(13, "Permission denied", self._entry.path)
        return getattr(self._entry, name)

    def __fspath__(self) -> str:
        return f"{self._entry.path}/no" if self._entry.name == "hidden" else self._entry.path


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"a.md": "one\n", "hidden": "x\n", "sub/AGENTS.md": "y\n", "z.md": "two\n"})
    os.link(tmp_path / "z.md", tmp_path / "sub/second.md")
    own = os.scandir

    @contextmanager
    def asked(folder: Any) -> Generator[Iterator[Asked]]:
        with own(folder) as entries:
            yield map(Asked, entries)

    monkeypatch.setattr(os, "scandir", asked)
    return tmp_path


def place(app: Path) -> Location:
    return locate(".", make_roots([app]), Path.exists)


def test_the_other_entries_are_listed(app: Path) -> None:
    kinds = {entry.name: kind_of(entry) for entry in folder_entries(app)}
    assert kinds == {"a.md": "file", "hidden": "", "sub": "folder", "z.md": "file"}
    listing = list_tree(place(app), lambda _: True, 100, lambda: False)
    names = ["/".join(file.parts) for file in listing.files]
    assert names == ["a.md", "sub/AGENTS.md", "sub/second.md", "z.md"]


def test_a_search_counts_what_it_could_not_ask_for(app: Path) -> None:
    found = count_left_out(place(app), lambda _: True, decode=False)
    assert found.counts == {"unreadable": 1}


def test_hard_links_are_found_beside_it(app: Path) -> None:
    names = SecondNames(app).of(os.stat(app / "z.md"))
    assert sorted(names) == [("sub", "second.md"), ("z.md",)]


def test_files_that_run_code_are_found_beside_it(app: Path) -> None:
    assert find_startup_files([app]).read_only == [app / "sub/AGENTS.md"]
