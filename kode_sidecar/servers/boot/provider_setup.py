"""Sets up the providers from the user's settings: addresses, keys, models."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec.structs import replace

from kode_sidecar.core.domain.budget import Prices
from kode_sidecar.core.domain.error_info import ErrorInfo, error_info
from kode_sidecar.core.protocol.process import AuthStatusResult, ProviderAuth
from kode_sidecar.core.settings import LoadedSettings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import AT_HOME, HttpTimeouts, TimeLimits
from kode_sidecar.infrastructure.providers.known_providers import (
    BUILTIN_PROVIDERS,
    KIMI,
    LOGICAL_MODELS,
    PRESET_MODELS,
    PRESETS,
    as_at_host,
    billed_by,
)
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, ProviderProfile
from kode_sidecar.infrastructure.providers.provider_config import (
    ProviderConfig,
    is_private,
    read_logical_models,
    read_providers,
)
from kode_sidecar.infrastructure.providers.registry import Registry


@dataclass(frozen=True)
class ProviderSetup:
    """All providers, and the problems of the settings they come from.

    `own_host`: the user has set another host, whose models are not known here.
    """

    registry: Registry
    problems: Sequence[str]
    own_host: bool

    def missing(self, model: str) -> ErrorInfo | None:
        """Return why `model` cannot be asked, or None; bad settings could mean another host."""
        if self.problems:
            return error_info(KodeError("ConfigInvalid", "; ".join(self.problems)))
        return self.registry.targets(model)[0].config.missing()

    def provider_of(self, model: str) -> str:
        """Return the name of the provider of this model."""
        return self.registry.targets(model)[0].config.name

    @property
    def model_names(self) -> Sequence[str]:
        """Names of the models that are known without asking a host."""
        known = [
            f"{config.name}/{model.id}"
            for config in self.registry.providers.values()
            if config.missing() is None
            for model in config.profile.models
        ]
        return (*self.registry.logical_models, *known)

    def check_model(self, name: str) -> None:
        """Raises KodeError `ConfigInvalid` for a model of an unknown provider.

        Only the host knows which model ids it has.
        """
        provider, slash, _ = name.partition("/")
        providers, logical = self.registry.providers, self.registry.logical_models
        known = provider in providers or name in logical or not slash or self.own_host
        if not name.strip() or not known:
            names = ", ".join([*logical, *(f"{one}/..." for one in providers)])
            missing = f"provider {provider}" if slash else f"model {name!r}"
            text = f"There is no {missing}. As model you can say {names}."
            raise KodeError("ConfigInvalid", text, details={"path": "$.model"})

    async def auth_report(self, default_model: str) -> AuthStatusResult:
        """Return for each provider whether it can be asked, and which variables hold its key.

        Presets that only lack a key are among them: a client can offer to set it.
        """
        default = self.provider_of(default_model)
        providers: list[ProviderAuth] = []
        presets = {
            name: ProviderConfig(profile.base_url, "", profile=profile)
            for name, profile in PRESETS.items()
            if profile.api_key_env and name not in self.registry.providers
        }
        for name, config in {**self.registry.providers, **presets}.items():
            error = config.missing()
            providers.append(
                ProviderAuth(
                    name=name,
                    ready=error is None,
                    default=name == default,
                    variables=tuple(config.profile.api_key_env),
                    error=error,
                )
            )
        return AuthStatusResult(providers=tuple(providers))

    def keys(self) -> list[str]:
        """Return all keys in use, so that they can be masked."""
        return [config.api_key for config in self.registry.providers.values() if config.api_key]


def set_up_providers(loaded: LoadedSettings) -> ProviderSetup:
    """Set up all providers. Never fails: what is invalid is left out and listed as a problem."""
    problems = list(loaded.problems)
    profiles, logical = dict(BUILTIN_PROVIDERS), dict(LOGICAL_MODELS)
    try:
        presets = _presets(loaded)
        profiles = read_providers(loaded.settings.providers, {**BUILTIN_PROVIDERS, **presets})
        names = {name: PRESET_MODELS[name] for name in presets if name in PRESET_MODELS}
        logical = read_logical_models(loaded.settings.logical_models, {**LOGICAL_MODELS, **names})
    except KodeError as error:
        problems.append(f"config.yaml: {error.message}")
    configs: list[ProviderConfig] = []
    for profile in profiles.values():
        try:
            key = _key(loaded, profile)
        except KodeError as error:
            problems.append(error.message)
            key = ""
        configs.append(_config(loaded, profile, key))
    return ProviderSetup(Registry(configs, logical), problems, "base_url" in loaded.sources)


def usable_model(loaded: LoadedSettings, wanted: str | None) -> str | None:
    """Return `wanted`, else a model to use if the configured one cannot be asked, else None.

    Raises KodeError `ConfigInvalid` if `wanted` is of an unknown provider.
    """
    named = wanted or loaded.settings.model
    setup = set_up_providers(with_model(loaded, named))
    providers = setup.registry.providers
    if wanted:
        setup.check_model(wanted)
        return wanted
    if setup.problems or setup.missing(named) is None:
        return None
    ready = (one for one in providers.values() if one.api_key and one.profile.models)
    return next((f"{one.name}/{one.profile.models[0].id}" for one in ready), None)


def with_model(loaded: LoadedSettings, model: str) -> LoadedSettings:
    """Return the settings with this model."""
    return replace(loaded, settings=replace(loaded.settings, model=model))


def likely_prices(models: Sequence[ModelProfile]) -> Prices | None:
    """Return the prices of the model that will answer, which is the first one.

    If they are unknown, the highest of those after it; None if there are none, or in two
    currencies.
    """
    models = models[:1] if models[0].price is not None else models
    known = [model.price for model in models if model.price is not None]
    if not known or len({price.currency for price in known}) > 1:
        return None
    written = (
        model.price.writing(for_an_hour=model.caches_for_an_hour)
        for model in models
        if model.price is not None
    )
    return Prices(
        known[0].currency,
        max(price.input for price in known),
        max(price.cached for price in known),
        max(price.output for price in known),
        max(written),
    )


def _presets(loaded: LoadedSettings) -> dict[str, ProviderProfile]:
    """Return the presets that the user names in `providers` or `model`, or has a key for."""
    named = {*loaded.settings.providers, loaded.settings.model.partition("/")[0]}
    return {
        name: profile
        for name, profile in PRESETS.items()
        if name in named or any(map(loaded.variables.get, profile.api_key_env))
    }


def _key(loaded: LoadedSettings, profile: ProviderProfile) -> str:
    if profile.name == KIMI.name and profile.api_key_env == KIMI.api_key_env:
        # These variables are a setting, which `config.yaml` can hold as well.
        return loaded.settings.api_key
    return loaded.key(profile.api_key_env)


def _config(loaded: LoadedSettings, profile: ProviderProfile, key: str) -> ProviderConfig:
    settings = loaded.settings
    moved = profile.name == KIMI.name and "base_url" in loaded.sources
    base_url = settings.base_url if moved else profile.base_url
    host = urlsplit(base_url).hostname or ""
    return ProviderConfig(
        base_url,
        key,
        proxy=settings.proxy,
        timeouts=_timeouts(loaded, host),
        profile=as_at_host(host, billed_by(host, profile)),
    )


def _timeouts(loaded: LoadedSettings, host: str) -> HttpTimeouts:
    """Return the timeouts for a host; one at home may be silent for longer, unless set."""
    settings = loaded.settings
    timeouts = HttpTimeouts(
        connect=settings.http_timeout_connect,
        first_byte=settings.http_timeout_first_byte,
        idle=settings.http_timeout_idle,
        write=settings.http_timeout_write,
    )
    unset = [one for one in ("first_byte", "idle") if f"http_timeout_{one}" not in loaded.sources]
    return (
        timeouts.of(TimeLimits(**dict.fromkeys(unset, AT_HOME))) if is_private(host) else timeouts
    )
