"""Artifacts and the list of retired models."""

import hashlib
from functools import partial
from pathlib import Path

import pytest

from kode_sidecar.core.domain.host_facts import HostFacts, OfferedModel
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import copy_artifact, save_artifact
from kode_sidecar.infrastructure.records.host_models import KnownHosts, SavedRetiredModels


def test_an_artifact_is_kept_whole(tmp_path: Path) -> None:  # A14
    names = iter(["a1", "a2"])
    save = partial(save_artifact, tmp_path, lambda: next(names))
    blob = save("x\r\n中\ud800")
    data = "x\r\n中\ufffd".encode()
    assert blob == Blob(
        ref=f"{tmp_path.name}.a1", bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
    )
    assert save("").bytes == 0
    assert (tmp_path / "artifacts" / "a1.txt").read_bytes() == "x\r\n中\ufffd".encode()


def test_an_artifact_that_two_results_name_is_copied_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    save_artifact(one, lambda: "artifact1", "all of it")
    assert [copy_artifact(one, "artifact1", other) for _ in range(2)] == [True, True]
    assert not copy_artifact(one, "artifact2", other)
    (kept,) = (other / "artifacts").iterdir()
    assert kept.read_text() == "all of it"


def test_an_artifact_never_replaces_another(tmp_path: Path) -> None:
    save = partial(save_artifact, tmp_path, lambda: "same")
    save("one")
    with pytest.raises(KodeError, match="not saved"):
        save("two")
    assert (tmp_path / "artifacts" / "same.txt").read_text() == "one"


def test_what_hosts_said_is_remembered_over_a_restart(tmp_path: Path) -> None:
    folder, now = tmp_path / "state", [1_000_000.0]
    hosts = KnownHosts(folder, lambda: now[0])
    assert hosts.facts("llm.example") == HostFacts()
    assert hosts.wants_list("llm.example")
    assert not any(map(hosts.wants_list, ("127.0.0.1:8080", "localhost:11434", "::1")))
    kept = HostFacts().with_window("m", 8_192).with_list([OfferedModel("m", 9_000)], now[0])
    hosts.keep("llm.example", kept)
    # Another process, which has read the file before: neither loses what the other learned.
    other = KnownHosts(folder, lambda: now[0])
    assert other.facts("llm.example") == kept
    hosts.keep("b.example", HostFacts().with_window("n", 4_096))
    other.keep("c.example", HostFacts().with_window("o", 2_048))
    again = KnownHosts(folder, lambda: now[0])
    assert (again.facts("b.example").windows, again.facts("llm.example")) == ({"n": 4_096}, kept)
    assert again.facts("c.example").windows == {"o": 2_048}
    assert not again.wants_list("llm.example")
    now[0] += 24 * 3600
    assert again.wants_list("llm.example")
    (folder / "hosts.json").write_text("{broken")
    assert KnownHosts(folder).facts("llm.example") == HostFacts()
    (tmp_path / "file").touch()
    with pytest.raises(KodeError, match=r"not saved: hosts\.json"):
        KnownHosts(tmp_path / "file").keep("h", kept)


def test_retired_models_are_remembered_per_host(tmp_path: Path) -> None:  # A2
    folder = tmp_path / "state"
    retired = SavedRetiredModels(folder)
    assert retired.ids("api.moonshot.cn") == frozenset()
    retired.add("api.moonshot.cn", "kimi-k2-turbo-preview")
    retired.add("api.moonshot.cn", "kimi-latest")
    SavedRetiredModels(folder).add("api.moonshot.ai", "kimi-latest")
    assert retired.ids("api.moonshot.cn") == {"kimi-k2-turbo-preview", "kimi-latest"}
    assert retired.ids("api.moonshot.ai") == {"kimi-latest"}
    (folder / "models.json").write_text("{broken")
    assert retired.ids("api.moonshot.cn") == frozenset()
    retired.add("h", "m")
    assert retired.ids("h") == {"m"}
    (tmp_path / "file").touch()
    with pytest.raises(KodeError, match=r"not saved: models\.json"):
        SavedRetiredModels(tmp_path / "file").add("h", "m")
