"""What hosts have said of their models: their lists, and windows that a refusal named."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field


class OfferedModel(Struct, frozen=True, omit_defaults=True):
    """A model on offer. The fields after `id` are Moonshot's; other hosts leave them out."""

    id: str
    context_length: int | None = None
    supports_image_in: bool | None = None
    supports_reasoning: bool | None = None


class HostFacts(Struct, frozen=True, omit_defaults=True):
    """What one host has said. `listed_at` are seconds since 1970; `windows` are tokens by id."""

    listed_at: float = 0.0
    models: tuple[OfferedModel, ...] = ()
    windows: Mapping[str, int] = field(default_factory=dict[str, int])

    def with_list(self, models: Sequence[OfferedModel], at: float) -> "HostFacts":
        """Return these with the host's list as it is now."""
        return HostFacts(at, tuple(models), self.windows)

    def with_window(self, model_id: str, tokens: int) -> "HostFacts":
        """Return these with the window of a model."""
        return HostFacts(self.listed_at, self.models, {**self.windows, model_id: tokens})

    def offered(self, model_id: str) -> OfferedModel | None:
        """Return what the host says of a model; None where it does not."""
        return next((model for model in self.models if model.id == model_id), None)

    def serves(self, model_id: str, others: Collection[str]) -> bool | None:
        """Return whether the host has a model; None where its list has none of these at all."""
        ids = {model.id for model in self.models}
        return model_id in ids if ids & {model_id, *others} else None
