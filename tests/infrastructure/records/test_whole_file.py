"""Files that are replaced whole."""

import os
import stat
import sys
from pathlib import Path

import pytest

from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import replace_file
from tests.support.disk_calls import DiskCalls


def test_durable_costs_fsyncs_and_plain_costs_none(  # W7
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = DiskCalls(monkeypatch)
    path = tmp_path / "meta.json"
    replace_file(path, b"one", durable=False)
    assert calls.fsyncs == 0
    replace_file(path, b"two", durable=True)
    assert calls.fsyncs == (1 if sys.platform == "win32" else 2)
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["meta.json"]
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failure_keeps_the_old_content_and_leaves_no_litter(tmp_path: Path) -> None:  # W7
    target = tmp_path / "meta.json"
    target.mkdir()
    (target / "inside").touch()
    with pytest.raises(KodeError, match=r"not saved: meta\.json") as caught:
        replace_file(target, b"new", durable=True)
    assert caught.value.code == "Storage"
    assert str(tmp_path) not in caught.value.message
    assert [entry.name for entry in tmp_path.iterdir()] == ["meta.json"]
    with pytest.raises(KodeError, match="not saved"):
        replace_file(tmp_path / "gone" / "meta.json", b"new", durable=False)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_folders_are_their_owners_alone(tmp_path: Path) -> None:
    make_private(tmp_path / "state" / "conversations" / "one")
    for name in ("state", "state/conversations", "state/conversations/one"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700
    make_private(tmp_path / "state" / "conversations")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_private(tmp_path / "file")
