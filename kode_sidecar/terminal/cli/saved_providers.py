"""Saves what `setup` was given: variables in the user's `.env`, a provider in `config.yaml`."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kode_sidecar.core.settings import load_settings, state_folder
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.known_providers import BUILTIN_PROVIDERS, PRESETS
from kode_sidecar.infrastructure.providers.profiles import ProviderProfile
from kode_sidecar.infrastructure.providers.provider_config import host_of, is_private
from kode_sidecar.infrastructure.records.disk import replace_file
from kode_sidecar.terminal.cli.command_words import CommandWords

PROVIDERS: Mapping[str, ProviderProfile] = {**BUILTIN_PROVIDERS, **PRESETS}


def provider_at(address: str, words: CommandWords) -> ProviderProfile:
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
        _add_provider(profile, words)
    return profile


def _add_provider(profile: ProviderProfile, words: CommandWords) -> None:
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
    sys.stdout.write(f"{words.saved_provider.format(name=profile.name, path=path)}\n")


def save_variables(path: Path, values: Mapping[str, str]) -> None:
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
