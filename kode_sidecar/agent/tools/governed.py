"""Apply a policy to tools (B9): a refused call returns the reason, and the work goes on."""

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
    """What a call acts on, in the form of rules: a path, the words of a command, or "".

    `shown` replaces `name` in texts for the model.
    """

    name: str
    sensitive: bool = False
    shown: str = ""


Subjects = Callable[[Any], Sequence[Subject]]


def no_subject(_params: object) -> Sequence[Subject]:
    """Return an empty subject, for a tool that is allowed or denied as a whole."""
    return (Subject(""),)


def path_subject(workspace: Workspace) -> Subjects:
    """Return a function that gives the path a tool reads, in the guard's spelling."""

    def subjects(params: object) -> Sequence[Subject]:
        path = getattr(params, "path", None) or getattr(params, "directory", None) or "."
        return (Subject(workspace.locate(path).display),)

    return subjects


def check_allowed(policy: Policy, tool: str, subject: Subject) -> None:
    """Raise KodeError `Denied` unless the policy allows a call, in words to go on by."""
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
    """Return the tool limited by the policy; a tool that is always denied is not offered.

    `subjects` may raise KodeError for a path that the guard refuses.
    """

    async def run(params: Any, call: ToolCall) -> ToolOutcome:
        for subject in subjects(params):
            check_allowed(policy, tool.name, subject)
        return await tool.run(params, call)

    return replace(tool, run=run, offered=policy.offers(tool.name))
