"""Makes the tools of a run, each checked against the policy of its configuration (B9)."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import count

from kode_sidecar.agent.scouts import Dispatch
from kode_sidecar.agent.scouts.contracts import ScoutServices
from kode_sidecar.agent.tools.governed import (
    Subject,
    Subjects,
    check_allowed,
    governed,
    no_subject,
    path_subject,
)
from kode_sidecar.agent.tools.list_files import list_files_tool
from kode_sidecar.agent.tools.propose_edit import propose_edit_tool
from kode_sidecar.agent.tools.propose_file import propose_file_tool
from kode_sidecar.agent.tools.read_file import read_file_tool
from kode_sidecar.agent.tools.run_command import (
    CommandPlace,
    Unseen,
    WantedCommand,
    command_subject,
    run_command_tool,
)
from kode_sidecar.agent.tools.search_code import search_code_tool
from kode_sidecar.agent.tools.update_plan import update_plan_tool
from kode_sidecar.agent.turns import OfferTools, ToolScope
from kode_sidecar.agent.turns.toolset import explore_tool
from kode_sidecar.core.domain.agent_tool import tools_of
from kode_sidecar.core.domain.command_rules import CommandRules
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.domain.permission import EDIT_TOOLS, Rule
from kode_sidecar.core.domain.run_policy import (
    MCP,
    RUN_COMMAND,
    Policy,
    command_rule,
    effective_policy,
)
from kode_sidecar.core.kernel.contracts import Tool, ToolCall
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits
from kode_sidecar.infrastructure.commands.programs import check_names
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.workspace import OnShown
from kode_sidecar.jobs.run.contracts import RunScope, RunServices
from kode_sidecar.jobs.run.governed_proposals import GovernedProposals, WrittenFiles
from kode_sidecar.jobs.run.project_copy import ProjectCopy
from kode_sidecar.jobs.run.run_config import PermissionPart, ToolsPart
from kode_sidecar.jobs.run.sandbox import ARCHIVE, DELIVERABLES, write_file
from kode_sidecar.jobs.run.write_artifact_tool import (
    WRITE_ARTIFACT,
    artifact_subject,
    check_not_the_patch,
    content_type_of,
    write_artifact_tool,
)

OWN_TOOLS: Sequence[str] = (*tools_of("job"), WRITE_ARTIFACT)
"""The tools that every run knows; its configuration decides which of them it offers."""
OPERATIONS = ("create", "move", "delete")
_EDITS = EDIT_TOOLS.intersection(OWN_TOOLS)
_BY_PATH = frozenset({*_EDITS, "read_file", WRITE_ARTIFACT, RUN_COMMAND, MCP})
_ALL = "**"


class RunTools:
    """Makes the tools of a run, refused ones included; `written` records changes to files.

    `more` are tools that exist already. Rules allow or deny them as a whole, except those of
    servers. Raises KodeError `ConfigInvalid` for rules that make no sense.
    """

    def __init__(
        self,
        scope: RunScope,
        services: RunServices,
        project: ProjectCopy | None = None,
        more: Sequence[Tool] = (),
    ) -> None:
        self._scope = scope
        self._services = services
        self._more = more
        self._check_free = project.check_free if project else _anywhere
        self._policy = run_policy(scope.config.tools, {*OWN_TOOLS, *(tool.name for tool in more)})
        self._commands = _command_place(scope, services.environ)
        self.written = WrittenFiles()

    @property
    def names(self) -> Sequence[str]:
        """The names of all tools, offered or not."""
        return (*OWN_TOOLS, *(tool.name for tool in self._more))

    @property
    def offered(self) -> Sequence[str]:
        """The names of the tools offered to the model."""
        return [name for name in self.names if self._policy.offers(name)]

    def offer(self, session: ToolScope, scouts: ScoutServices) -> OfferTools:
        """Make the tools for the session of the run; they read files as the session does."""
        made = tuple(
            governed(tool, self._policy, subjects) for tool, subjects in self._made(session, scouts)
        )
        return lambda _agent, _mode: made

    def _wrote(
        self, session: ToolScope, place: Location, before: bytes | None, after: bytes
    ) -> None:
        """Record an artifact as the model's own change, so that it is not reported to the model."""
        self.written.touched.add(place.real)
        watch, now = session.change_sets.files, to_lf(after.decode("utf-8", "replace"))
        if before is None:
            watch.created(place.uri, place.path, now)
        else:
            watch.applied(canonical_key(place.uri), to_lf(before.decode("utf-8", "replace")), now)

    def _reading(
        self, files: SessionFileView, shown: OnShown | None = None
    ) -> Sequence[tuple[Tool, Subjects]]:
        """Return the tools that read. Scouts pass no `shown`: the main model sees no result."""
        workspace, ripgrep = self._scope.workspace, self._services.ripgrep
        return [
            (read_file_tool(workspace, files, shown), path_subject(workspace)),
            (list_files_tool(workspace, files), no_subject),
            (search_code_tool(workspace, ripgrep, files, shown), no_subject),
        ]

    def _made(self, session: ToolScope, scouts: ScoutServices) -> Sequence[tuple[Tool, Subjects]]:
        scope, workspace, change_sets = self._scope, self._scope.workspace, session.change_sets
        files, shown = change_sets.session_files, change_sets.freshness
        proposals = GovernedProposals(
            change_sets.proposals,
            change_sets.permissions,
            workspace,
            self._policy,
            partial(_check_writable, scope),
            self._check_free,
            self.written,
            partial(_note, scope),
        )
        artifacts = write_artifact_tool(scope, self._check_free, partial(self._wrote, session))
        explore = explore_tool(
            Dispatch(scouts),
            session,
            lambda: [governed(one, self._policy, by) for one, by in self._reading(files)],
            lambda path: files.view(files.document(path, purpose="read")).text_lf,
        )
        return [
            *self._reading(files, shown.note),
            (propose_edit_tool(proposals, files, shown), no_subject),
            (propose_file_tool(proposals, files, shown), no_subject),
            (artifacts, artifact_subject(scope)),
            (explore, no_subject),
            (update_plan_tool(session.emit), no_subject),
            (run_command_tool(self._commands), command_subject),
            *(
                (tool, server_subject(self._policy) if tool.name == MCP else no_subject)
                for tool in self._more
            ),
        ]


