"""`kode-sidecar setup`: chooses a provider, tests its key, saves both in the user's `.env`.

A model of one's own has an address instead of a name: it becomes an entry of `config.yaml`.
"""

import argparse
import getpass
import os
import sys

from kode_sidecar.core.settings import checked_key, state_folder
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.builtin_providers import KIMI, LOGICAL_MODELS
from kode_sidecar.infrastructure.providers.presets import PRESETS
from kode_sidecar.infrastructure.providers.profiles import ProviderProfile
from kode_sidecar.terminal.cli.inquiry import offered_models
from kode_sidecar.terminal.cli.saved_providers import PROVIDERS, provider_at, save_variables

_EXAMPLE = "http://127.0.0.1:8080/v1"


def setup_command(options: argparse.Namespace) -> int:
    """Ask for what the command line leaves out, test and save it; return the exit code."""
    name = options.provider or _asked_name()
    profile = provider_at(name.strip()) if "://" in name else _provider(name)
    values: dict[str, str] = {}
    if profile.api_key_env:
        values[profile.api_key_env[0]] = _key(profile)
    offered: list[str] = []
    if not options.untested:
        # One free request: the host's list of models.
        offered = offered_models(profile.name, {**os.environ, **values, "KODE_MODEL": profile.name})
        sys.stdout.write(f"{profile.base_url} has answered; it offers {len(offered)} models.\n")
    model = options.model or _model(profile, offered)
    if model is not None:
        values["KODE_MODEL"] = model
    path = state_folder(os.environ) / ".env"
    save_variables(path, values)
    sys.stdout.write(f"kept in {path}: {', '.join(values)}\n")
    return 0


def _asked_name() -> str:
    known = f"{', '.join(PROVIDERS)}, or an address such as {_EXAMPLE}"
    if not sys.stdin.isatty():
        raise KodeError("InvalidParams", f"Name a provider: {known}.")
    return input(f"provider ({known}): ")


def _provider(name: str) -> ProviderProfile:
    profile = PROVIDERS.get(name.strip().lower())
    if profile is None:
        text = f"There is no provider {name}: use one of {', '.join(PROVIDERS)}."
        raise KodeError("InvalidParams", text)
    return profile


def _key(profile: ProviderProfile) -> str:
    """Read the key without showing it. Raises KodeError."""
    if sys.stdin.isatty():
        where = f" (made at {profile.console})" if profile.console else ""
        text = getpass.getpass(f"key for {profile.base_url}{where}: ")
    else:
        text = sys.stdin.readline()
    try:
        key = checked_key(text)
    except ValueError as error:
        raise KodeError("InvalidParams", f"The key {error}.") from None
    if not key:
        raise KodeError("InvalidParams", "There is no key: nothing was written.")
    return key


def _model(profile: ProviderProfile, offered: list[str]) -> str | None:
    """Return the value for the setting `model`: the preset's name, else the first model listed."""
    if profile.name == KIMI.name:
        return next(iter(LOGICAL_MODELS))
    if profile.models and profile.name in PRESETS:
        return profile.name
    listed = [f"{profile.name}/{model.id}" for model in profile.models]
    return next(iter([*listed, *offered]), None)
