"""Artifacts and the list of retired models."""

import hashlib
from pathlib import Path

import pytest

from kode_sidecar.domain.message import Blob
from kode_sidecar.errors import KodeError
from kode_sidecar.records.conversation_files import Artifacts
from kode_sidecar.records.retired_models import RetiredModels


def test_an_artifact_is_kept_whole(tmp_path: Path) -> None:  # A14
    names = iter(["a1", "a2"])
    artifacts = Artifacts(tmp_path, lambda: next(names))
    blob = artifacts.save("x\r\n中\ud800")
    data = "x\r\n中\ufffd".encode()
    assert blob == Blob(
        ref=f"{tmp_path.name}.a1", bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
    )
    assert artifacts.save("").bytes == 0
    assert (tmp_path / "artifacts" / "a1.txt").read_bytes() == "x\r\n中\ufffd".encode()


def test_an_artifact_never_replaces_another(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path, lambda: "same")
    artifacts.save("one")
    with pytest.raises(KodeError, match="not saved"):
        artifacts.save("two")
    assert (tmp_path / "artifacts" / "same.txt").read_text() == "one"


def test_retired_models_are_remembered_per_host(tmp_path: Path) -> None:  # A2
    folder = tmp_path / "state"
    retired = RetiredModels(folder)
    assert retired.ids("api.moonshot.cn") == frozenset()
    retired.add("api.moonshot.cn", "kimi-k2-turbo-preview")
    retired.add("api.moonshot.cn", "kimi-latest")
    RetiredModels(folder).add("api.moonshot.ai", "kimi-latest")
    assert retired.ids("api.moonshot.cn") == {"kimi-k2-turbo-preview", "kimi-latest"}
    assert retired.ids("api.moonshot.ai") == {"kimi-latest"}
    (folder / "models.json").write_text("{broken")
    assert retired.ids("api.moonshot.cn") == frozenset()
    retired.add("h", "m")
    assert retired.ids("h") == {"m"}
    (tmp_path / "file").touch()
    with pytest.raises(KodeError, match=r"not saved: models\.json"):
        RetiredModels(tmp_path / "file").add("h", "m")
