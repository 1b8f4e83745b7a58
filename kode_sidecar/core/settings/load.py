"""Reads the settings from all sources; a stronger source replaces single values of a weaker one.

Weakest first: defaults < the user's `config.yaml` < the user's `.env` < environment < editor.
The two files lie in the state folder (`KODE_HOME`, else the user's data folder); `KODE_CONFIG`
and `--env-file` name others. Nothing is ever looked for in the working directory, so a project
cannot set anything.
"""

import os
import sys
from collections.abc import Mapping
from locale import getlocale
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kode_sidecar.core.settings import checks
from kode_sidecar.core.settings.files import read_config_file, read_env_file
from kode_sidecar.core.settings.values import (
    EDITOR_NAMES,
    ENV_NAMES,
    NAMES,
    LoadedSettings,
    Settings,
    checked,
)
from kode_sidecar.errors import KodeError


class _Draft:
    """Values, sources and problems while settings are merged, weakest source first."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.sources: dict[str, str] = {}
        self.problems: list[str] = []
        self.variables: dict[str, str] = {}

    def put(self, name: str, raw: object, source: str, *, is_text: bool = False) -> None:
        """Check one raw value and let it replace a weaker one."""
        try:
            self.values[name] = checked(name, raw, is_text=is_text)
            self.sources[name] = source
        except ValueError as error:
            self.problems.append(f"{source}: `{name}`: {error}")

    def put_environment(self, environ: Mapping[str, str], source: str) -> None:
        """Let environment variables replace weaker values; an empty variable counts as unset."""
        self.variables |= {name: text for name, text in environ.items() if text.strip()}
        for name, variables in ENV_NAMES.items():
            for variable in variables:
                if text := environ.get(variable, "").strip():
                    self.put(name, text, f"{source} {variable}", is_text=True)
                    break


def load_settings(
    environ: Mapping[str, str],
    *,
    env_file: str | os.PathLike[str] | None = None,
    editor: Mapping[str, object] | None = None,
) -> LoadedSettings:
    """Return settings from all sources; `env_file` replaces the state folder's `.env`.

    Wrong values are reported in `problems`. Raises KodeError `ConfigInvalid` as `with_editor` does.
    """
    draft = _Draft()
    home = state_folder(environ)
    _put_config_file(draft, environ, home)
    _put_env_file(draft, None if env_file is None else Path(env_file), home)
    draft.put_environment(environ, "environment")
    if "locale" not in draft.values and (said := _system_locale(environ)):
        draft.put("locale", said, "system")
    root = draft.values.setdefault("storage_root", home)
    draft.values.setdefault("log_dir", Path(str(root)) / "logs")
    loaded = LoadedSettings(
        settings=msgspec.convert(draft.values, Settings),
        sources=draft.sources,
        problems=tuple(draft.problems),
        variables=draft.variables,
    )
    return with_editor(loaded, editor or {})


def client_agent(loaded: LoadedSettings) -> str:
    """Return the agent of the built-in clients: the user's choice, else `coder`."""
    return loaded.settings.agent if "agent" in loaded.sources else "coder"


def with_editor(
    loaded: LoadedSettings,
    editor: Mapping[str, object],
    *,
    locale: str | None = None,
    trusted: bool = False,
) -> LoadedSettings:
    """Return `loaded` with the handshake's `settings` (camelCase), `locale` and `trusted` on top.

    A wrong value is reported in `problems`; an unknown name is ignored as everywhere on the wire.
    Raises KodeError `ConfigInvalid` for settings that only the user may set.
    """
    draft = _Draft()
    if locale:
        # The editor's display language may be one that we have no texts for.
        draft.put("locale", "zh" if locale.lower().startswith("zh") else "en", "editor")
    if trusted:
        draft.put("trusted", True, "editor")
    for name, raw in editor.items():
        if name in EDITOR_NAMES:
            draft.put(EDITOR_NAMES[name], raw, "editor")
        elif (user_name := _user_only(name)) is not None:
            raise KodeError(
                "ConfigInvalid",
                f"an editor may not set `{name}`: set {_where(user_name)}",
            )
    return LoadedSettings(
        settings=replace(loaded.settings, **draft.values),
        sources={**loaded.sources, **draft.sources},
        problems=(*loaded.problems, *draft.problems),
        variables=loaded.variables,
    )


