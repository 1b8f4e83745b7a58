"""Which models of which providers stand behind a name, and which of them a host still serves."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from kode_sidecar.providers.builtin_providers import LOGICAL_MODELS
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_config import ProviderConfig

# Every question asks for its name, some three times.
_REMEMBERED_NAMES = 64


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


class Target(NamedTuple):
    """A model of a provider."""

    config: ProviderConfig
    model: ModelProfile


class Registry:
    """The providers side by side. The first one is meant where a name does not say which."""

    def __init__(
        self,
        providers: Sequence[ProviderConfig],
        logical_models: Mapping[str, Sequence[str]] = LOGICAL_MODELS,
    ) -> None:
        self.providers = {config.name: config for config in providers}
        self.logical_models = logical_models
        self._default = providers[0]
        self._ready = lru_cache(_REMEMBERED_NAMES)(self._find)

    def targets(self, name: str) -> list[Target]:
        """What to try for a name, in order.

        A logical name stands for its list; of that, models whose provider has no key are passed
        over unless nothing is left. Any other name stands for itself: `provider/id`, or an id of
        the provider that lists it, or else of the default one.
        """
        return list(self._ready(name))

    def _find(self, name: str) -> Sequence[Target]:
        targets = self.listed(name)
        ready = [target for target in targets if target.config.missing() is None]
        return ready or targets

    def listed(self, name: str) -> list[Target]:
        """All that stand behind a name, whether they can be asked or not."""
        return [self._target(one) for one in self.logical_models.get(name, (name,))]

    def _target(self, name: str) -> Target:
        provider, slash, model_id = name.partition("/")
        if slash and model_id and (config := self.providers.get(provider)):
            return Target(config, config.profile.model(model_id))
        for config in (self._default, *self.providers.values()):
            if config.profile.listed(name):
                return Target(config, config.profile.model(name))
        return Target(self._default, self._default.profile.model(name))
