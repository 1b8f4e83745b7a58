"""`kode-sidecar setup`: chooses a provider, tests its key, saves both in the user's `.env`.

A model of one's own has an address instead of a name: it becomes an entry of `config.yaml`.
At a terminal a mistake is asked for again; `chat` and `ask` begin here where no key is set.
"""

import argparse
import getpass
import os
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

from kode_sidecar.core.settings import LoadedSettings, checked_key, load_settings, state_folder
from kode_sidecar.core.text.shown_text import one_line, visible
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.known_providers import KIMI, LOGICAL_MODELS, PRESETS
from kode_sidecar.infrastructure.providers.profiles import ProviderProfile
from kode_sidecar.servers.boot.provider_setup import set_up_providers, usable_model, with_model
from kode_sidecar.terminal.cli.command_words import CommandWords, command_words
from kode_sidecar.terminal.cli.inquiry import offered_models
from kode_sidecar.terminal.cli.saved_providers import PROVIDERS, provider_at, save_variables

_EXAMPLE = "http://127.0.0.1:8080/v1"


def setup_command(options: argparse.Namespace) -> int:
    """Ask for what the command line leaves out, test and save it; return the exit code."""
    setup = Setup(command_words(options.locale), options.model, untested=options.untested)
    if not setup.run(options.provider or "", setup.words.which_host):
        return 1
    sys.stdout.write(f"{setup.words.next_step}\n" if sys.stdin.isatty() else "")
    return 0


def settings_with_key(wanted: str | None, locale: str | None) -> LoadedSettings:
    """Return the user's settings; if no model can be asked, after `setup` at a terminal.

    `wanted` is the model of the command line: then only its key is asked for, and saved. Raises
    KodeError `AuthRequired` if the user gives up.
    """
    loaded = load_settings(os.environ)
    named = usable_model(loaded, wanted) or loaded.settings.model
    providers = set_up_providers(with_model(loaded, named))
    missing = None if providers.problems else providers.missing(named)
    if missing is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return loaded
    setup = Setup(command_words(locale), chooses=wanted is None)
    if not setup.run(providers.provider_of(named) if wanted else "", setup.words.no_key):
        raise KodeError("AuthRequired", missing.message)
    return load_settings(os.environ)


@dataclass
class Setup:
    """One setup. Without `chooses` the default model stays as it is; `untested` sends nothing."""

    words: CommandWords
    model: str | None = None
    untested: bool = False
    chooses: bool = True

    def run(self, provider: str, question: str) -> bool:
        """Set up a provider, or the one that the user chooses; False if the user gives up.

        Where nobody sits at the terminal a mistake raises KodeError.
        """
        while True:
            try:
                name = provider or self._asked(question)
                profile = provider_at(name.strip(), self.words) if "://" in name else self._of(name)
                provider = name if profile.api_key_env else ""
                self._set_up(profile)
            except KodeError as error:
                if not sys.stdin.isatty():
                    raise
                sys.stdout.write(f"⚠ {visible(one_line(error.message))}\n")
                provider = provider if error.code == "AuthRequired" else ""
            except EOFError:
                sys.stdout.write(f"\n{self.words.given_up}\n")
                return False
            else:
                return True

    def _set_up(self, profile: ProviderProfile) -> None:
        """Test the key of a provider and save it. Raises KodeError and EOFError."""
        values: dict[str, str] = {}
        if profile.api_key_env:
            values[profile.api_key_env[0]] = self._key(profile)
        offered: list[str] = []
        if not self.untested:
            # One free request: the host's list of models.
            asked = {**os.environ, **values, "KODE_MODEL": profile.name}
            offered = offered_models(profile.name, asked)
            host = urlsplit(profile.base_url).netloc
            sys.stdout.write(f"{self.words.answered.format(host=host, count=len(offered))}\n")
        model = self.model or _model(profile, offered)
        if model is not None and self.chooses:
            values["KODE_MODEL"] = model
        path = state_folder(os.environ) / ".env"
        save_variables(path, values)
        sys.stdout.write(f"{self.words.saved.format(path=path, names=', '.join(values))}\n")

    def _asked(self, question: str) -> str:
        """Return the user's choice: a name or an address. Raises KodeError and EOFError."""
        names = list(PROVIDERS)
        if not sys.stdin.isatty():
            text = self.words.name_one.format(names=", ".join(names), example=_EXAMPLE)
            raise KodeError("InvalidParams", text)
        lines = [question, ""]
        for number, profile in enumerate(PROVIDERS.values(), 1):
            where = urlsplit(profile.base_url).hostname if profile.api_key_env else None
            lines.append(f"  {number:2}  {profile.name:<17} {where or self.words.at_home}")
        lines += ["", self.words.own_address.format(example=_EXAMPLE), ""]
        sys.stdout.write("\n".join(lines))
        typed = input(self.words.provider.format(default=names[0])).strip() or "1"
        is_number = typed in map(str, range(1, len(names) + 1))
        return names[int(typed) - 1] if is_number else typed

    def _of(self, name: str) -> ProviderProfile:
        profile = PROVIDERS.get(name.strip().lower())
        if profile is None:
            text = self.words.no_provider.format(name=name, names=", ".join(PROVIDERS))
            raise KodeError("InvalidParams", text)
        return profile

    def _key(self, profile: ProviderProfile) -> str:
        """Read the key without showing it. Raises KodeError and EOFError."""
        if sys.stdin.isatty():
            if profile.console:
                sys.stdout.write(f"{self.words.console.format(console=profile.console)}\n")
            sys.stdout.flush()
            host = urlsplit(profile.base_url).netloc
            text = getpass.getpass(self.words.key.format(host=host))
        else:
            text = sys.stdin.readline()
        try:
            key = checked_key(text)
        except ValueError as error:
            raise KodeError("InvalidParams", self.words.bad_key.format(error=error)) from None
        if not key:
            raise KodeError("InvalidParams", self.words.empty_key)
        return key


def _model(profile: ProviderProfile, offered: list[str]) -> str | None:
    """Return the value for the setting `model`: the preset's name, else the first model listed."""
    if profile.name == KIMI.name:
        return next(iter(LOGICAL_MODELS))
    if profile.models and profile.name in PRESETS:
        return profile.name
    listed = [f"{profile.name}/{model.id}" for model in profile.models]
    return next(iter([*listed, *offered]), None)
