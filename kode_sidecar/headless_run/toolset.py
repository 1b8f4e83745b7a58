"""The tools of a run, each behind its policy (B9)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from kode_sidecar.commands.command import CommandLimits
from kode_sidecar.commands.programs import check_names
from kode_sidecar.domain.run_policy import RUN_COMMAND
from kode_sidecar.headless_run.contracts import RunScope
from kode_sidecar.headless_run.run_rules import run_policy
from kode_sidecar.headless_run.sandbox import ARCHIVE, DELIVERABLES
from kode_sidecar.headless_run.sandbox_files import write_file
from kode_sidecar.headless_run.write_artifact_tool import (
    artifact_subject,
    check_not_the_patch,
    content_type_of,
    write_artifact_tool,
)
from kode_sidecar.kernel.contracts import Tool, ToolCall
from kode_sidecar.tools.applied_edits import AppliedEdits
from kode_sidecar.tools.governed import (
    Subjects,
    check_allowed,
    governed,
    no_subject,
    path_subject,
)
from kode_sidecar.tools.list_files import list_files_tool
from kode_sidecar.tools.propose_edit import propose_edit_tool
from kode_sidecar.tools.propose_file import propose_file_tool
from kode_sidecar.tools.read_file import read_file_tool
from kode_sidecar.tools.run_command import CommandPlace, command_subject, run_command_tool
from kode_sidecar.tools.search_code import search_code_tool
from kode_sidecar.workspace.document import Document
from kode_sidecar.workspace.freshness import Freshness
from kode_sidecar.workspace.paths import Location
from kode_sidecar.workspace.project_copy import ProjectCopy
from kode_sidecar.workspace.ripgrep import Ripgrep

OWN_TOOLS = (
    "read_file",
    "list_files",
    "search_code",
    "propose_edit",
    "propose_file",
    "write_artifact",
    "run_command",
)
"""What every run knows; which of them it offers is for its configuration to say."""


@dataclass(frozen=True)
class ToolSources:
    """What the tools of a run are made of, besides its scope.

    `environ` is our own environment, of which commands get the allowed names. `more` are tools of
    other rooms; rules allow or deny them as a whole. `now` gives the time, RFC 3339.
    """

    ripgrep: Ripgrep
    environ: Mapping[str, str]
    now: Callable[[], str]
    project: ProjectCopy | None = None
    more: Sequence[Tool] = ()


@dataclass(frozen=True)
class Toolset:
    """All tools of a run, the refused ones too; `edits` knows what was done to the files."""

    tools: Sequence[Tool]
    edits: AppliedEdits


def run_toolset(scope: RunScope, sources: ToolSources) -> Toolset:
    """The tools of a run. Raises KodeError `ConfigInvalid` for rules that make no sense."""
    workspace = scope.workspace
    policy = run_policy(scope.config.tools, {*OWN_TOOLS, *(tool.name for tool in sources.more)})
    shown = Freshness(_as_it_is, sources.now)
    free = sources.project.check_free if sources.project else _anywhere
    edits = AppliedEdits(
        workspace,
        shown,
        partial(check_allowed, policy),
        partial(_check_writable, scope),
        free,
        partial(_note, scope),
    )
    made: list[tuple[Tool, Subjects]] = [
        (read_file_tool(workspace, workspace, shown.note), path_subject(workspace)),
        (list_files_tool(workspace), no_subject),
        (search_code_tool(workspace, sources.ripgrep, workspace, shown.note), no_subject),
        (propose_edit_tool(edits, workspace, shown), no_subject),
        (propose_file_tool(edits, workspace, shown), no_subject),
        (write_artifact_tool(scope, free, edits.touched), artifact_subject(scope)),
        (run_command_tool(_command_place(scope, sources)), command_subject),
        *((tool, no_subject) for tool in sources.more),
    ]
    return Toolset(tuple(governed(tool, policy, subjects) for tool, subjects in made), edits)


def _command_place(scope: RunScope, sources: ToolSources) -> CommandPlace:
    """Raises KodeError `ConfigInvalid`."""
    shell = scope.config.tools.shell
    check_names(shell.environment)
    numbers = count(1)

    def keep(_call_id: str, output: bytes) -> str:
        path = f"{ARCHIVE}/commands/{next(numbers)}.log"
        write_file(scope.sandbox.locate(path, "read"), output)
        scope.artifacts.add(path, kind="tool_output", created_by=RUN_COMMAND)
        return path

    return CommandPlace(
        scope.workspace,
        scope.sandbox.root,
        sources.environ,
        keep,
        CommandLimits(shell.timeout_seconds, shell.max_output_bytes),
        shell.environment,
    )


def _check_writable(scope: RunScope, place: Location) -> None:
    """Raises KodeError `PathOutsideRoots` for a zone that is only read."""
    scope.sandbox.locate(place.display, "write")
    check_not_the_patch(scope, place)


def _note(scope: RunScope, place: Location, call: ToolCall) -> None:
    """Deliverables are noted, however they are made; the rest is in the patch."""
    if place.root.name == DELIVERABLES and place.real.exists():
        content_type = content_type_of(place.display)
        scope.artifacts.add(
            place.display, kind="deliverable", created_by=call.name, content_type=content_type
        )


def _anywhere(_place: Location) -> None:
    """There is no project that could have a file there."""


def _as_it_is(document: Document) -> Document:
    return document
