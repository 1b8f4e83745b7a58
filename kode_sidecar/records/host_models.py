"""What is kept of hosts in the state folder, each file a hint that may be deleted (A2).

`models.json`: which model ids a host no longer serves. `hosts.json`: what it said of its models.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from kode_sidecar.domain.host_facts import HostFacts
from kode_sidecar.records.disk import not_saved, replace_file
from kode_sidecar.records.json_record import DECODE_ERRORS, encode_json
from kode_sidecar.whole_files import make_private

MODELS_FILE = "models.json"
_LIST_LASTS = 24 * 3600.0
# What a program on this machine serves its user changes at any time, and costs nothing to ask.
_THIS_MACHINE = re.compile(r"(localhost|127(\.\d{1,3}){3}|::1)(:\d+)?")


class RetiredModels:
    """The model ids that each host answered with "no such model".

    It is looked at before every request to a model, and read again only when it has changed.
    """

    def __init__(self, storage_root: Path) -> None:
        self._path = storage_root / MODELS_FILE
        self._name = str(self._path)
        self._read_state: tuple[int, int, int] | None = None
        self._known: dict[str, list[str]] = {}

    def ids(self, host: str) -> frozenset[str]:
        """Return what is known of a host; empty when the file is missing or damaged."""
        return frozenset(self._read().get(host, ()))

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        known = self._read()
        ids = sorted({*known.get(host, ()), model_id})
        try:
            make_private(self._path.parent)
        except OSError as error:
            raise not_saved(self._path.name, error) from None
        replace_file(self._path, encode_json({**known, host: ids}), durable=False)

    def _read(self) -> dict[str, list[str]]:
        try:
            status = os.stat(self._name)
            state = (status.st_ino, status.st_mtime_ns, status.st_size)
            if state != self._read_state:
                data = self._path.read_bytes()
                self._known = msgspec.json.decode(data, type=dict[str, list[str]])
                self._read_state = state
        except (OSError, *DECODE_ERRORS):
            self._known, self._read_state = {}, None
        return self._known


class KnownHosts:
    """What each host said of its models; a list counts for a day. `now` is the time since 1970."""

    def __init__(self, storage_root: Path, now: Callable[[], float] = time.time) -> None:
        self._path = storage_root / "hosts.json"
        self._now = now
        self._known: dict[str, HostFacts] | None = None

    def facts(self, host: str) -> HostFacts:
        """Return what is known of a host; nothing when the file is missing or damaged."""
        if self._known is None:
            self._known = self._read()
        return self._known.get(host, HostFacts())

    def keep(self, host: str, facts: HostFacts) -> None:
        """Remember it, beside what others learned of others. Raises KodeError `Storage`."""
        self._known = {**self._read(), **(self._known or {}), host: facts}
        try:
            make_private(self._path.parent)
        except OSError as error:
            raise not_saved(self._path.name, error) from None
        replace_file(self._path, encode_json(self._known), durable=False)

    def wants_list(self, host: str) -> bool:
        """Return whether to ask a host for its list: those on this machine never."""
        if _THIS_MACHINE.fullmatch(host):
            return False
        return not 0 <= self._now() - self.facts(host).listed_at < _LIST_LASTS

    def _read(self) -> dict[str, HostFacts]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, HostFacts])
        except (OSError, *DECODE_ERRORS):
            return {}
