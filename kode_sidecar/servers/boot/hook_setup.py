"""Set up hooks from the settings. Loaded only where there are some."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.hooks.hook_file import Hook, read_hooks
from kode_sidecar.agent.hooks.session_hooks import SessionHooks
from kode_sidecar.agent.hooks.verdict import HookVerdict, no_verdict, read_verdict
from kode_sidecar.agent.tools.run_command import FindProgram
from kode_sidecar.agent.turns import Hooks, HookScope
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
from kode_sidecar.infrastructure.commands.programs import (
    command_environment,
    find_program,
    own_program,
    search_folders,
)
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_OUTPUT_BYTES = 1_000_000
_PROJECT_VARIABLES = ("KODE_PROJECT_DIR", "CLAUDE_PROJECT_DIR")


class UserHooks:
    """The hooks of the setting `hooks`, for every session of one agent."""

    def __init__(
        self,
        written: Mapping[str, Any],
        workspace: Workspace,
        environ: Mapping[str, str],
        found: FindProgram,
    ) -> None:
        self._written = written
        self._workspace = workspace
        self._environ = environ
        self._found = found
        self._hooks: Sequence[Hook] | None = None

    def of_session(self, scope: HookScope) -> Hooks:
        """Return the hooks of a session. Raises KodeError `ConfigInvalid`."""
        if self._hooks is None:
            self._hooks = read_hooks(self._written, "`hooks`")
        return SessionHooks(self._hooks, self.run, self._workspace, scope)

    async def run(self, hook: Hook, given: Mapping[str, Any]) -> HookVerdict:
        """Run a hook in the first open folder, and return what it says."""
        folder = self._folder
        try:
            end = await run_program(self._program_run(hook, folder, msgspec.json.encode(given)))
        except (KodeError, OSError) as error:
            return no_verdict(hook, str(error))
        return read_verdict(hook, end)

    @property
    def _folder(self) -> Path:
        roots = self._workspace.roots
        return roots[0].real if roots else Path.home()

    def _program_run(self, hook: Hook, folder: Path, given: bytes) -> ProgramRun:
        placed = [_placed(word, str(folder)) for word in hook.argv]
        path = next((text for name, text in self._environ.items() if name.upper() == "PATH"), "")
        out_of = [root.path for root in self._workspace.roots]
        folders = search_folders(path, out_of)
        program = self._found(placed[0], lambda: str(_program(placed[0], folder, folders, out_of)))
        environment = command_environment(self._environ, os.pathsep.join(map(str, folders)))
        return ProgramRun(
            Path(program),
            placed[1:],
            folder,
            environment | dict.fromkeys(_PROJECT_VARIABLES, str(folder)),
            CommandLimits(hook.seconds, _OUTPUT_BYTES),
            errors="apart",
            given=given,
        )


def _program(word: str, folder: Path, folders: Sequence[Path], out_of: Sequence[Path]) -> Path:
    """Return the file of a program: a path as the user wrote it, or a name on the search path."""
    if not any(sign in word for sign in "/\\"):
        return find_program(word, folders, out_of)
    program = own_program(word, folder)
    if program is None:
        raise KodeError("ToolFailed", f"{word} is no program that can be run.")
    return program


def _placed(word: str, folder: str) -> str:
    """Return a word with the project's folder filled in, and `~` at its beginning."""
    for name in _PROJECT_VARIABLES:
        word = word.replace(f"${{{name}}}", folder).replace(f"${name}", folder)
    return os.path.expanduser(word)
