"""The providers as the user's settings make them: addresses, keys, models."""

from collections.abc import Sequence
from dataclasses import dataclass

from kode_sidecar.domain.error_info import ErrorInfo, error_info
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.builtin_providers import BUILTIN_PROVIDERS, KIMI, LOGICAL_MODELS
from kode_sidecar.providers.profiles import ProviderProfile
from kode_sidecar.providers.provider_config import (
    HttpTimeouts,
    ProviderConfig,
    read_logical_models,
    read_providers,
)
from kode_sidecar.providers.registry import Registry
from kode_sidecar.settings import LoadedSettings


@dataclass(frozen=True)
class ProviderSetup:
    """All providers, and what is wrong with the settings they come from."""

    registry: Registry
    problems: Sequence[str]

    def missing(self, model: str) -> ErrorInfo | None:
        """What keeps `model` from being asked; wrong settings may mean another host."""
        if self.problems:
            return error_info(KodeError("ConfigInvalid", "; ".join(self.problems)))
        return self.registry.targets(model)[0].config.missing()

    def keys(self) -> list[str]:
        """All keys in use, to mask them."""
        return [config.api_key for config in self.registry.providers.values() if config.api_key]


def set_up_providers(loaded: LoadedSettings) -> ProviderSetup:
    """Never fails: what is wrong is left out and stands among the problems."""
    problems = list(loaded.problems)
    profiles, logical = dict(BUILTIN_PROVIDERS), dict(LOGICAL_MODELS)
    try:
        profiles = read_providers(loaded.settings.providers, BUILTIN_PROVIDERS)
        logical = read_logical_models(loaded.settings.logical_models, LOGICAL_MODELS)
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
    return ProviderSetup(Registry(configs, logical), problems)


def _key(loaded: LoadedSettings, profile: ProviderProfile) -> str:
    if profile.name == KIMI.name and profile.api_key_env == KIMI.api_key_env:
        # These variables are a setting, which `config.yaml` can hold, too.
        return loaded.settings.api_key
    return loaded.key(profile.api_key_env)


def _config(loaded: LoadedSettings, profile: ProviderProfile, key: str) -> ProviderConfig:
    settings = loaded.settings
    moved = profile.name == KIMI.name and "base_url" in loaded.sources
    return ProviderConfig(
        settings.base_url if moved else profile.base_url,
        key,
        proxy=settings.proxy,
        timeouts=HttpTimeouts(
            connect=settings.http_timeout_connect,
            first_byte=settings.http_timeout_first_byte,
            idle=settings.http_timeout_idle,
            write=settings.http_timeout_write,
        ),
        profile=profile,
    )
