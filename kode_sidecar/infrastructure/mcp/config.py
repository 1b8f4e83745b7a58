"""Reads the servers that the user has configured. Pure.

An entry names the environment variables that its server gets; the configuration never holds
their values.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import ServerConfig, Source

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
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
    start_seconds: Seconds = 30.0
    call_seconds: Seconds = 120.0


def user_servers(
    raw: Mapping[str, Any], variables: Mapping[str, str], source: Source = "user"
) -> tuple[ServerConfig, ...]:
    """Return the servers of the setting `mcp`, in order; `variables` are the user's environment.

    A header may use a variable as `${NAME}`. Raises KodeError `ConfigInvalid` naming the entry.
    """
    if len(raw) > MOST_SERVERS:
        raise KodeError("ConfigInvalid", f"`mcp`: at most {MOST_SERVERS} servers.")
    return tuple(_user_server(str(name), entry, variables, source) for name, entry in raw.items())


def _user_server(
    name: str, raw: object, variables: Mapping[str, str], source: Source
) -> ServerConfig:
    where = f"`mcp.{name}`"
    try:
        entry = msgspec.convert(raw, _UserServer)
    except msgspec.ValidationError as error:
        raise KodeError("ConfigInvalid", f"{where}: {error}") from None
    check(name, where, program=bool(entry.command), address=bool(entry.url))
    missing = [one for one in entry.env if one not in variables]
    if missing:
        text = f"{where}: the environment variable {missing[0]} is not set."
        raise KodeError("ConfigInvalid", text)
    return ServerConfig(
        name,
        tuple(entry.command),
        entry.url,
        {one: variables[one] for one in entry.env},
        filled(entry.headers, variables, where),
        str(Path(entry.folder).expanduser()) if entry.folder else "",
        tuple(entry.tools),
        tuple(entry.trusted_tools),
        direct=entry.direct,
        login_hosts=tuple(entry.login_hosts),
        source=source,
        start_seconds=entry.start_seconds,
        call_seconds=entry.call_seconds,
    )


def check(name: str, where: str, *, program: bool, address: bool) -> None:
    """Raise KodeError `ConfigInvalid` for a bad name, or unless exactly one of program and URL."""
    if not NAME.fullmatch(name):
        text = f"{where}: a server's name has up to 32 letters, digits, `-` and `_`."
        raise KodeError("ConfigInvalid", text)
    if program == address:
        text = f"{where}: give either `command`, as a list of words, or `url`."
        raise KodeError("ConfigInvalid", text)


def is_safe(url: str) -> bool:
    """Return whether nobody on the way can read the traffic: https, or http to this machine."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    return bool(parts.hostname) and (parts.scheme == "https" or (local and parts.scheme == "http"))


def check_address(config: ServerConfig) -> None:
    """Raise KodeError `ConfigInvalid` for anything but https, or http to this machine (W9)."""
    if not is_safe(config.url):
        text = f"The address of the MCP server {config.name} must begin with https://."
        raise KodeError("ConfigInvalid", text)


def filled(values: Mapping[str, str], variables: Mapping[str, str], where: str) -> dict[str, str]:
    """Replace each `${NAME}` in the values. Raises KodeError `ConfigInvalid` if it is not set."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in variables:
            text = f"{where}: the environment variable {found[1]} is not set."
            raise KodeError("ConfigInvalid", text)
        return variables[found[1]]

    return {name: VARIABLE.sub(value, text) for name, text in values.items()}
