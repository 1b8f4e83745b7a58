"""Finds the models that a name stands for, and which of them their hosts still serve."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.host_facts import HostFacts
from kode_sidecar.core.domain.model_event import ModelNotice
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.known_providers import LOGICAL_MODELS
from kode_sidecar.infrastructure.providers.model_names import (
    closest,
    in_family,
    is_family,
    newest_fitting,
)
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig

# Every request looks up its name, some three times.
_REMEMBERED_NAMES = 64
_MAX_LISTED = 20
# So many ids are tried on a host that does not list its models.
_MOST_GUESSES = 2


class RetiredModels(Protocol):
    """Remembers the ids that a host answered with "no such model". A hint that may be lost."""

    def ids(self, host: str) -> frozenset[str]:
        """Return the ids known to be gone from a host."""
        ...

    def add(self, host: str, model_id: str) -> None:
        """Remember one id. Raises KodeError `Storage`."""
        ...


class HostMemory(Protocol):
    """Remembers what hosts said of their models. A hint that may be lost."""

    def facts(self, host: str) -> HostFacts:
        """Return the facts known of a host; empty ones if it was never asked."""
        ...

    def keep(self, host: str, facts: HostFacts) -> None:
        """Save the facts of a host in place of the old ones. Raises KodeError `Storage`."""
        ...

    def wants_list(self, host: str) -> bool:
        """Return whether to fetch the host's list of models in the background."""
        ...


class SessionHosts:
    """`HostMemory` that lasts as long as the process. `asks`: fetch the list of each host."""

    def __init__(self, *, asks: bool = False) -> None:
        self._asks = asks
        self._facts: dict[str, HostFacts] = {}

    def facts(self, host: str) -> HostFacts:
        """Return the facts known of a host."""
        return self._facts.get(host, HostFacts())

    def keep(self, host: str, facts: HostFacts) -> None:
        """Save the facts of a host."""
        self._facts[host] = facts

    def wants_list(self, host: str) -> bool:
        """Return whether the host's list is wanted and was not fetched yet."""
        return self._asks and not self.facts(host).listed_at


class SessionRetiredModels:
    """`RetiredModels` that lasts as long as the process."""

    def __init__(self) -> None:
        self._ids: dict[str, frozenset[str]] = {}

    def ids(self, host: str) -> frozenset[str]:
        """Return the ids known to be gone from a host."""
        return self._ids.get(host, frozenset())

    def add(self, host: str, model_id: str) -> None:
        """Remember one id."""
        self._ids[host] = self.ids(host) | {model_id}


class Target(NamedTuple):
    """A model of a provider. `host` serves it; the configured text if that is no address."""

    config: ProviderConfig
    model: ModelProfile
    host: str


class Registry:
    """All providers. The first one is the default for names without a provider."""

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
        """Return the models to try for a name, in order.

        A logical name stands for its list, without models whose provider has no key unless nothing
        else is left; a family such as `claude-opus` for those of a provider that has some. Any
        other name is one model: `provider/id`, or an id of the provider that lists it, or else of
        the default one.
        """
        return list(self._ready(name))

    def _find(self, name: str) -> Sequence[Target]:
        targets = self.listed(name)
        ready = [target for target in targets if target.config.missing() is None]
        return ready or targets

    def listed(self, name: str) -> list[Target]:
        """Return all models of a name, even those whose provider has no key."""
        if names := self.logical_models.get(name):
            return [self._named(one) for one in names]
        return self.family(name) or [self._named(name)]

    def family(self, name: str) -> list[Target]:
        """Return the known models of a family, of the first provider that has some and a key.

        Empty if the name is no family, or one that no table knows.
        """
        provider, slash, word = name.partition("/")
        config = self.providers.get(provider) if slash else None
        configs = [config] if config else [self._default, *self.providers.values()]
        word = word if config else name
        if not is_family(word) or any(one.profile.listed(word) for one in configs):
            return []
        for one in sorted(configs, key=lambda one: one.missing() is not None):
            ids = [model.id for model in one.profile.models if in_family(model.id, word)]
            if ids and (config or one.missing() is None or not self._default.moved):
                return [_target(one, model_id) for model_id in ids]
        return []

    def _named(self, name: str) -> Target:
        provider, slash, model_id = name.partition("/")
        if slash and model_id and (config := self.providers.get(provider)):
            return _target(config, model_id)
        for config in (self._default, *self.providers.values()):
            if config.profile.listed(name):
                return _target(config, name)
        return _target(self._default, name)


