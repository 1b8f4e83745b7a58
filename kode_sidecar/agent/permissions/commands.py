"""Decide if a command may run, by workspace trust, the user's rules, and the user (F9, W12).

Nothing runs in a workspace that is not trusted. A program or argument that can run any other
program needs a question each time: no rule and no earlier answer covers it.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kode_sidecar.agent.permissions.gate import PermissionGate
from kode_sidecar.agent.tools.run_command import WantedCommand
from kode_sidecar.core.domain.command_rules import CommandRules, shown_command
from kode_sidecar.core.domain.permission import ALLOW_ONCE, OPTIONS, REJECT
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace

_MAX_PATH = 4_096
_LINE_CHARS = 160
_MOST_GLUED, _MOST_SIGNS = 8, 64
_SIGNS = re.compile(r"[=:;,@]")
_HARMLESS = frozenset({os.devnull, "nul", "NUL"})
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def leads_out(arguments: Sequence[str], folder: Path, roots: Sequence[Path]) -> str:
    """Return the first argument that names a path outside of `roots`, or an empty string.

    `folder` is where the command runs; links are followed.
    """
    real = [Path(os.path.realpath(root)) for root in roots]
    for argument in arguments:
        if argument in _HARMLESS:
            continue
        if any(_is_outside(text, folder, real) for text in _possible_paths(argument)):
            return argument
    return ""


def _possible_paths(argument: str) -> Iterator[str]:
    yield argument
    if _DRIVE.match(argument):
        return
    parts = _SIGNS.split(argument)
    if argument.startswith("-") and not argument.startswith("--"):
        parts += [argument[at:] for at in range(2, min(len(argument), _MOST_GLUED))]
    signs = [sign.end() for sign in _SIGNS.finditer(argument[:_MAX_PATH])]
    parts += [argument[start:] for start in signs[:_MOST_SIGNS]]
    yield from dict.fromkeys(parts)


def _is_outside(text: str, folder: Path, roots: Sequence[Path]) -> bool:
    text = text.strip(" \"'")
    if not text or len(text) > _MAX_PATH:
        return False
    if text.startswith(("~", "\\\\", "//")) or (os.name != "nt" and _DRIVE.match(text)):
        return True
    path = os.path.join(folder, text.replace("\\", "/") if ".." in text else text)
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return True
    return not any(real.is_relative_to(root) for root in roots)


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
        verdict = self._rules.verdict(
            wanted.argv,
            Path(wanted.program.resolve()).name,
            leads_out(wanted.argv[1:], folder.real, [root.real for root in self._workspace.roots]),
        )
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


def _words(argv: Sequence[str]) -> str:
    """Return a long command a word a line, for clients that cut a long title."""
    return "\n".join(shown_command((word,)) for word in argv)


def _denied(shown: str, reason: str) -> KodeError:
    return KodeError(
        "Denied",
        f"{shown} did not run: {reason}. Do not try it in another way; go on without it, or say "
        "what the user should run.",
    )
