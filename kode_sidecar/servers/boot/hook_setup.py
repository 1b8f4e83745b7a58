"""Set up hooks from the settings. Loaded only where there are some."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.hooks.hook_file import PROJECT_VARIABLES, Hook, placed_words, read_hooks
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
from kode_sidecar.servers.boot.project_hooks import ProjectHooks

_OUTPUT_BYTES = 1_000_000


class UserHooks:
    """The hooks of the setting `hooks` and of trusted projects, for every session of one agent."""

    def __init__(
        self,
        written: Mapping[str, Any],
        workspace: Workspace,
        environ: Mapping[str, str],
        found: FindProgram,
        project: ProjectHooks,
        trusted: Callable[[], bool],
    ) -> None:
        self._written = written
        self._workspace = workspace
        self._environ = environ
        self._found = found
        self._project = project
        self._trusted = trusted
        self._hooks: Sequence[Hook] | None = None

    def of_session(self, scope: HookScope) -> Hooks:
        """Return the hooks of a session. Raises KodeError `ConfigInvalid`."""
        if self._hooks is None:
            self._hooks = read_hooks(self._written, "`hooks`")
        theirs = self._project.read(self._roots)
        own = [one.hook for one in theirs if one.state == "trusted"]
        hooks = SessionHooks([*self._hooks, *own], self.run, self._workspace, scope)
        if not scope.begun:
            self._report(hooks, len(theirs) - len(own))
        return hooks

    @property
    def _roots(self) -> Sequence[Path]:
        return [root.path for root in self._workspace.roots] if self._trusted() else []

    def _report(self, hooks: SessionHooks, waiting: int) -> None:
        for problem in self._project.problems:
            hooks.notify_user("HookFailed", f"Hooks of the project do not run: {problem}", "")
        if waiting:
            text = (
                f"{waiting} hooks of this project do not run before you have agreed to their text. "
                "`kode-sidecar hooks` shows them."
            )
            hooks.notify_user("HooksUntrusted", text, "")

    async def run(self, hook: Hook, given: Mapping[str, Any]) -> HookVerdict:
        """Run a hook in the first open folder, and return what it says."""
        folder = hook.folder or self._folder
        if hook.folder is not None and not self._project.holds(hook, self._roots):
            return no_verdict(hook, "its text has changed since you agreed to it.")
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
        placed = placed_words(hook.argv, str(folder))
        path = next((text for name, text in self._environ.items() if name.upper() == "PATH"), "")
        out_of = [root.path for root in self._workspace.roots]
        folders = search_folders(path, out_of)
        program = self._found(placed[0], lambda: str(_program(placed[0], folder, folders, out_of)))
        environment = command_environment(self._environ, os.pathsep.join(map(str, folders)))
        return ProgramRun(
            Path(program),
            placed[1:],
            folder,
            environment | dict.fromkeys(PROJECT_VARIABLES, str(folder)),
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
