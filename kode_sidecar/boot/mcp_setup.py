"""The user's MCP servers as the settings make them. Loaded only where some are configured."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kode_sidecar.commands.programs import command_environment, find_program, search_folders
from kode_sidecar.kernel.contracts import Tool, ToolCall
from kode_sidecar.mcp import Host, RememberedLists, Servers, mcp_tools, user_servers
from kode_sidecar.settings import LoadedSettings
from kode_sidecar.turns import ToolScope


def open_servers(
    loaded: LoadedSettings, roots: Callable[[], Sequence[Path]], now: Callable[[], float]
) -> Servers:
    """The servers of the setting `mcp`; nothing is started. Raises KodeError `ConfigInvalid`.

    `roots` are the open folders: no program is taken from there by its name.
    """
    variables: Mapping[str, str] = {**os.environ, **loaded.variables}
    path = os.environ.get("PATH", os.defpath)

    def find(name: str) -> str:
        if os.path.isabs(name):
            return name
        return str(find_program(name, search_folders(path, roots()), roots()))

    return Servers(
        user_servers(loaded.settings.mcp, variables),
        Host(roots=lambda: [root.as_uri() for root in roots()]),
        RememberedLists(loaded.settings.storage_root / "mcp"),
        environment=command_environment(os.environ, path, ""),
        find=find,
        now=now,
    )


def tools_of_turn(servers: Servers, scope: ToolScope) -> Sequence[Tool]:
    """What a turn is offered of them; the user is asked by the session's own permissions."""

    async def ask(call: ToolCall, title: str, subject: str, details: str) -> bool:
        reason = "A tool of an MCP server may do anything its program can."
        gate = scope.change_sets.permissions
        return await gate.ask(call, title, subject, reason=reason, diff=lambda: details)

    return mcp_tools(servers, scope.context.session_id, ask)
