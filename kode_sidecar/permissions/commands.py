"""Whether a command of a session may run: the workspace, the user's rules, the user (F9, W12).

Nothing runs in a workspace that is not trusted. A program that runs any other one, and an argument
that does, are asked for each time: no rule and no earlier answer covers them.
"""

from collections.abc import Callable
from pathlib import Path

from kode_sidecar.commands.reach import leads_out
from kode_sidecar.domain.command_rules import CommandRules, shown_command
from kode_sidecar.domain.permission import ALLOW_ONCE, OPTIONS, REJECT
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import ToolCall
from kode_sidecar.permissions.gate import PermissionGate
from kode_sidecar.tools.run_command import WantedCommand
from kode_sidecar.workspace.workspace import Workspace


class CommandPermission:
    """For one session: `tools.run_command` asks it before anything runs.

    `gate` has the answers that were given in the session, each for one command in one folder.
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
        """Return if it may run. Raises KodeError `Denied`, which says why not."""
        shown = shown_command(wanted.argv)
        if not self._trusted():
            raise _denied(shown, "the user has not said that this workspace is trusted")
        folder = wanted.folder
        verdict = self._rules.verdict(
            wanted.argv,
            Path(wanted.program.resolve()).name,
            leads_out(wanted.argv[1:], folder.real, [root.real for root in self._workspace.roots]),
        )
        if verdict.effect == "deny":
            raise _denied(shown, verdict.reason)
        if verdict.effect == "allow":
            return
        place = "" if folder.display in ("", ".") else f"  (in {folder.display})"
        if not await self._gate.ask(
            call,
            f"Run {shown}",
            f"{shown}{place}",
            reason=verdict.reason,
            options=(ALLOW_ONCE, REJECT) if verdict.risky else OPTIONS,
        ):
            raise _denied(shown, "the user does not allow it")
        if not self._trusted():
            raise _denied(shown, "the workspace is no longer trusted")


def _denied(shown: str, reason: str) -> KodeError:
    return KodeError(
        "Denied",
        f"{shown} did not run: {reason}. Do not try it in another way; go on without it, or say "
        "what the user should run.",
    )
