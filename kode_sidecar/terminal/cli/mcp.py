"""`kode-sidecar mcp`: lists, tests, adds, allows, refuses and logs in to MCP servers."""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

from kode_sidecar.core.settings import load_settings
from kode_sidecar.core.settings.writing import add_to_config, config_path
from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp import log_in, user_servers
from kode_sidecar.infrastructure.mcp.contracts import TOKENS
from kode_sidecar.terminal.cli.inquiry import Ask, asking, inquire

Json = dict[str, Any]
_STATES = {
    "unapproved": "waits for your yes",
    "refused": "refused by you",
    "idle": "not started",
    "starting": "starting",
    "ready": "runs",
    "failed": "failed",
}


servers = asking("kode/mcp/list")
"""Asks for all configured servers."""


async def tried(ask: Ask, options: argparse.Namespace) -> Json:
    """Start one server, to see what it offers."""
    return cast(Json, await ask("kode/mcp/start", {"name": options.name}))


async def decided(ask: Ask, options: argparse.Namespace) -> Json:
    """Allow or refuse a server of the project with its present entry. Raises KodeError."""
    found = (await ask("kode/mcp/list", {}))["servers"]
    server = next((one for one in found if one["name"] == options.name), None)
    if server is None or server["source"] != "project":
        text = f"This project names no MCP server {options.name}: see `mcp list --trust`."
        raise KodeError("NotFound", text)
    allowed = options.action == "allow"
    word = {"name": options.name, "fingerprint": server["fingerprint"], "allowed": allowed}
    await ask("kode/mcp/decide", word)
    return {**server, "state": "idle" if allowed else "refused"}


def server_lines(found: Json) -> Iterator[str]:
    """Yield a few lines per server, then the problems of invalid entries."""
    for server in found["servers"]:
        yield from server_text(server)
    yield from (one_line(f"! {problem}") for problem in found["problems"])
    if not found["servers"]:
        yield "There are no MCP servers. `kode-sidecar mcp add` makes one."
    if not found["projectTrusted"]:
        yield "Files of this folder were not looked at: --trust does so."


def server_text(server: Json) -> Iterator[str]:
    """Yield what a server is, and its state."""
    where = server.get("url") or " ".join(server.get("command", ()))
    yield one_line(f"{server['name']} ({server['source']}, {_STATES[server['state']]}): {where}")
    if server.get("variables"):
        yield "    " + one_line(f"gets {', '.join(server['variables'])}")
    if server["tools"]:
        yield "    " + one_line(f"tools: {', '.join(tool['name'] for tool in server['tools'])}")
    if server.get("lastError"):
        yield "    " + one_line(f"! {server['lastError']}")
    yield from ("    " + one_line(f"| {line}") for line in server.get("stderrTail", ()))


def add_command(options: argparse.Namespace) -> int:
    """Write a server to the user's `config.yaml`. Raises KodeError."""
    words: list[str] = [word for at, word in enumerate(options.words) if at or word != "--"]
    if bool(words) == bool(options.url) or (words and words[0].startswith("-")):
        text = "Give options, then a name, then either a command or --url: mcp add git -- uvx x"
        raise KodeError("InvalidParams", text)
    entry: Json = {"command": words} if words else {"url": options.url}
    if options.env:
        entry["env"] = options.env
    # Checked before it is written: one invalid entry disables all servers of a `config.yaml`.
    user_servers({options.name: entry}, dict.fromkeys(options.env or (), ""))
    path = config_path(os.environ)
    if options.name in load_settings(os.environ).settings.mcp:
        raise KodeError("InvalidParams", f"{path} has an MCP server {options.name} already.")
    add_to_config(path, ("mcp",), {options.name: entry})
    reported = f"wrote {options.name} to {path}; try it: kode-sidecar mcp test {options.name}"
    sys.stdout.write(f"{reported}\n")
    return 0


def login_command(options: argparse.Namespace) -> int:
    """Log in to one of the user's servers at an address. Raises KodeError."""
    loaded = load_settings(os.environ)
    servers = user_servers(loaded.settings.mcp, {**os.environ, **loaded.variables})
    config = next((one for one in servers if one.name == options.name and one.url), None)
    if config is None:
        text = f"No server of yours at an address is called {options.name}: see `mcp list`."
        raise KodeError("NotFound", text)

    async def show(address: str) -> None:
        sys.stdout.write(f"Open this in your browser, and agree there:\n\n{address}\n\n")
        sys.stdout.flush()

    tokens = loaded.settings.storage_root / "mcp" / TOKENS
    tools = asyncio.run(log_in(config, tokens, show, time.monotonic))
    sys.stdout.write(f"{config.name} lets you in, and has {tools} tools.\n")
    return 0


def mcp_command(options: argparse.Namespace) -> int:
    """Run the command; return the exit code. Raises KodeError."""
    if options.action in ("add", "login"):
        return (add_command if options.action == "add" else login_command)(options)
    if options.action == "list":
        return inquire(options, servers, server_lines)
    work = tried if options.action == "test" else decided
    return inquire(options, work, server_text)
