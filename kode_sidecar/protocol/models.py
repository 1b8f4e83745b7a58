"""The result of `kode/models/list`."""

from msgspec import Struct

from kode_sidecar.domain.error_info import ErrorInfo


class Price(Struct, frozen=True, kw_only=True):
    """A list price per million tokens: fresh input, cached input, output; a hint."""

    input: float
    cached: float
    output: float
    currency: str


class ModelView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A model, by the name that can be said as `model`; what is not known is absent.

    `offered`: it is in its host's list of today; `retired`: the host has said that it is gone.
    Windows are in tokens. `images` says that it takes them, `reasoning` that it thinks.
    """

    name: str
    offered: bool = False
    retired: bool = False
    context_window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    reasoning: bool | None = None
    price: Price | None = None


class ProviderView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider and its models: those its host lists first, then those of our table.

    With `error` (no key, no answer) the host could not be asked, and only the table is known.
    """

    name: str
    host: str
    models: tuple[ModelView, ...]
    error: ErrorInfo | None = None


class ModelCandidate(Struct, frozen=True, kw_only=True):
    """A model behind a logical name; see `ModelView`."""

    name: str
    retired: bool
    offered: bool


class LogicalModel(Struct, frozen=True, kw_only=True):
    """A name for whatever of `candidates` is served first."""

    name: str
    candidates: tuple[ModelCandidate, ...]


class ModelsListResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be said as `model`: a logical name, or the name of a model.

    `default` is what a session uses that names none.
    """

    default: str
    logical: tuple[LogicalModel, ...]
    providers: tuple[ProviderView, ...]