class ModelChoice:
    """The models of one name (A2), for one request. `target` is the one to ask now.

    Ids that the host has refused, or does not list, are skipped unless nothing else is left: a
    host may serve them again.
    """

    def __init__(
        self, name: str, registry: Registry, retired: RetiredModels, hosts: HostMemory
    ) -> None:
        self._name = name
        self._retired = retired
        self._is_family = name not in registry.logical_models and bool(registry.family(name))
        self._is_logical = self._is_family or name in registry.logical_models
        self._stood_in = False
        self._left = self._all = targets = registry.targets(name)
        first = targets[0]
        offered = [one.id for one in hosts.facts(first.host).models]
        if self._is_logical:
            self._left = _served(targets, retired, hosts) or targets
        if self._is_family:
            self._left = [*self._newest(first, offered), *self._left]
        elif first.model.id in retired.ids(first.host):
            self._left = [*self._stand_in(first, offered), *self._left]
        self._gone: list[Target] = []
        self._offered = ""
        self._gave_up = False

    @property
    def target(self) -> Target:
        """The model to ask now, and its provider."""
        return self._left[0]

    @property
    def targets(self) -> Sequence[Target]:
        """The model to ask now, and those that may be asked instead."""
        return tuple(self._left)

    def ask_first(self, those: Callable[[Target], bool]) -> None:
        """Ask some models before the others, in the order of the user's list."""
        self._left = sorted(self._left, key=lambda target: not those(target))

    def next_after_unknown(self, listed: Sequence[str] | None) -> bool:
        """Drop a model that its host does not know; return whether another one is left.

        `listed` are the ids that the host does know, None if it does not say: then a second
        refusal is the last one, for the next ids are no better guess. What is gone is remembered;
        an id that the user chose only if another one of its family stands in for it.
        """
        offered = listed or ()
        self._offered = ", ".join(offered[:_MAX_LISTED])
        gone = [self.target, *self._not_offered(offered)]
        self._gone += gone
        left = [target for target in self._left if target not in gone]
        stand_in = [] if self._stood_in else self._stand_in(self.target, offered)
        self._stood_in = self._stood_in or bool(stand_in)
        if self._is_logical or stand_in:
            for target in gone:
                # If this hint cannot be saved, the next request is refused once more.
                with suppress(KodeError):
                    self._retired.add(target.host, target.model.id)
        left = [*stand_in, *left]
        self._left = left or self._left
        self._gave_up = listed is None and len(self._gone) >= _MOST_GUESSES and bool(left)
        return bool(left) and not self._gave_up

    def _newest(self, known: Target, offered: Sequence[str]) -> list[Target]:
        """Return the newest listed model of a family, before those of the table."""
        word = self._name.removeprefix(f"{known.config.name}/")
        found = closest([one for one in offered if in_family(one, word)], word)
        return [_target(known.config, found)] if found else []

    def _stand_in(self, gone: Target, offered: Sequence[str]) -> list[Target]:
        """Return the best model that a host lists if it lists none of those of the name.

        A name must not depend on a table: ids are retired within months. For an id that the user
        chose, only another one of its family stands in.
        """
        ids = [target.model.id for target in self._all if target.host == gone.host]
        if set(ids) & set(offered) or len(ids) < len(self._all):
            return []
        of_table = self._is_logical and not self._is_family
        found = newest_fitting(offered, ids) if of_table else closest(offered, gone.model.id)
        return [_target(gone.config, found)] if found else []

    def _not_offered(self, offered: Sequence[str]) -> list[Target]:
        """Return the other ids that the host does not list, if another model is left."""
        host, rest = self.target.host, self._left[1:]
        listed = [target for target in rest if target.host != host or target.model.id in offered]
        if not self._is_logical or not offered or not listed:
            return []
        return [target for target in rest if target not in listed]

    def notices(self) -> list[ModelNotice]:
        """Return the notices to the user about models that no longer serve this request."""
        if not self._gone:
            return []
        host = self._gone[-1].host
        text = f"{host} no longer serves {self._gone_ids()}; {self.target.model.id} answers."
        return [ModelNotice("ModelRetired", text + self._offer(host))]

    def none_left(self, error: ErrorInfo) -> ErrorInfo:
        """Return the failure when no model of that name is served."""
        asked = f"{self._name} ({self._gone_ids()})" if self._is_logical else self._name
        host = self._gone[-1].host
        offer = self._offer(host)
        if self._gave_up:
            offer = f" It lists no models, so {self.target.model.id} comes next if you ask again."
        text = (
            f"{host} does not serve {asked} to this key.{offer} "
            "Choose one of its models with the setting `model`."
        )
        return msgspec.structs.replace(error, message=text)

    def _gone_ids(self) -> str:
        return ", ".join(target.model.id for target in self._gone)

    def _offer(self, host: str) -> str:
        return f" {host} offers {self._offered}." if self._offered else ""


def _served(targets: Sequence[Target], retired: RetiredModels, hosts: HostMemory) -> list[Target]:
    """Return the models not known to be gone."""
    found: list[Target] = []
    asked = {target.host for target in targets}
    known = {host: (hosts.facts(host), retired.ids(host)) for host in asked}
    for target in targets:
        facts, gone = known[target.host]
        others = [one.model.id for one in targets if one.host == target.host]
        if target.model.id not in gone and facts.serves(target.model.id, others) is not False:
            found.append(target)
    return found


def _target(config: ProviderConfig, model_id: str) -> Target:
    model = config.profile.model(model_id)
    try:
        return Target(config, model, config.host())
    except KodeError:  # reported by the request itself
        return Target(config, model, config.base_url)
