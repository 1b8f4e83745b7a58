"""Which model ids stand behind a name, and which of them a host still serves."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kode_sidecar.providers.profiles import KNOWN_MODELS, LOGICAL_MODELS, ModelProfile


class RetiredModels(Protocol):
    """Remembers which ids a host answered with "no such model". A hint that may be lost."""

    def ids(self, host: str) -> frozenset[str]:
        """The ids known to be gone from a host."""
        ...

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        ...


class SessionRetiredModels:
    """`RetiredModels` that last as long as the process."""

    def __init__(self) -> None:
        self._ids: dict[str, frozenset[str]] = {}

    def ids(self, host: str) -> frozenset[str]:
        """The ids known to be gone from a host."""
        return self._ids.get(host, frozenset())

    def add(self, host: str, model_id: str) -> None:
        """Remember one id."""
        self._ids[host] = self.ids(host) | {model_id}


def profile_of(model_id: str) -> ModelProfile:
    """The profile of a provider's own id; a careful guess where the id is unknown.

    Every current Kimi model thinks and pins its sampling; other vendors must never get
    reasoning back, and none minds a missing temperature.
    """
    known = KNOWN_MODELS.get(model_id)
    if known is not None:
        return known
    is_kimi = model_id.rpartition("/")[2].startswith("kimi-")
    return ModelProfile(model_id, thinking="optional" if is_kimi else "never")


def candidates(
    model: str,
    retired: frozenset[str],
    logical_models: Mapping[str, Sequence[str]] = LOGICAL_MODELS,
) -> list[ModelProfile]:
    """The models to try for a name, in order. An id that is no logical name stands for itself.

    Retired ids are passed over, unless nothing else is left: a host may have them again.
    """
    ids = logical_models.get(model)
    if ids is None:
        return [profile_of(model)]
    served = [model_id for model_id in ids if model_id not in retired]
    return [profile_of(model_id) for model_id in served or ids]
