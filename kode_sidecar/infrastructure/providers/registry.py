"""Finds the models that a name stands for, and which of them their hosts still serve."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.host_facts import HostFacts
from kode_sidecar.core.domain.model_event import ModelNotice
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.builtin_providers import LOGICAL_MODELS
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig

# Every request looks up its name, some three times.
_REMEMBERED_NAMES = 64
_MAX_LISTED = 20


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
        else is left. Any other name is one model: `provider/id`, or an id of the provider that
        lists it, or else of the default one.
        """
        return list(self._ready(name))

    def _find(self, name: str) -> Sequence[Target]:
        targets = self.listed(name)
        ready = [target for target in targets if target.config.missing() is None]
        return ready or targets

    def listed(self, name: str) -> list[Target]:
        """Return all models of a name, even those whose provider has no key."""
        return [self._named(one) for one in self.logical_models.get(name, (name,))]

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
        self._is_logical = name in registry.logical_models
        self._stood_in = False
        self._left = self._all = targets = registry.targets(name)
        if self._is_logical:
            self._left = _served(targets, retired, hosts) or targets
            if targets[0].model.id in retired.ids(targets[0].host):
                offered = [one.id for one in hosts.facts(targets[0].host).models]
                self._left = [*_stand_in(targets[0], targets, offered), *self._left]
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
        """Drop a model that its host does not know; return whether another one is left.

        `offered` are the ids that the host does know. Ids of a logical name are remembered as
        retired; an id that the user chose is not.
        """
        self._offered = ", ".join(offered[:_MAX_LISTED])
        if self._is_logical:
            # If this hint cannot be saved, the next request is refused once more.
            with suppress(KodeError):
                self._retired.add(self.target.host, self.target.model.id)
        gone = [self.target, *self._not_offered(offered)]
        self._gone += gone
        for target in gone[1:]:
            with suppress(KodeError):
                self._retired.add(target.host, target.model.id)
        left = [target for target in self._left if target not in gone]
        if self._is_logical and not self._stood_in:
            stand_in = _stand_in(self.target, self._all, offered)
            self._stood_in = bool(stand_in)
            left = [*stand_in, *left]
        self._left = left or self._left
        return bool(left)

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
        text = (
            f"{host} does not serve {asked} to this key.{self._offer(host)} "
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


# Models that hosts list, but that answer no chat.
_NO_CHAT = re.compile(
    r"embed|whisper|tts|speech|audio|voice|realtime|transcri|image|dall-e|imagen|veo|sora|video"
    r"|moderat|guard|rerank|ocr|search|davinci|babbage|clip|diffusion|music|translat",
    re.IGNORECASE,
)
_SMALL = re.compile(r"mini|nano|lite|tiny|small|flash|air|haiku|preview|exp\b", re.IGNORECASE)


def _stand_in(gone: Target, targets: Sequence[Target], offered: Sequence[str]) -> list[Target]:
    """Return the best model that a host lists if it lists none of those of a name.

    A name must not depend on a table: ids are retired within months.
    """
    ids = [target.model.id for target in targets if target.host == gone.host]
    if set(ids) & set(offered) or len(ids) < len(targets):
        return []
    found = newest_fitting(offered, ids)
    return [_target(gone.config, found)] if found else []


def newest_fitting(offered: Sequence[str], like: Sequence[str]) -> str:
    """Return the id to ask among those that a host lists: of the same family, newest first.

    Empty if the host lists no model for chats.
    """
    families = {_family(one) for one in like}

    def rank(model_id: str) -> tuple[object, ...]:
        numbers = [int(one) for one in re.findall(r"\d+", model_id.rpartition("/")[2])]
        short = [one for one in numbers if one < 100]  # not a day, not a number of parameters
        return _family(model_id) in families, not _SMALL.search(model_id), short

    fitting = [one for one in offered if not _NO_CHAT.search(one)]
    return max(fitting, key=rank, default="")


def _family(model_id: str) -> str:
    name = model_id.rpartition("/")[2].lower()
    match = re.match(r"[a-z]+", name)
    return match[0] if match else name


def _target(config: ProviderConfig, model_id: str) -> Target:
    model = config.profile.model(model_id)
    try:
        return Target(config, model, config.host())
    except KodeError:  # reported by the request itself
        return Target(config, model, config.base_url)
