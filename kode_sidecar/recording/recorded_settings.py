"""The settings of a process as a recording holds them: all but its keys and its own folders."""

from typing import Any, cast

import msgspec

from kode_sidecar.boot.provider_setup import set_up_providers
from kode_sidecar.recording.transcript import Head
from kode_sidecar.settings import LoadedSettings, Settings

# What stands where a key was; it opens nothing.
_NO_KEY = "recorded-without-its-key"
_DEFAULT_KEY = "KIMI_API_KEY"
_OWN = ("api_key", "proxy", "storage_root", "log_dir")


def keys_in(loaded: LoadedSettings) -> dict[str, str]:
    """Every key in use, by the variable that holds it."""
    providers = set_up_providers(loaded).registry.providers.values()
    names = {name for config in providers for name in config.profile.api_key_env}
    keys = {name: key for name in sorted(names) if (key := loaded.variables.get(name, "").strip())}
    if loaded.settings.api_key:
        keys.setdefault(_DEFAULT_KEY, loaded.settings.api_key)
    return keys


def settings_to_record(loaded: LoadedSettings) -> dict[str, Any]:
    """Names and values, as plain data."""
    data: dict[str, Any] = msgspec.to_builtins(loaded.settings, enc_hook=str)
    return {name: _without_headers(value) for name, value in data.items() if name not in _OWN}


def _without_headers(value: Any) -> Any:
    """Headers of a provider may hold whatever lets its user in."""
    if not isinstance(value, dict):
        return value
    told: dict[str, Any] = {}
    for name, one in cast(dict[str, Any], value).items():
        told[name] = {} if name == "headers" else _without_headers(one)
    return told


def recorded_settings(head: Head, here: LoadedSettings) -> LoadedSettings:
    """The settings of a recording; folders are those of `here`.

    Raises KodeError `Storage` when these are no settings (any more).
    """
    own = {"storage_root": here.settings.storage_root, "log_dir": here.settings.log_dir}
    key = {"api_key": _NO_KEY} if head.keyed else {}
    settings = msgspec.convert({**head.settings, **own, **key}, Settings)
    return LoadedSettings(
        settings=settings,
        sources=dict.fromkeys((*head.settings, *key), "recording"),
        problems=head.problems,
        variables=dict.fromkeys(head.keyed, _NO_KEY),
    )
