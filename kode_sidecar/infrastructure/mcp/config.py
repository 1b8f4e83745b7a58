"""Reads the servers that the user has configured. Pure.

An entry names the environment variables that its server gets; the configuration never holds
their values.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import ServerConfig, Source

NAME = re.compile(r"\w[\w.-]{0,63}")
VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
MOST_SERVERS = 64
Seconds = Annotated[float, Meta(gt=0, le=3_600)]


class _UserServer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of `mcp` in `config.yaml`."""

    command: list[str] = []
    url: str = ""
    env: list[str] = []
    headers: dict[str, str] = {}
    folder: str = ""
    tools: list[str] = []
    trusted_tools: list[str] = []
    direct: bool = False
    login_hosts: list[str] = []
    client_id: str = ""
    client_secret: str = ""
    client_metadata_url: str = ""
    disabled: bool = False
    start_seconds: Seconds = 30.0
    call_seconds: Seconds = 120.0


def user_servers(
    raw: Mapping[str, Any],
    variables: Mapping[str, str],
    source: Source = "user",
    problem: Callable[[str], None] | None = None,
) -> tuple[ServerConfig, ...]:
    """Return the servers of the setting `mcp`, in order; `variables` are the user's environment.

    All words but names may use a variable as `${NAME}` or `${NAME:-default}`. An invalid entry goes
    to `problem`; without it, raises KodeError `ConfigInvalid` naming the entry.
    """
    if len(raw) > MOST_SERVERS:
        raise KodeError("ConfigInvalid", f"`mcp`: at most {MOST_SERVERS} servers.")
    found: list[ServerConfig] = []
    for name, entry in raw.items():
        try:
            server = _user_server(str(name), entry, variables, source)
        except KodeError as error:
            if problem is None:
                raise
            problem(error.message)
        else:
            found += [] if server is None else [server]
    return tuple(found)


def _user_server(
    name: str, raw: object, variables: Mapping[str, str], source: Source
) -> ServerConfig | None:
    where = f"`mcp.{name}`"
    try:
        entry = msgspec.convert(raw, _UserServer)
    except msgspec.ValidationError as error:
        raise KodeError("ConfigInvalid", f"{where}: {error}") from None
    check(name, where, program=bool(entry.command), address=bool(entry.url))
    if entry.disabled:
        return None
    missing = [one for one in entry.env if one not in variables]
    if missing:
        text = f"{where}: the environment variable {missing[0]} is not set."
        raise KodeError("ConfigInvalid", text)
    fill = Filler(variables, where)
    client = {
        key: fill(value)
        for key in ("client_id", "client_secret", "client_metadata_url")
        if (value := getattr(entry, key))
    }
    return ServerConfig(
        name,
        tuple(map(fill, entry.command)),
        fill(entry.url),
        {one: variables[one] for one in entry.env},
        {key: fill(value) for key, value in entry.headers.items()},
        str(Path(entry.folder).expanduser()) if entry.folder else "",
        tuple(entry.tools),
        tuple(entry.trusted_tools),
        direct=entry.direct,
        login_hosts=tuple(entry.login_hosts),
        login_client=client,
        source=source,
        start_seconds=entry.start_seconds,
        call_seconds=entry.call_seconds,
        shown=(entry.url,) if entry.url else tuple(entry.command),
    )


def check(name: str, where: str, *, program: bool, address: bool) -> None:
    """Raise KodeError `ConfigInvalid` for a bad name, or unless exactly one of program and URL."""
    if not NAME.fullmatch(name):
        text = f"{where}: a server's name has up to 64 letters, digits, `-`, `_` and `.`."
        raise KodeError("ConfigInvalid", text)
    if program == address:
        text = f"{where}: give either `command`, as a list of words, or `url`."
        raise KodeError("ConfigInvalid", text)


def is_safe(url: str) -> bool:
    """Return whether nobody on the way can read the traffic: https, or http to this machine."""
    with suppress(ValueError):
        parts = urlsplit(url)
        local = parts.hostname in ("127.0.0.1", "localhost", "::1")
        return bool(parts.hostname) and parts.scheme in (("https", "http") if local else ("https",))
    return False


def check_address(config: ServerConfig) -> None:
    """Raise KodeError `ConfigInvalid` for anything but https, or http to this machine (W9)."""
    if not is_safe(config.url):
        text = f"The address of the MCP server {config.name} must begin with https://."
        raise KodeError("ConfigInvalid", text)


class Filler:
    """Replaces each `${NAME}` and `${NAME:-default}` in texts; `used` are the names it has met."""

    def __init__(self, variables: Mapping[str, str], where: str) -> None:
        self.used: set[str] = set()
        self._variables = variables
        self._where = where

    def __call__(self, text: str) -> str:
        """Return `text` filled in. Raises KodeError `ConfigInvalid` for a name that is not set."""
        return VARIABLE.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        name, default = found.groups()
        self.used.add(name)
        value = self._variables.get(name)
        if value is None and default is None:
            text = f"the environment variable {name} is not set. Set it, or write ${{{name}:-…}}."
            raise KodeError("ConfigInvalid", f"{self._where}: {text}")
        return value or default or ""
