"""Decide if a command may run, by workspace trust, the user's rules, and the user (F9, W12).

Nothing runs in a workspace that is not trusted. A program or argument that can run any other
program needs a question each time: no rule and no earlier answer covers it.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from kode_sidecar.agent.permissions.command_files import file_risks, leads_out
from kode_sidecar.agent.permissions.gate import PermissionGate
from kode_sidecar.agent.tools.run_command import WantedCommand
from kode_sidecar.core.domain.command_rules import CommandRules, CommandVerdict, shown_command
from kode_sidecar.core.domain.permission import ALLOW_ONCE, OPTIONS, REJECT
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_LINE_CHARS = 160


class CommandPermission:
    """Checks the commands of one session; `tools.run_command` asks it before anything runs.

    `gate` holds the user's answers in the session, each for one command in one folder.
    """

    def __init__(
        self,
        rules: CommandRules,
        gate: PermissionGate,
        workspace: Workspace,
        trusted: Callable[[], bool],
    ) -> None:
        self._rules = rules
        self._gate = gate
        self._workspace = workspace
        self._trusted = trusted

    async def __call__(self, wanted: WantedCommand, call: ToolCall) -> None:
        """Return if the command may run. Raises KodeError `Denied` with the reason if not."""
        shown = shown_command(wanted.argv)
        if not self._trusted():
            raise _denied(shown, "the user has not said that this workspace is trusted")
        folder = wanted.folder
        verdict = await asyncio.to_thread(self._verdict, wanted)
        if verdict.effect == "deny":
            raise _denied(shown, verdict.reason)
        if verdict.effect == "allow":
            return
        place = ""
        if folder.display not in ("", "."):
            place = f"  (in {shown_command((folder.display,))})"
        if not await self._gate.ask(
            call,
            f"Run {shown}{place}",
            f"{shown}{place}",
            reason=verdict.reason,
            diff=lambda: _words(wanted.argv) if len(shown) > _LINE_CHARS else "",
            options=(ALLOW_ONCE, REJECT) if verdict.risky else OPTIONS,
        ):
            raise _denied(shown, "the user does not allow it")
        if not self._trusted():
            raise _denied(shown, "the workspace is no longer trusted")

    def _verdict(self, wanted: WantedCommand) -> CommandVerdict:
        """Decide by the rules and by the files that the command names. Blocking."""
        argv, folder = wanted.argv, wanted.folder.real
        roots = [root.real for root in self._workspace.roots]
        name = Path(wanted.program.resolve()).name
        return self._rules.verdict(
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
