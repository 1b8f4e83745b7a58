"""Tools under a policy (B9): a refused call is a result that says why, and the work goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kode_sidecar.core.domain.run_policy import Policy
from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace


@dataclass(frozen=True)
class Subject:
    """What a call is about, as rules know it: a path, the words of a command, or "".

    `shown` is what the model is told instead of `name`.
    """

    name: str
    sensitive: bool = False
    shown: str = ""


Subjects = Callable[[Any], Sequence[Subject]]


def no_subject(_params: object) -> Sequence[Subject]:
    """Return no subject, for a tool that is allowed or denied as a whole."""
    return (Subject(""),)


def path_subject(workspace: Workspace) -> Subjects:
    """Make subjects of the path that a tool reads, as the guard spells it."""

    def subjects(params: object) -> Sequence[Subject]:
        path = getattr(params, "path", None) or getattr(params, "directory", None) or "."
        return (Subject(workspace.locate(path).display),)

    return subjects


def check_allowed(policy: Policy, tool: str, subject: Subject) -> None:
    """Raises KodeError `Denied`, which tells the model to go on without."""
    verdict = policy.verdict(tool, subject.name, sensitive=subject.sensitive)
    if not verdict.allowed:
        name, _, operation = tool.partition(":")
        shown = without_controls(subject.shown or subject.name)
        on = f" on {shown}" if shown else ""
        what = f"{name} ({operation}){on}" if operation else f"{name}{on}"
        raise KodeError(
            "Denied",
            f"{what} is not allowed here: {verdict.reason}. Do not try it again; go on without it.",
        )


def governed(tool: Tool, policy: Policy, subjects: Subjects = no_subject) -> Tool:
    """Return the tool behind the policy; one that may do nothing is known, but not offered.

    `subjects` may raise KodeError for a path that the guard refuses.
    """

    async def run(params: Any, call: ToolCall) -> ToolOutcome:
        for subject in subjects(params):
            check_allowed(policy, tool.name, subject)
        return await tool.run(params, call)

    return replace(tool, run=run, offered=policy.offers(tool.name))
