"""The zones of a sandbox and the guard over every path into it (B4, W11)."""

import os
import sys
from pathlib import Path

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.sandbox import Sandbox, make_sandbox, source_path, write_file

HOSTILE = (
    "../x",
    "deliverables/../../x",
    "/etc/passwd",
    "C:\\x",
    "c:x",
    "\\\\host\\share\\x",
    "//host/share/x",
    "deliverables/NUL",
    "deliverables/con.txt",
    "deliverables/x:stream",
    "deliverables/x.",
    "deliverables/x ",
    "deliverables/LONGNA~1.TXT",
    "deliverables/a\x00b",
    "deliverables/a\nb",
    "logs/tools.jsonl",
    "archive/x",
    "run.json",
    "x.md",
    "",
)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return make_sandbox(tmp_path)


# B4 W11
@pytest.mark.parametrize("path", HOSTILE)
def test_no_hostile_path_is_written(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(KodeError) as refused:
        sandbox.locate(path, "write")
    assert refused.value.code == "PathOutsideRoots"
    assert str(sandbox.root) not in refused.value.message


# B4
def test_what_is_written_lands_in_its_zone(sandbox: Sandbox) -> None:
    place = sandbox.locate("deliverables/new/report.md", "write")
    write_file(place, b"one")
    write_file(place, b"two")
    assert (sandbox.root / "deliverables/new/report.md").read_bytes() == b"two"
    assert sandbox.relative(place.real) == place.display == "deliverables/new/report.md"
    assert sandbox.locate(str(place.path), "write").real == place.real
    assert sandbox.locate("archive/x", "read").display == "archive/x"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_lead_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    outside = tmp_path / "logs" / "secret"
    outside.write_text("kept")
    (sandbox.zone("deliverables") / "link").symlink_to(outside)
    (sandbox.zone("deliverables") / "folder").symlink_to(tmp_path / "logs")
    for path in ("deliverables/link", "deliverables/folder/x"):
        with pytest.raises(KodeError, match="leads out"):
            sandbox.locate(path, "write")
    late = sandbox.locate("deliverables/late/x", "write")
    (sandbox.zone("deliverables") / "late").symlink_to(tmp_path / "logs")
    with pytest.raises(KodeError, match="link"):
        write_file(late, b"no")
    second = sandbox.zone("workspace") / "second"
    os.link(outside, second)
    with pytest.raises(KodeError, match="is a link"):
        write_file(sandbox.locate("workspace/second", "write"), b"no")
    assert outside.read_text() == "kept"
    assert os.listdir(tmp_path / "logs") == ["secret"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_zone_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "workspace").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KodeError) as refused:
        make_sandbox(tmp_path / "run")
    assert refused.value.code == "PathOutsideRoots"


def test_a_file_is_no_folder(sandbox: Sandbox) -> None:
    write_file(sandbox.locate("deliverables/a", "write"), b"")
    for path in ("deliverables/a/b", "deliverables"):
        with pytest.raises(KodeError) as refused:
            write_file(sandbox.locate(path, "write"), b"x")
        assert refused.value.code == "NotEditable"


# W11
@pytest.mark.parametrize("path", ["../up", "a/../../b", "//host/share", "c:x", "a/NUL", "x:y"])
def test_the_users_own_folders_are_screened_too(tmp_path: Path, path: str) -> None:
    with pytest.raises(KodeError) as refused:
        source_path(path, tmp_path)
    assert refused.value.code == "PathOutsideRoots"


def test_the_users_own_folders_are_relative_to_the_configuration(tmp_path: Path) -> None:
    assert source_path("./skills", tmp_path) == tmp_path / "skills"
    assert source_path(str(tmp_path), Path("/elsewhere")) == tmp_path
