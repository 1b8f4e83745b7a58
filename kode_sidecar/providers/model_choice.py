"""Which model a question goes to, and what happens when a host has none of that name."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.model_event import ModelNotice
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.model_list import OfferedModel
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_config import ProviderConfig
from kode_sidecar.providers.registry import RetiredModels, candidates

_MAX_LISTED = 20


class ModelChoice:
    """The models behind one name (A2), for one question. `profile` is the one to ask now."""

    def __init__(
        self, name: str, host: str, config: ProviderConfig, retired: RetiredModels
    ) -> None:
        self._name = name
        self._host = host
        self._retired = retired
        self._is_logical = name in config.logical_models
        self._left = candidates(name, retired.ids(host), config.logical_models)
        self._gone: list[str] = []
        self._offered = ""

    @property
    def profile(self) -> ModelProfile:
        """The model to ask now."""
        return self._left[0]

    def next_after_unknown(self, offered: Sequence[OfferedModel]) -> bool:
        """The host does not know the current model; whether there is another one to ask.

        Ids behind a logical name are remembered as retired; an id that the user chose is not.
        """
        self._offered = ", ".join(model.id for model in offered[:_MAX_LISTED])
        if self._is_logical:
            # A hint that cannot be written costs one more refusal next time.
            with suppress(KodeError):
                self._retired.add(self._host, self.profile.id)
        self._gone.append(self.profile.id)
        if len(self._left) == 1:
            return False
        del self._left[0]
        return True

    def notices(self) -> list[ModelNotice]:
        """What the user is told about models that this question could not go to."""
        if not self._gone:
            return []
        text = f"{self._host} no longer serves {', '.join(self._gone)}; {self.profile.id} answers."
        return [ModelNotice("model_retired", text + self._offer())]

    def none_left(self, error: ErrorInfo) -> ErrorInfo:
        """The failure when no model of that name is served."""
        asked = self._name
        if self._is_logical:
            asked = f"{self._name} ({', '.join(self._gone)})"
        text = (
            f"{self._host} does not serve {asked} to this key.{self._offer()} "
            "Choose one of its models with the setting `model`."
        )
        return msgspec.structs.replace(error, message=text)

    def _offer(self) -> str:
        return f" It offers {self._offered}." if self._offered else ""
