"""The result of `kode/models/list`."""

from msgspec import Struct


class OfferedModel(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A model that the provider offers to this key; what it does not tell is absent.

    `context_window` is in tokens, `images` says that it takes them, `reasoning` that it thinks.
    """

    id: str
    context_window: int | None = None
    images: bool | None = None
    reasoning: bool | None = None


class ModelCandidate(Struct, frozen=True, kw_only=True):
    """A model behind a logical name.

    `retired`: the provider has said that it is gone. `offered`: it is in the list of today.
    """

    id: str
    retired: bool
    offered: bool


class LogicalModel(Struct, frozen=True, kw_only=True):
    """A name for whatever of `candidates` is served first."""

    name: str
    candidates: tuple[ModelCandidate, ...]


class ModelsListResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be said as `model`: a logical name, or the id of a model.

    `default` is what a session uses that names none, `host` the provider's.
    """

    host: str
    default: str
    logical: tuple[LogicalModel, ...]
    models: tuple[OfferedModel, ...]