def server_subject(policy: Policy) -> Subjects:
    """Return the subject `SERVER/TOOL` of a server's call; a search is allowed unless denied."""

    def subjects(params: object) -> Sequence[Subject]:
        server, tool = getattr(params, "server", None) or "", getattr(params, "tool", None)
        if getattr(params, "action", "") != "call":
            check_allowed(policy, f"{MCP}:search", Subject(server))
            return ()
        return (Subject(f"{server}/{tool}"),)

    return subjects


def _command_place(scope: RunScope, environ: Mapping[str, str]) -> CommandPlace:
    """Return the place where commands run. Raises KodeError `ConfigInvalid`."""
    shell = scope.config.tools.shell
    check_names(shell.environment)
    numbers = count(1)

    def keep(_call_id: str, output: bytes) -> Blob:
        path = f"{ARCHIVE}/commands/{next(numbers)}.log"
        write_file(scope.sandbox.locate(path, "read"), output)
        scope.artifacts.add(path, kind="tool_output", created_by=RUN_COMMAND)
        return Blob(ref=path, bytes=len(output), sha256=hashlib.sha256(output).hexdigest())

    async def report(wanted: WantedCommand, call: ToolCall) -> Unseen:
        """Warn in the events of a risky command that the policy allows, but no rule names (B9)."""
        if why := allowed.risk(wanted.argv, wanted.program.name):
            scope.log.event(
                "command.risk",
                f"LOOK AT WHAT IT DID: {why}, and no rule of the configuration names that",
                actor="governance",
                severity="warning",
                data={"argv": list(wanted.argv), "why": why},
                correlation_id=call.tool_use_id,
            )
        return Unseen()

    allowed = CommandRules("list", _allowed_commands(scope.config.tools))
    return CommandPlace(
        scope.workspace,
        scope.sandbox.root,
        environ,
        keep,
        CommandLimits(shell.timeout_seconds, shell.max_output_bytes),
        shell.environment,
        permit=report,
    )


def _allowed_commands(config: ToolsPart) -> Sequence[Sequence[str]]:
    """Return the words of all rules that allow a command by its name."""
    by_path = [
        part.path.split()
        for part in config.permissions
        if part.tool == RUN_COMMAND and part.effect == "allow" and part.path != _ALL
    ]
    return [*config.shell.allow, *by_path]


def _check_writable(scope: RunScope, place: Location) -> None:
    """Raise KodeError `PathOutsideRoots` for a read-only zone, `Denied` for the patch."""
    scope.sandbox.locate(place.display, "write")
    check_not_the_patch(scope, place)


def _note(scope: RunScope, place: Location, call: ToolCall) -> None:
    """List a written deliverable in the manifest; other files are in the patch."""
    if place.root.name == DELIVERABLES and place.real.exists():
        content_type = content_type_of(place.display)
        scope.artifacts.add(
            place.display, kind="deliverable", created_by=call.name, content_type=content_type
        )


def _anywhere(_place: Location) -> None:
    """Allow every place: without a project no file can be in the way."""


def run_policy(config: ToolsPart, known: Collection[str]) -> Policy:
    """Return the policy of `tools`, for a run that knows the tools `known`.

    Tools not in `offer` are denied. Raises KodeError `ConfigInvalid` for a rule that would have no
    effect, because its author believes that it has one.
    """
    rules = [_rule(part, known) for part in config.permissions]
    rules += [command_rule(words) for words in config.shell.allow]
    if config.offer is not None:
        for name in config.offer:
            _check_known(name, known, "tools.offer")
        rules += [Rule(name, _ALL, "deny") for name in sorted(set(known) - set(config.offer))]
    return effective_policy(
        shell=config.shell.enabled,
        delete=config.filesystem.delete,
        servers=config.servers,
        rules=rules,
    )


def _rule(part: PermissionPart, known: Collection[str]) -> Rule:
    name, _, operation = part.tool.partition(":")
    _check_known(name, known, "tools.permissions")
    if operation and (name not in _EDITS or operation not in OPERATIONS):
        raise _invalid(
            f"{part.tool!r} is nothing a tool does; write propose_file:create, :move or :delete"
        )
    if part.path != _ALL and name not in _BY_PATH:
        raise _invalid(
            f'{name} is allowed or denied as a whole: leave out `path` or write "{_ALL}"; what it '
            "must not find is kept out by workspace.exclude"
        )
    if name == RUN_COMMAND and part.path != _ALL:
        return command_rule(part.path.split(), part.effect)
    return Rule(part.tool, part.path, part.effect)


def _check_known(name: str, known: Collection[str], field: str) -> None:
    if name not in known:
        raise _invalid(f"there is no tool {name!r}; there are {', '.join(sorted(known))}", field)


def _invalid(problem: str, field: str = "tools.permissions") -> KodeError:
    return KodeError("ConfigInvalid", f"`{field}`: {problem}.", details={"field": field})
