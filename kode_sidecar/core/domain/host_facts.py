"""What hosts have reported about their models: lists, and windows named in refusals."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace


class OfferedModel(Struct, frozen=True, omit_defaults=True):
    """A model in a host's list. The fields after `id` are Moonshot's; other hosts omit them."""

    id: str
    context_length: int | None = None
    supports_image_in: bool | None = None
    supports_reasoning: bool | None = None


class RequestLimits(Struct, frozen=True, omit_defaults=True):
    """What a host refused in requests to one model, in the terms of a model's profile."""

    without: tuple[str, ...] = ()
    refused_tools: tuple[str, ...] = ()
    tools: bool = True
    images: bool = True
    most_pictures: int | None = None
    streams: bool = True
    blank_reasoning: bool = False
    max_tokens: str = ""


NO_LIMITS = RequestLimits()


class HostFacts(Struct, frozen=True, omit_defaults=True):
    """The facts of one host. `listed_at` is seconds since 1970; `windows` are tokens by id.

    `limits` are those of its models, by id.
    """

    listed_at: float = 0.0
    models: tuple[OfferedModel, ...] = ()
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    limits: Mapping[str, RequestLimits] = field(default_factory=dict[str, RequestLimits])

    def with_list(self, models: Sequence[OfferedModel], at: float) -> "HostFacts":
        """Return the facts with a new list of the host."""
        return replace(self, listed_at=at, models=tuple(models))

    def with_window(self, model_id: str, tokens: int) -> "HostFacts":
        """Return the facts with the window of a model added."""
        return replace(self, windows={**self.windows, model_id: tokens})

    def with_limits(self, model_id: str, limits: RequestLimits) -> "HostFacts":
        """Return the facts with the limits of a model replaced."""
        return replace(self, limits={**self.limits, model_id: limits})

    def offered(self, model_id: str) -> OfferedModel | None:
        """Return a model from the host's list; None if it is not there."""
        return next((model for model in self.models if model.id == model_id), None)

    def serves(self, model_id: str, others: Collection[str]) -> bool | None:
        """Return whether the host lists a model; None if it lists neither it nor `others`."""
        ids = {model.id for model in self.models}
        return model_id in ids if ids & {model_id, *others} else None
