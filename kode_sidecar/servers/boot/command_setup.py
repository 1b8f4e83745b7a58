"""Sets up commands in sessions from the user's settings. Not loaded if they are switched off."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kode_sidecar.agent.permissions import UserCommands
from kode_sidecar.agent.tools.run_command import CommandPlace, FindProgram, TerminalRunner
from kode_sidecar.agent.turns.toolset import CommandSetup
from kode_sidecar.core.domain.command_rules import CommandRules
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.real_path import real_path
from kode_sidecar.core.settings import CommandSettings, LiveSettings, Settings
from kode_sidecar.core.settings.writing import add_to_config, config_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits
from kode_sidecar.infrastructure.commands.jail import Jail, bubblewrap
from kode_sidecar.infrastructure.commands.programs import check_names
from kode_sidecar.infrastructure.workspace.workspace import Workspace


def session_commands(
    live: LiveSettings,
    workspace: Workspace,
    environ: Mapping[str, str],
    in_terminal: TerminalRunner,
    found: FindProgram,
) -> CommandSetup:
    """Return what sessions run commands with. Raises KodeError `ConfigInvalid` for bad settings."""
    loaded = live.loaded.settings
    settings = loaded.commands
    check_names(settings.environment)
    place = CommandPlace(
        workspace,
        None,
        environ,
        _nowhere,
        CommandLimits(settings.timeout_seconds, settings.max_output_bytes),
        settings.environment,
        settings.programs,
        jail=_jail(settings, _own_files(loaded, environ)),
        in_terminal=in_terminal,
        found=found,
    )
    config = config_path(environ)
    commands = UserCommands(
        command_rules(settings),
        live.trusted,
        lambda: live.trust(True),
        lambda words: add_to_config(config, ("commands", "allow"), shown_rule(words)),
    )
    return CommandSetup(commands, place)


def command_rules(settings: CommandSettings) -> CommandRules:
    """Return the rules; a rule is a list of a command's words, or one text of them with blanks."""
    return CommandRules(
        settings.mode,
        tuple(_words(rule) for rule in settings.allow),
        tuple(_words(rule) for rule in settings.deny),
    )


def shown_rule(words: Sequence[str]) -> str | Sequence[str]:
    """Return a rule as the settings have it: one text where no word holds a blank."""
    return list(words) if any(" " in word for word in words) else " ".join(words)


def check_commands(settings: CommandSettings) -> None:
    """Check the settings. Raises KodeError `ConfigInvalid`, or `ToolFailed` without a sandbox."""
    check_names(settings.environment)
    command_rules(settings)
    if settings.sandbox:
        bubblewrap()


def _words(rule: str | list[str]) -> tuple[str, ...]:
    words = tuple(rule.split()) if isinstance(rule, str) else tuple(rule)
    if not words:
        raise KodeError("ConfigInvalid", "`commands`: a rule begins with the name of a program.")
    return words


def _jail(settings: CommandSettings, own_files: Sequence[Path]) -> Jail | None:
    if not settings.sandbox:
        return None
    readable = tuple(Path(folder).expanduser() for folder in settings.readable)
    return Jail(readable, settings.network, [real_path(one) for one in own_files])


def _own_files(loaded: Settings, environ: Mapping[str, str]) -> Sequence[Path]:
    """Return the paths that a sandbox never shows: our state, logs and settings."""
    named = environ.get("KODE_CONFIG", "").strip()
    return (loaded.storage_root, loaded.log_dir, *([Path(named)] if named else ()))


def _nowhere(_call_id: str, _output: bytes) -> Blob:
    raise AssertionError("each session keeps its own")
