"""Which models of which providers stand behind a name, and which of them a host still serves."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.model_event import ModelNotice
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.builtin_providers import LOGICAL_MODELS
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_config import ProviderConfig

# Every question asks for its name, some three times.
_REMEMBERED_NAMES = 64
_MAX_LISTED = 20


class RetiredModels(Protocol):
    """Remembers which ids a host answered with "no such model". A hint that may be lost."""

    def ids(self, host: str) -> frozenset[str]:
        """Return the ids known to be gone from a host."""
        ...

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        ...


class SessionRetiredModels:
    """`RetiredModels` that last as long as the process."""

    def __init__(self) -> None:
        self._ids: dict[str, frozenset[str]] = {}

    def ids(self, host: str) -> frozenset[str]:
        """Return the ids known to be gone from a host."""
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
        """Return what to try for a name, in order.

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
        """Return all that stand behind a name, whether they can be asked or not."""
        return [self._target(one) for one in self.logical_models.get(name, (name,))]

    def _target(self, name: str) -> Target:
        provider, slash, model_id = name.partition("/")
        if slash and model_id and (config := self.providers.get(provider)):
            return Target(config, config.profile.model(model_id))
        for config in (self._default, *self.providers.values()):
            if config.profile.listed(name):
                return Target(config, config.profile.model(name))
        return Target(self._default, self._default.profile.model(name))


class ModelChoice:
    """The models behind one name (A2), for one question. `target` is the one to ask now.

    Retired ids are passed over, unless nothing else is left: a host may have them again.
    """

    def __init__(self, name: str, registry: Registry, retired: RetiredModels) -> None:
        self._name = name
        self._retired = retired
        self._is_logical = name in registry.logical_models
        self._left = targets = registry.targets(name)
        if self._is_logical:
            hosts = {target.config.name: _host(target) for target in targets}
            gone = {name: retired.ids(host) for name, host in hosts.items()}
            self._left = [t for t in targets if t.model.id not in gone[t.config.name]] or targets
        self._gone: list[Target] = []
        self._offered = ""

    @property
    def target(self) -> Target:
        """The model to ask now, and its provider."""
        return self._left[0]

    @property
    def targets(self) -> Sequence[Target]:
        """The model to ask now, and those that may be asked instead."""
        return tuple(self._left)

    def next_after_unknown(self, offered: Sequence[str]) -> bool:
        """Give up a model that its host does not know; return whether another one can be asked.

        `offered` are the ids that the host does know.

        Ids behind a logical name are remembered as retired; an id that the user chose is not.
        """
        self._offered = ", ".join(offered[:_MAX_LISTED])
        if self._is_logical:
            # A hint that cannot be written costs one more refusal next time.
            with suppress(KodeError):
                self._retired.add(_host(self.target), self.target.model.id)
        self._gone.append(self.target)
        if len(self._left) == 1:
            return False
        del self._left[0]
        return True

    def notices(self) -> list[ModelNotice]:
        """Return what the user is told about models that this question could not go to."""
        if not self._gone:
            return []
        host = _host(self._gone[-1])
        text = f"{host} no longer serves {self._gone_ids()}; {self.target.model.id} answers."
        return [ModelNotice("model_retired", text + self._offer(host))]

    def none_left(self, error: ErrorInfo) -> ErrorInfo:
        """Return the failure when no model of that name is served."""
        asked = f"{self._name} ({self._gone_ids()})" if self._is_logical else self._name
        host = _host(self._gone[-1])
        text = (
            f"{host} does not serve {asked} to this key.{self._offer(host)} "
            "Choose one of its models with the setting `model`."
        )
        return msgspec.structs.replace(error, message=text)

    def _gone_ids(self) -> str:
        return ", ".join(target.model.id for target in self._gone)

    def _offer(self, host: str) -> str:
        return f" {host} offers {self._offered}." if self._offered else ""


def _host(target: Target) -> str:
    """Its host; an address that is none is told when it is asked."""
    try:
        return target.config.host()
    except KodeError:
        return target.config.base_url
