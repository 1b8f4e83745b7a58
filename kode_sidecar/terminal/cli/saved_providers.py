"""Saves what `setup` was given: variables in the user's `.env`, a provider in `config.yaml`."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kode_sidecar.core.settings import load_settings
from kode_sidecar.core.settings.writing import add_to_config, config_path
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.known_providers import BUILTIN_PROVIDERS, PRESETS
from kode_sidecar.infrastructure.providers.profiles import ProviderProfile
from kode_sidecar.infrastructure.providers.provider_config import (
    host_of,
    is_private,
    read_providers,
)
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
    entry: dict[str, str | bool] = {"base_url": address}
    if not at_home:
        entry["api_key_env"] = re.sub("[^A-Z0-9]", "_", name.upper()) + "_API_KEY"
    elif address.startswith("http://"):
        entry["plain_http"] = True
    if name not in known:
        path = config_path(os.environ)
        add_to_config(path, ("providers",), {name: entry})
        sys.stdout.write(f"{words.saved_provider.format(name=name, path=path)}\n")
    return read_providers({name: entry}, {})[name]


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
