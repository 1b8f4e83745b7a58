"""Decide if a command may run, by workspace trust, the user's rules, and the user (F9, W12).

In a workspace that is not trusted nothing runs before the user says that it is. A program or
argument that can run any other program needs a question each time: no rule and no earlier answer
covers it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kode_sidecar.agent.permissions.command_files import file_risks, leads_out
from kode_sidecar.agent.permissions.gate import PermissionGate
from kode_sidecar.agent.tools.run_command import Unseen, WantedCommand, counted
from kode_sidecar.core.domain.command_rules import (
    CommandRules,
    CommandVerdict,
    lasting_rule,
    shown_command,
)
from kode_sidecar.core.domain.event_parts import APPLYING_MODES, Mode, PermissionOption
from kode_sidecar.core.domain.permission import (
    ALLOW_ONCE,
    ALLOW_SESSION,
    REJECT,
    RUN_ON_DISK,
    SAVE_AND_RUN,
    TRUST,
)
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.unsaved import OpenTexts, UnsavedFile
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_LINE_CHARS = 160
_UNTRUSTED = (
    "You have not said that you trust this workspace. Trusting it lets its own code run, and lets "
    "its notes, skills and tool servers be read, until this program ends."
)


@dataclass
class UserCommands:
    """What the user has decided about commands, for all sessions of the process.

    `trusted` and `trust` read and set whether the user trusts the workspace, until the process
    ends; `write` adds a lasting rule to the user's settings, which blocks, and raises KodeError.
    """

    rules: CommandRules
    trusted: Callable[[], bool]
    trust: Callable[[], None]
    write: Callable[[Sequence[str]], None]

    async def allow(self, words: Sequence[str]) -> None:
        """Add a lasting rule, which holds here even if KodeError says that it was not written."""
        self.rules = replace(self.rules, allow=(*self.rules.allow, tuple(words)))
        await asyncio.to_thread(self.write, words)


class CommandPermission:
    """Checks the commands of one session; `tools.run_command` asks it before anything runs.

    `gate` holds the user's answers in the session, each for one command in one folder. The user is
    asked once: about the workspace, the command and the files that are not saved together, as far
    as each needs a question. `warn` reports an answer that could not be saved.
    """

    def __init__(
        self,
        commands: UserCommands,
        gate: PermissionGate,
        texts: OpenTexts,
        mode: Callable[[], Mode],
        workspace: Workspace,
        warn: Callable[[KodeError], object],
    ) -> None:
        self._commands = commands
        self._gate = gate
        self._texts = texts
        self._mode = mode
        self._workspace = workspace
        self._warn = warn
        self._left: set[tuple[str, str]] = set()

    async def __call__(self, wanted: WantedCommand, call: ToolCall) -> Unseen:
        """Return what the command will not see. Raises KodeError `Denied` if it may not run."""
        shown = shown_command(wanted.argv)
        folder = wanted.folder
        verdict = await asyncio.to_thread(self._verdict, wanted)
        if verdict.effect == "deny":
            raise _denied(shown, verdict.reason)
        unsaved = await self._unsaved(folder.real)
        await self._ask(wanted, call, verdict, unsaved)
        if not self._commands.trusted():
            raise _denied(shown, "the workspace is no longer trusted")
        left = await self._texts.unsaved(folder.real)
        return Unseen([one.path for one in left], self._texts.waiting(folder.real))

    async def _unsaved(self, folder: Path) -> Sequence[UnsavedFile]:
        """Return the files to ask about. `APPLYING_MODES` save accepted ones, and ask nothing."""
        unsaved = await self._texts.unsaved(folder)
        if self._mode() in APPLYING_MODES:
            await self._texts.save(one.document for one in unsaved if one.accepted)
            return ()
        return [one for one in unsaved if (one.path, one.document.rev) not in self._left]

    async def _ask(
        self,
        wanted: WantedCommand,
        call: ToolCall,
        verdict: CommandVerdict,
        unsaved: Sequence[UnsavedFile],
    ) -> None:
        """Ask the user what needs an answer. Raises KodeError `Denied`."""
        if self._commands.trusted() and verdict.effect == "allow" and not unsaved:
            return
        shown, folder = shown_command(wanted.argv), wanted.folder.display
        place = "" if folder in ("", ".") else f"  (in {shown_command((folder,))})"
        answer = await self._gate.choose(
            call,
            f"Run {shown}{place}",
            f"{shown}{place}",
            diff=lambda: _words(wanted.argv) if len(shown) > _LINE_CHARS else "",
            reason=" ".join(self._reasons(verdict, unsaved)),
            options=self._options(wanted, verdict, unsaved),
            by_rules=self._commands.trusted() and not unsaved,
        )
        if answer is None:
            raise _denied(shown, "the user does not allow it")
        if answer is TRUST:
            self._commands.trust()
        elif answer is SAVE_AND_RUN:
            await self._texts.save(one.document for one in unsaved)
        elif answer is RUN_ON_DISK:
            self._left.update((one.path, one.document.rev) for one in unsaved)
        elif answer.kind == "allow_always":
            try:
                await self._commands.allow(lasting_rule(wanted.argv))
            except KodeError as error:
                self._warn(error)

    def _reasons(self, verdict: CommandVerdict, unsaved: Sequence[UnsavedFile]) -> Iterator[str]:
        if not self._commands.trusted():
            yield _UNTRUSTED
        if verdict.reason:
            yield verdict.reason
        if unsaved:
            accepted = "accepted " if all(one.accepted for one in unsaved) else ""
            is_not = "is" if len(unsaved) == 1 else "are"
            names = ", ".join(one.path for one in unsaved)
            yield f"{counted(len(unsaved), f'{accepted}file')} {is_not} not saved: {names}."

    def _options(
        self, wanted: WantedCommand, verdict: CommandVerdict, unsaved: Sequence[UnsavedFile]
    ) -> Sequence[PermissionOption]:
        if not self._commands.trusted():
            return (TRUST, REJECT)
        if unsaved:
            return (*([SAVE_AND_RUN] if self._texts.can_save else []), RUN_ON_DISK, REJECT)
        if verdict.risky:
            return (ALLOW_ONCE, REJECT)
        name = f"Always allow {shown_command(lasting_rule(wanted.argv))}"
        always = PermissionOption(option_id="allow-always", kind="allow_always", name=name)
        return (ALLOW_ONCE, ALLOW_SESSION, always, REJECT)

    def _verdict(self, wanted: WantedCommand) -> CommandVerdict:
        """Decide by the rules and by the files that the command names. Blocking."""
        argv, folder = wanted.argv, wanted.folder.real
        roots = [root.real for root in self._workspace.roots]
        name = Path(wanted.program.resolve()).name
        return self._commands.rules.verdict(
            argv, name, leads_out(argv[1:], folder, roots), tuple(file_risks(argv, folder, name))
        )


def _words(argv: Sequence[str]) -> str:
    """Return a long command a word a line, for clients that cut a long title."""
    return "\n".join(shown_command((word,)) for word in argv)


def _denied(shown: str, reason: str) -> KodeError:
    return KodeError(
        "Denied",
        f"{shown} did not run: {reason}. Do not try it in another way; go on without it, or say "
        "what the user should run.",
    )
