"""One canonical key per document, on every platform."""

import os
from pathlib import Path

import pytest

from kode_sidecar.core.text.uris import canonical_key, file_name, path_to_uri, uri_to_path
from kode_sidecar.infrastructure.workspace.documents import Documents

SAME = [
    ["file:///c%3A/a.py", "file:///C:/a.py", "file:///c:/a.py", "FILE:///c|/a.py", "file:/c:/a.py"],
    ["file:///home/me/a%20b.py", "file:///home/me/a b.py", "file://localhost/home/me/a%20b.py"],
    ["file:///x/%E4%B8%AD.py", "file:///x/%e4%b8%ad.py", "file:///x/中.py"],
    ["file://Server/share/a.py", "file://server/share/a.py", "file://SERVER/share/%61.py"],
    ["file:///x/a%28b%29%2Bc.py", "file:///x/a(b)+c.py"],
    ["file:///c:/a%5Cb.py", "file:///C%3A/a/b.py"],
    ["file:///x/a%23b%3Fc", "file:///x/a#b?c"],
]


@pytest.mark.parametrize("uris", SAME)
def test_spellings_of_one_document(uris: list[str]) -> None:
    keys = {canonical_key(uri) for uri in uris}
    assert len(keys) == 1
    assert {canonical_key(key) for key in keys} == keys
    documents = Documents("utf-16")
    for version, uri in enumerate(uris):
        documents.open(uri, "python", version, "x")
    assert [document.uri for document in documents.all_open()] == [uris[-1]]
    assert all(documents.get(uri) is documents.get(keys.copy().pop()) for uri in uris)


@pytest.mark.parametrize(
    "uri",
    ["untitled:Untitled-1", "git:/a%20b?x#y", "vscode-notebook-cell:/C%3A/a#1", "no scheme", ""],
)
def test_other_schemes_stay_verbatim(uri: str) -> None:
    assert canonical_key(uri) == uri
    assert uri_to_path(uri) is None


def test_different_documents_stay_different() -> None:
    uris = ["file:///x/a.py", "file:///x/A.py", "file:///x/a%5Cb.py", "file:///x/a/b.py"]
    assert len({canonical_key(uri) for uri in uris}) == len(uris)


@pytest.mark.parametrize(
    ("uri", "windows", "posix"),
    [
        ("file:///c%3A/a%20b.py", "c:\\a b.py", "/c:/a b.py"),
        ("file:///C:/", "C:\\", "/C:/"),
        ("file:///c:", "c:\\", "/c:"),
        ("file://server/share/a.py", "\\\\server\\share\\a.py", None),
        ("file:///home/me/a.py", "\\home\\me\\a.py", "/home/me/a.py"),
        ("untitled:x", None, None),
    ],
)
def test_file_names(uri: str, windows: str | None, posix: str | None) -> None:
    assert file_name(uri, windows=True) == windows
    assert file_name(uri, windows=False) == posix


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("C:\\a b\\中.py", "file:///C:/a%20b/%E4%B8%AD.py"),
        ("\\\\server\\share\\a.py", "file://server/share/a.py"),
        ("/home/me/a#b.py", "file:///home/me/a%23b.py"),
    ],
)
def test_paths_of_both_kinds_become_uris(path: str, uri: str) -> None:
    assert path_to_uri(path) == uri


def test_a_path_survives_the_round_trip(tmp_path: Path) -> None:
    for name in ("a b.py", "中文😀.py", "a%41.py", "a#b+c&d.py"):
        assert uri_to_path(path_to_uri(tmp_path / name)) == tmp_path / name


@pytest.mark.skipif(os.name == "nt", reason="only POSIX has names that are no text")
def test_a_name_that_is_no_text_survives(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\xff.py")
    assert uri_to_path(canonical_key(path_to_uri(path))) == path
