"""Which model a question goes to, and what happens when a host has none of that name."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.model_event import ModelNotice
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.model_list import OfferedModel
from kode_sidecar.providers.registry import Registry, RetiredModels, Target

_MAX_LISTED = 20


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

    def next_after_unknown(self, offered: Sequence[OfferedModel]) -> bool:
        """The host does not know the current model; whether there is another one to ask.

        Ids behind a logical name are remembered as retired; an id that the user chose is not.
        """
        self._offered = ", ".join(model.id for model in offered[:_MAX_LISTED])
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
        """What the user is told about models that this question could not go to."""
        if not self._gone:
            return []
        host = _host(self._gone[-1])
        text = f"{host} no longer serves {self._gone_ids()}; {self.target.model.id} answers."
        return [ModelNotice("model_retired", text + self._offer(host))]

    def none_left(self, error: ErrorInfo) -> ErrorInfo:
        """The failure when no model of that name is served."""
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
