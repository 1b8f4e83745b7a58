"""Stores facts about hosts in the state folder; each file is a hint that may be deleted (A2).

`models.json`: which model ids a host no longer serves. `hosts.json`: how it describes its models.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from kode_sidecar.core.domain.host_facts import HostFacts
from kode_sidecar.infrastructure.records.disk import (
    FileState,
    file_state,
    make_folder,
    replace_file,
)
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, encode_json

T = TypeVar("T")
MODELS_FILE = "models.json"
_LIST_LASTS = 24 * 3600.0
# The models of a program on this machine change at any time, and it costs nothing to ask for them.
_THIS_MACHINE = re.compile(r"(localhost|127(\.\d{1,3}){3}|::1)(:\d+)?")


class SavedRetiredModels:
    """The model ids that each host answered with "no such model".

    It is consulted before every request to a model; the file is read again only if it changed.
    """

    def __init__(self, storage_root: Path) -> None:
        self._path = storage_root / MODELS_FILE
        self._name = str(self._path)
        self._read_state: FileState | None = None
        self._known: dict[str, list[str]] = {}

    def ids(self, host: str) -> frozenset[str]:
        """Return the ids known to be gone from a host; empty if the file is missing or damaged."""
        return frozenset(self._read().get(host, ()))

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        known = self._read()
        ids = sorted({*known.get(host, ()), model_id})
        _write(self._path, {**known, host: ids})

    def _read(self) -> dict[str, list[str]]:
        state = file_state(self._name)
        if state is None or state != self._read_state:
            self._known = _decoded(self._path, dict[str, list[str]])
            self._read_state = state if self._known else None  # else it may be read next time
        return self._known


class KnownHosts:
    """Each host's facts about its models; a list is valid for a day. `now`: seconds since 1970."""

    def __init__(self, storage_root: Path, now: Callable[[], float] = time.time) -> None:
        self._path = storage_root / "hosts.json"
        self._now = now
        self._known: dict[str, HostFacts] | None = None

    def facts(self, host: str) -> HostFacts:
        """Return the facts of a host; empty ones if the file is missing or damaged."""
        if self._known is None:
            self._known = self._read()
        return self._known.get(host, HostFacts())

    def keep(self, host: str, facts: HostFacts) -> None:
        """Save the facts, together with those of other processes. Raises KodeError `Storage`."""
        self._known = {**self._read(), **(self._known or {}), host: facts}
        _write(self._path, self._known)

    def wants_list(self, host: str) -> bool:
        """Return whether to fetch a host's list: after a day; never from this machine."""
        if _THIS_MACHINE.fullmatch(host):
            return False
        return not 0 <= self._now() - self.facts(host).listed_at < _LIST_LASTS

    def _read(self) -> dict[str, HostFacts]:
        return _decoded(self._path, dict[str, HostFacts])


def _decoded(path: Path, kind: type[dict[str, T]]) -> dict[str, T]:
    """Return a file's contents; empty if it is missing or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, *DECODE_ERRORS):
        return {}


def _write(path: Path, value: object) -> None:
    make_folder(path.parent, path.name)
    replace_file(path, encode_json(value), durable=False)
