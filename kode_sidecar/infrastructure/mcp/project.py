"""Reads the servers that a project's own files name: `mcpServers` in JSON, or a mapping in YAML.

The words of other programs are understood too: `servers`, `httpUrl`, `cwd`, `enabled`.

Project files are not trusted: each server waits for the user's approval of its whole entry.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.config import MOST_SERVERS, Filler, check
from kode_sidecar.infrastructure.mcp.contracts import ServerConfig
from kode_sidecar.infrastructure.workspace.paths import Root
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_MOST_BYTES = 1_000_000


class _Entry(Struct, frozen=True, kw_only=True):
    """One server; unknown fields are ignored. `command` may be a list of words."""

    command: str | list[str] = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    http_url: str = field(default="", name="httpUrl")
    server_url: str = field(default="", name="serverUrl")
    headers: dict[str, str] = {}
    type: str = ""
    cwd: str = ""
    disabled: bool = False
    enabled: bool = True

    @property
    def address(self) -> str:
        """The address, whichever way it is written."""
        return self.url or self.http_url or self.server_url

    @property
    def argv(self) -> tuple[str, ...]:
        words = [self.command] if isinstance(self.command, str) else self.command
        return (*words, *self.args) if any(words) else ()


class ProjectServers:
    """Reads the files of the open folders, and reads them again when one has changed.

    `trusted` says whether the editor trusts the folders: if not, no file is even looked for.
    """

    def __init__(
        self,
        workspace: Workspace,
        files: Sequence[str],
        trusted: Callable[[], bool],
        variables: Mapping[str, str],
    ) -> None:
        self.problems: list[str] = []
        self._files = files
        self._workspace = workspace
        self._trusted = trusted
        self._variables = variables
        self._state: object = None
        self._known: tuple[ServerConfig, ...] = ()

    def read(self) -> tuple[ServerConfig, ...]:
        """Return the servers of all folders, the first of each name; sets `problems`."""
        state = self._states()
        if state != self._state:
            self._state, self.problems = state, []
            found: dict[str, ServerConfig] = {}
            for root in self._workspace.roots if any(state) else ():
                for file in self._files:
                    for one in self._of_file(root, file):
                        found.setdefault(one.name, one)
            self._known = tuple(found.values())
        return self._known

    def _states(self) -> list[tuple[str, int, int]]:
        states: list[tuple[str, int, int]] = []
        for root in self._workspace.roots if self._trusted() else ():
            for file in self._files:
                path = root.path / file
                try:
                    status = os.stat(path)
                except OSError:
                    continue
                states.append((str(path), status.st_mtime_ns, status.st_size))
        return states

    def _of_file(self, root: Root, file: str) -> list[ServerConfig]:
        path = root.path / file
        try:
            if not path.is_file():
                return []
            if path.stat().st_size > _MOST_BYTES:
                raise KodeError("ConfigInvalid", f"{path}: more than {_MOST_BYTES:,} bytes.")
            text = self._workspace.document(str(path), purpose="read").lf_text
            return read_servers(text, file, root.path, self._variables, self.problems.append)
        except (OSError, KodeError) as error:
            self.problems.append(str(error))
            return []


def read_servers(
    text: str,
    file: str,
    folder: Path,
    variables: Mapping[str, str],
    problem: Callable[[str], None],
) -> list[ServerConfig]:
    """Return the servers of one file; reports unusable entries to `problem`.

    Raises KodeError `ConfigInvalid` if the file as a whole cannot be read.
    """
    servers: list[ServerConfig] = []
    for name, raw in list(_entries(text, file).items())[:MOST_SERVERS]:
        try:
            server = _server(name, raw, f"{file}, {name}", folder, variables)
            servers += [] if server is None else [server]
        except KodeError as error:
            problem(error.message)
    return servers


def _entries(text: str, file: str) -> Mapping[str, Any]:
    kind = dict[str, Any]
    try:
        if file.endswith(".json"):
            whole = msgspec.json.decode(text, type=kind)
            return msgspec.convert(whole.get("mcpServers", whole.get("servers", {})), kind)
        return msgspec.convert(_yaml(text), kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise KodeError("ConfigInvalid", f"{file}: {error}") from None


def _yaml(text: str) -> object:
    # Imported late: only projects with a YAML file need PyYAML.
    from kode_sidecar.core.text.yaml_text import read_yaml  # noqa: PLC0415

    return read_yaml(text).value or {}


def _server(
    name: str, raw: object, where: str, folder: Path, variables: Mapping[str, str]
) -> ServerConfig | None:
    try:
        entry = msgspec.convert(raw, _Entry)
    except msgspec.ValidationError as error:
        raise KodeError("ConfigInvalid", f"{where}: {error}") from None
    check(name, where, program=bool(entry.argv), address=bool(entry.address))
    if entry.disabled or not entry.enabled:
        return None
    if entry.type == "sse":
        text = (
            f"{where}: the transport `sse` of 2024 is not spoken here: look for its http address."
        )
        raise KodeError("ConfigInvalid", text)
    fill = Filler(variables, where)
    here = {"workspaceFolder": str(folder)}
    words = [_placed(word, here) for word in (*entry.argv, entry.address, entry.cwd)]
    *argv, url, cwd = map(fill, words)
    return ServerConfig(
        name,
        tuple(argv),
        url,
        {key: fill(_placed(value, here)) for key, value in entry.env.items()},
        {key: fill(value) for key, value in entry.headers.items()},
        str(folder / cwd),
        source="project",
        written=msgspec.json.encode(raw).decode(),
        shown=(entry.address,) if entry.address else entry.argv,
        borrowed=tuple(sorted(fill.used)),
    )


def _placed(text: str, places: Mapping[str, str]) -> str:
    for name, path in places.items():
        text = text.replace(f"${{{name}}}", path)
    return text
