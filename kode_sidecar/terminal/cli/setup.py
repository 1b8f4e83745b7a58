"""`kode-sidecar setup`: chooses a provider, tests its key, saves both in the user's `.env`.

A model of one's own has an address instead of a name: it becomes an entry of `config.yaml`.
"""

import argparse
import getpass
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kode_sidecar.core.settings import checked_key, load_settings, state_folder
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.builtin_providers import (
    BUILTIN_PROVIDERS,
    KIMI,
    LOGICAL_MODELS,
)
from kode_sidecar.infrastructure.providers.presets import PRESETS
from kode_sidecar.infrastructure.providers.profiles import ProviderProfile
from kode_sidecar.infrastructure.providers.provider_config import host_of, is_private
from kode_sidecar.infrastructure.records.disk import replace_file
from kode_sidecar.terminal.cli.inquiry import offered_models

PROVIDERS: Mapping[str, ProviderProfile] = {**BUILTIN_PROVIDERS, **PRESETS}
_EXAMPLE = "http://127.0.0.1:8080/v1"


def setup_command(options: argparse.Namespace) -> int:
    """Ask for what the command line leaves out, test and save it; return the exit code."""
    name = options.provider or _asked_name()
    profile = _at_address(name.strip()) if "://" in name else _provider(name)
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


def _asked_name() -> str:
    known = f"{', '.join(PROVIDERS)}, or an address such as {_EXAMPLE}"
    if not sys.stdin.isatty():
        raise KodeError("InvalidParams", f"Name a provider: {known}.")
    return input(f"provider ({known}): ")


def _at_address(address: str) -> ProviderProfile:
    """Return the provider at an address; a new one is saved in `config.yaml`. Raises KodeError."""
    host = host_of(address, "The address", plain_http=True)
    known = load_settings(os.environ).settings.providers
    name = next((name for name, one in known.items() if one.get("base_url") == address), None)
    at_home = is_private(urlsplit(address).hostname or "")
    if name is None:
        slug = "local" if at_home else re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")[:60]
        names = (slug, *(f"{slug}{number}" for number in range(2, 100)))
        name = next(one for one in names if one not in known and one not in PROVIDERS)
    variable = re.sub("[^A-Z0-9]", "_", name.upper()) + "_API_KEY"
    profile = ProviderProfile(
        name=name,
        base_url=address,
        api_key_env=() if at_home else (variable,),
        plain_http=at_home and address.startswith("http://"),
    )
    if name not in known:
        _add_provider(profile)
    return profile


def _add_provider(profile: ProviderProfile) -> None:
    """Add an entry to `config.yaml` and leave the rest of it as it is. Raises KodeError."""
    path = Path(os.environ.get("KODE_CONFIG") or state_folder(os.environ) / "config.yaml")
    fields = [f"base_url: {json.dumps(profile.base_url)}"]
    fields += [f"api_key_env: {name}" for name in profile.api_key_env]
    fields += ["plain_http: true"] if profile.plain_http else []
    try:
        before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        head = re.search(
            r"^providers:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*?(?=([ ]+)\S)", before, re.M
        )
        indent = head[1] if head else "  "
        entry = "".join([f"{indent}{profile.name}:\n", *(f"{indent * 2}{one}\n" for one in fields)])
        at = head.end() if head else len(before)
        start = before[:at] if head else f"{before.rstrip()}\nproviders:\n".lstrip()
        make_private(path.parent)
        replace_file(path, (start + entry + before[at:]).encode(), durable=True)
        if profile.name not in load_settings(os.environ).settings.providers:
            replace_file(path, before.encode(), durable=True)
            text = f"{path} cannot be added to: write this below its `providers`.\n{entry}"
            raise KodeError("ConfigInvalid", text)
    except (OSError, UnicodeError) as error:
        raise KodeError("Storage", f"Cannot write {path}: {error}.") from None
    sys.stdout.write(f"{profile.name} is kept in {path}\n")


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