class LiveSettings:
    """The settings of a process; its editor may change those of the handshake, and trust.

    Read `loaded` each time to get the present settings.
    """

    def __init__(self, loaded: LoadedSettings) -> None:
        self.loaded = loaded

    def trusted(self) -> bool:
        """Whether the user trusts the open folders."""
        return self.loaded.settings.trusted

    def trust(self, trusted: bool) -> None:
        """Set whether the user trusts the open folders."""
        settings = replace(self.loaded.settings, trusted=trusted)
        sources = {**self.loaded.sources, "trusted": "editor"}
        self.loaded = replace(self.loaded, settings=settings, sources=sources)

    def update(self, editor: Mapping[str, object]) -> None:
        """Apply new settings of the handshake, or none. Raises KodeError `ConfigInvalid`."""
        loaded = with_editor(self.loaded, editor)
        if wrong := loaded.problems[len(self.loaded.problems) :]:
            raise KodeError("ConfigInvalid", "; ".join(wrong))
        self.loaded = loaded


def _where(name: str) -> str:
    """Return where the user sets a setting that an editor may not set."""
    in_file = f"`{name}` in your own config.yaml"
    variables = ENV_NAMES[name]
    return f"{variables[0]} in the environment, or {in_file}" if variables else in_file


def _user_only(name: str) -> str | None:
    """Return the user-only setting that `name` spells in any way; None if there is none."""
    plain = name.replace("_", "").lower()
    for setting in NAMES:
        if setting.replace("_", "") == plain and setting not in EDITOR_NAMES.values():
            return setting
    return None


def _system_locale(environ: Mapping[str, str]) -> str:
    """Return the system's language, "" if unknown (POSIX, Locale Environment Variables)."""
    names = (environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    name = next(filter(None, names), "")
    if not name and sys.platform == "win32" and environ is os.environ:
        name = getlocale()[0] or ""
    if name.partition(".")[0] in ("", "C", "POSIX"):
        return ""
    return "zh" if name.lower().startswith(("zh", "chinese")) else "en"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the user's two files and, unless they name another, of all data."""
    if home := environ.get("KODE_HOME", "").strip():
        try:
            return checks.folder(home)
        except ValueError:
            pass  # reported when the environment is read
    # Imported late: it takes 4 ms, which users with KODE_HOME save.
    from platformdirs import user_data_path  # noqa: PLC0415

    return user_data_path("kode-sidecar", appauthor=False)


def _put_config_file(draft: _Draft, environ: Mapping[str, str], home: Path) -> None:
    """Read the user's `config.yaml` over the defaults; one that `KODE_CONFIG` names must exist."""
    path, named = home / "config.yaml", environ.get("KODE_CONFIG", "").strip()
    try:
        if named:
            path = checks.folder(named)
        elif not path.exists():
            return
        values = read_config_file(path)
    except ValueError as error:
        draft.problems.append(f"environment KODE_CONFIG: {error}")
    except KodeError as error:
        draft.problems.append(error.message)
    else:
        for name, raw in values.items():
            if name in NAMES:
                draft.put(name, raw, path.name)
            else:
                known = ", ".join(NAMES)
                draft.problems.append(f"{path.name}: `{name}` is no setting; use one of {known}")


def _put_env_file(draft: _Draft, env_file: Path | None, home: Path) -> None:
    """Read the user's `.env` over weaker values; one that the user named must exist."""
    path = env_file or home / ".env"
    if env_file is None and not path.exists():
        return
    try:
        values, problems = read_env_file(path)
    except KodeError as error:
        draft.problems.append(error.message)
    else:
        draft.problems.extend(problems)
        draft.put_environment(values, path.name)
