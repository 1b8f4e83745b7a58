"""Profiles of providers and models, as data. They are hints: hosts change their lists in months.

The built-in table is `model_table`; users write the same fields in `config.yaml`
(`provider_config`). A host's own words in `GET /models` take precedence over both.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.domain.model_event import UsageReported
from kode_sidecar.infrastructure.http.request import TimeLimits

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

    `cache_write` is the price of tokens written to the host's cache; None: as fresh input.
    `cache_write_hour` is the price of those cached for an hour; None: as other writes.
    """

    input: Amount
    cached: Amount
    output: Amount
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$")] = "USD"
    cache_write: Amount | None = None
    cache_write_hour: Amount | None = None

    def writing(self, *, for_an_hour: bool = False) -> float:
        """Return the price of tokens written to the cache."""
        brief = self.input if self.cache_write is None else self.cache_write
        return self.cache_write_hour if for_an_hour and self.cache_write_hour is not None else brief


class WireNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Names that differ from the usual ones at an OpenAI-compatible host. Empty: the usual one.

    `max_tokens` is a field of the request; `reasoning_back` is the field of an earlier answer that
    returns its reasoning, usually `reasoning_content`. The others are dotted paths in the host's
    answer: `text` and `reasoning` from a delta (or a whole message), `usage` from a chunk, and the
    counts from the usage.
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

    A model that thinks wants its reasoning back. `sampling` False: the vendor fixes temperature and
    top_p and refuses other values. `tools`: it takes tools, except `refused_tools` by name;
    `forced_tools`: a call can be forced. `tool_schema` has no effect any more: all hosts get the
    same plain form. `most_pictures` go into one request; `without` are members that its host
    refuses; `streams` False: it answers as a whole only; `blank_reasoning`: reasoning that it gets
    back may not be empty; `cache_key`: its host takes `prompt_cache_key`, None: as its dialect.
    `context_window` and `max_output` are in tokens; None: unknown. `provider` names who runs the
    model: others refuse what it has signed. `body` has more fields for every request.
    `cuts_silently`: its host cuts a long prompt without an error.
    `efforts` has the request fields for each thinking effort, `effort` is the default one.
    `system_notes`: it takes system messages in mid-conversation; `late_tools`: with tools in them;
    None: as `known_providers` knows the host.
    """

    id: Name
    dialect: DialectName = "kimi"
    provider: str = ""
    thinking: Thinking = "never"
    sampling: bool = False
    tools: bool = True
    refused_tools: tuple[Name, ...] = ()
    forced_tools: bool = False
    images: bool = False
    most_pictures: Annotated[int, Meta(ge=0)] | None = None
    without: tuple[Name, ...] = ()
    streams: bool = True
    blank_reasoning: bool = False
    cache_key: bool | None = None
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
        """True if the user's `body` asks the host to cache requests for an hour."""
        return any(
            isinstance(value, Mapping) and cast(Mapping[str, Any], value).get("ttl") == "1h"
            for value in self.body.values()
        )

    @property
    def returns_thinking(self) -> bool:
        """True if the model gets its reasoning back; two dialects always return signed one."""
        sealed = self.dialect in ("anthropic_messages", "openai_responses")
        return sealed or self.thinking != "never"


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """The header that carries the key, and the prefix of the key."""

    header: HeaderName = "authorization"
    prefix: HeaderValue = "Bearer "


class ProviderProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host of models. `name` is the prefix of its models' names: `name/id`.

    `api_key_env` are the variables that may hold the key, the first one set wins; none: the host
    needs no key. `auth` None: as in its dialect. `headers` go with every request. `console` is the
    web page for keys, `sibling` the address of a host whose keys are mistaken for this one's.
    `body`, `timeouts` and `efforts` are defaults for its models. `base_url_env`: the variable that
    overrides the address, if there is one. `plain_http`: the user confirms that the host is in
    their own network and has no certificate.
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
    cache_key: bool | None = None

    def model(self, model_id: str) -> ModelProfile:
        """Return the profile of a model id; a careful guess for an unknown id.

        Every current Kimi model thinks and fixes its sampling; other vendors must never get
        reasoning back, and all accept a missing temperature.
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
            cache_key=self.cache_key if model.cache_key is None else model.cache_key,
        )

    def listed(self, model_id: str) -> ModelProfile | None:
        """Return the profile of a listed id, or None."""
        return next((model for model in self.models if model.id == model_id), None)


def usage_event(
    usage: Usage, price: TokenPrice | None, said: float | None = None, *, for_an_hour: int = 0
) -> UsageReported:
    """Return usage with its cost: the one that the host `said`, else by the price if known.

    `for_an_hour` counts the written tokens that stay in the cache for an hour. A reported cost is
    in the currency of the price, or in dollars without a price.
    """
    if said is not None:
        currency = price.currency if price else "USD"
        return UsageReported(usage, Cost(said, currency), said if currency == "USD" else None)
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
        + usage.written_tokens * price.output
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
        # Only hosts of this dialect want reasoning back; others must never get it.
        thinking = "optional"
    return replace(
        model,
        context_window=context_window or model.context_window,
        images=model.images if images is None else images,
        thinking=thinking,
    )
