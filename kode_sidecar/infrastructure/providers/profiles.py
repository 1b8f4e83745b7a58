"""What is known of providers and models, as data. A hint: hosts change their lists in months.

The built-in table is `builtin_providers`; users write the same fields in `config.yaml`
(`user_providers`), and what a host says of itself in `GET /models` beats both.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.domain.model_event import UsageReported
from kode_sidecar.infrastructure.http.timeouts import TimeLimits

Thinking = Literal["never", "optional", "always"]
DialectName = Literal["kimi", "openai_chat", "openai_responses", "anthropic_messages"]
Amount = Annotated[float, Meta(ge=0)]
Tokens = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=200)]
HeaderValue = Annotated[str, Meta(pattern=r"^[ -~]*$", max_length=2_000)]
Path = Annotated[str, Meta(pattern=r"^[^.]+(\.[^.]+)*$|^$", max_length=200)]


class TokenPrice(Struct, frozen=True, forbid_unknown_fields=True):
    """An amount per million tokens: fresh input, cached input, output.

    `cache_write` is for what a host puts into its cache at a price of its own; None: as fresh.
    `cache_write_hour` is for what it keeps there for an hour, where it says so; None: no other.
    """

    input: Amount
    cached: Amount
    output: Amount
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$")] = "USD"
    cache_write: Amount | None = None
    cache_write_hour: Amount | None = None

    def writing(self, *, for_an_hour: bool = False) -> float:
        """Return the price of what goes into the cache."""
        brief = self.input if self.cache_write is None else self.cache_write
        return self.cache_write_hour if for_an_hour and self.cache_write_hour is not None else brief


class WireNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an OpenAI-compatible host departs from the usual names. Empty: it does not.

    `max_tokens` is a field of the request, `reasoning_back` of an answer in it: under that name the
    reasoning goes back, `reasoning_content` where none is given. The others are dotted paths in
    what it answers: `text` and `reasoning` from a delta (or a whole message), `usage` from a chunk,
    and the counts from the usage.
    """

    max_tokens: Annotated[str, Meta(max_length=200)] = ""
    reasoning_back: Annotated[str, Meta(max_length=200)] = ""
    text: Path = ""
    reasoning: Path = ""
    usage: Path = ""
    input_tokens: Path = ""
    output_tokens: Path = ""
    cached_tokens: Path = ""
    reasoning_tokens: Path = ""


Efforts = Mapping[Effort, Mapping[str, Any]]


class ModelProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """How to ask one model.

    A model that thinks wants its reasoning back. `sampling` False means that the vendor pins
    temperature and top_p and refuses others; `forced_tools` that a call can be demanded.
    `tool_schema` is how arguments are described to it; empty: as its dialect does.
    `context_window` and `max_output` are in tokens; None: unknown. `provider` names who runs the
    model: what one has signed, others refuse. `body` are more fields of every request to it.
    `cuts_silently`: its host leaves out what it has no room for, and does not say so. `efforts` are
    the fields of a request that ask it to think so hard, `effort` is what is asked for where nobody
    chose. `system_notes`: it takes system messages in mid-conversation; `late_tools`: and tools in
    them. None: what `builtin_providers` knows of the host.
    """

    id: Name
    dialect: DialectName = "kimi"
    provider: str = ""
    thinking: Thinking = "never"
    sampling: bool = False
    forced_tools: bool = False
    images: bool = False
    tool_schema: Literal["", "json_schema", "mfjs"] = ""
    context_window: Tokens | None = None
    max_output: Tokens | None = None
    price: TokenPrice | None = None
    names: WireNames = WireNames()
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeouts: TimeLimits = TimeLimits()
    cuts_silently: bool = False
    efforts: Efforts = field(default_factory=dict[Effort, Mapping[str, Any]])
    effort: Effort | None = None
    system_notes: bool | None = None
    late_tools: bool | None = None

    @property
    def caches_for_an_hour(self) -> bool:
        """Whether its requests ask the host to keep them so long: only where the user wrote it."""
        return any(
            isinstance(value, Mapping) and cast(Mapping[str, Any], value).get("ttl") == "1h"
            for value in self.body.values()
        )

    @property
    def returns_thinking(self) -> bool:
        """Whether the model gets its reasoning back; two dialects return what they sealed."""
        sealed = self.dialect in ("anthropic_messages", "openai_responses")
        return sealed or self.thinking != "never"


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """The header that carries the key, and what stands before it."""

    header: HeaderName = "authorization"
    prefix: HeaderValue = "Bearer "


class ProviderProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host of models. `name` is what a model's name begins with: `name/id`.

    `api_key_env` are the variables that may hold the key, the first one set wins; none: the host
    wants no key. `auth` None: as its dialect does. `headers` go with every request. `console` is
    where keys are made, `sibling` the address of a host whose keys are mistaken for this one's.
    `body`, `timeouts` and `efforts` are for all of its models, which may say otherwise.
    `base_url_env` is the variable that moves the host, if there is one. `plain_http` is the user's
    word that the host is on a network of theirs and has no certificate.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    base_url: Name
    dialect: DialectName = "openai_chat"
    api_key_env: tuple[Variable, ...] = ()
    auth: Auth | None = None
    headers: Mapping[HeaderName, HeaderValue] = field(default_factory=dict[str, str])
    names: WireNames = WireNames()
    models: tuple[ModelProfile, ...] = ()
    console: str = ""
    sibling: str = ""
    base_url_env: str = ""
    plain_http: bool = False
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeouts: TimeLimits = TimeLimits()
    cuts_silently: bool = False
    efforts: Efforts = field(default_factory=dict[Effort, Mapping[str, Any]])

    def model(self, model_id: str) -> ModelProfile:
        """Return the profile of one of its ids; a careful guess where the id is unknown.

        Every current Kimi model thinks and pins its sampling; other vendors must never get
        reasoning back, and none minds a missing temperature.
        """
        known = self.listed(model_id)
        if known is not None:
            return self._with_shared(known)
        thinks = self.dialect == "kimi" and model_id.rpartition("/")[2].startswith("kimi-")
        return self._with_shared(
            ModelProfile(
                model_id,
                dialect=self.dialect,
                thinking="optional" if thinks else "never",
                names=self.names,
            )
        )

    def _with_shared(self, model: ModelProfile) -> ModelProfile:
        return replace(
            model,
            provider=self.name,
            body={**self.body, **model.body},
            timeouts=model.timeouts.over(self.timeouts),
            cuts_silently=model.cuts_silently or self.cuts_silently,
            efforts=model.efforts or self.efforts,
        )

    def listed(self, model_id: str) -> ModelProfile | None:
        """Return the profile of an id of the table."""
        return next((model for model in self.models if model.id == model_id), None)


def usage_event(
    usage: Usage, price: TokenPrice | None, told: float | None = None, *, for_an_hour: int = 0
) -> UsageReported:
    """Usage with what it cost: what the host has `told`, else by the price, where it is known.

    `for_an_hour` are those of the tokens written that stay in the cache for so long. A host tells
    in the currency of its price list, dollars where there is none.
    """
    if told is not None:
        currency = price.currency if price else "USD"
        return UsageReported(usage, Cost(told, currency), told if currency == "USD" else None)
    if price is None:
        return UsageReported(usage)
    written = usage.cache_write_tokens
    for_an_hour = min(for_an_hour, written)
    fresh = usage.input_tokens - usage.cached_tokens - written
    amount = (
        fresh * price.input
        + usage.cached_tokens * price.cached
        + (written - for_an_hour) * price.writing()
        + for_an_hour * price.writing(for_an_hour=True)
        + usage.output_tokens * price.output
    ) / 1_000_000
    in_dollars = amount if price.currency == "USD" else None
    return UsageReported(usage, Cost(amount, price.currency), in_dollars)


def with_facts(
    model: ModelProfile,
    *,
    context_window: int | None = None,
    images: bool | None = None,
    reasoning: bool | None = None,
) -> ModelProfile:
    """Return `model` as its host describes it; None: the host does not say."""
    thinking = model.thinking
    if reasoning is False:
        thinking = "never"
    elif reasoning and thinking == "never" and model.dialect == "kimi":
        # Only this dialect has a use for it; others must never get reasoning back.
        thinking = "optional"
    return replace(
        model,
        context_window=context_window or model.context_window,
        images=model.images if images is None else images,
        thinking=thinking,
    )
