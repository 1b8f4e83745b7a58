"""`kode-sidecar setup`: chooses a provider, tests its key, saves both in the user's `.env`."""

import argparse
import getpass
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from kode_sidecar.core.settings import checked_key, state_folder
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.builtin_providers import (
    BUILTIN_PROVIDERS,
    KIMI,
    LOGICAL_MODELS,
)
from kode_sidecar.infrastructure.providers.presets import PRESETS
from kode_sidecar.infrastructure.providers.profiles import ProviderProfile
from kode_sidecar.infrastructure.records.disk import replace_file
from kode_sidecar.terminal.cli.inquiry import offered_models

PROVIDERS: Mapping[str, ProviderProfile] = {**BUILTIN_PROVIDERS, **PRESETS}


def setup_command(options: argparse.Namespace) -> int:
    """Ask for what the command line leaves out, test and save it; return the exit code."""
    profile = _provider(options.provider)
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
    _save(path, values)
    sys.stdout.write(f"kept in {path}: {', '.join(values)}\n")
    return 0


def _provider(name: str | None) -> ProviderProfile:
    if name is None:
        if not sys.stdin.isatty():
            raise KodeError("InvalidParams", f"Name a provider: {', '.join(PROVIDERS)}.")
        name = input(f"provider ({', '.join(PROVIDERS)}): ")
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


def _save(path: Path, values: Mapping[str, str]) -> None:
    """Set variables in a `.env`, keeping its other lines; only the user can read it afterwards."""
    try:
        make_private(path.parent)
        before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        names = "|".join(map(re.escape, values))
        lines = [
            line
            for line in before.splitlines()
            if not re.match(rf"[ \t]*(?:export[ \t]+)?(?:{names})[ \t]*=", line)
        ]
        lines += [f"{name}={value}" for name, value in values.items()]
        text = "\n".join(lines) + "\n"
        replace_file(path, text.encode("utf-8"), durable=True)
    except (OSError, UnicodeError) as error:
        raise KodeError("Storage", f"Cannot write {path}: {error}.") from None
