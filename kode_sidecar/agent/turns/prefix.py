"""The system prompt and the tools of one session, as its first request had them.

Hosts cache requests by their beginning, and a request that begins otherwise is read and paid anew:
so both are saved with the session, whatever its mode, day, folders or skills are later.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from msgspec import Struct

from kode_sidecar import __version__
from kode_sidecar.agent.context.surroundings import SystemPrompt, states_of
from kode_sidecar.agent.tools.find_tools import find_tools_tool
from kode_sidecar.agent.turns.context import TurnContext
from kode_sidecar.core.domain.agent_tool import TOOL_BY_NAME
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import FIND_TOOLS, NEW_TOOLS
from kode_sidecar.core.kernel import spec_of, tool_specs
from kode_sidecar.core.kernel.contracts import Tool, ToolCall, ToolOutcome, ToolSpec, tool_failure
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.infrastructure.records.conversation_files import ConversationFiles
from kode_sidecar.infrastructure.records.session_prefix import SavedTool, SessionPrefix


class FixedPrefix:
    """The beginning of a session's requests; free until `fix`."""

    def __init__(self, records: ConversationFiles) -> None:
        self._records = records
        self._specs: dict[str, ToolSpec] = {}

    @property
    def _saved(self) -> SessionPrefix | None:
        saved = self._records.prefix
        # Another version of the program has other tools.
        return saved if saved is not None and saved.version == __version__ else None

    def system(self, fresh: SystemPrompt) -> str:
        """Return the system prompt to send."""
        return fresh.text if self._saved is None else self._saved.system

    def states(self, fresh: SystemPrompt) -> Mapping[str, str]:
        """Return what that prompt says of the surroundings."""
        return states_of(fresh.parts) if self._saved is None else self._saved.surroundings

    def tools(self, usable: Sequence[Tool], every: Sequence[Tool], mode: Mode) -> Sequence[Tool]:
        """Return the tools to offer: the fixed ones, in their order and words, then new ones.

        `usable` may be used now, `every` holds those of all modes. A call of one that is not usable
        is refused with the reason.
        """
        able = {tool.name: tool for tool in usable}
        found = [able.get(tool.name) or _unusable(tool, mode) for tool in every]
        if any(tool.deferred for tool in found):
            foreign = [tool for tool in found if tool.foreign]
            own = [tool for tool in found if not tool.foreign]
            found = [*own, find_tools_tool(found), *foreign]
        if self._saved is None:
            return found
        current = {tool.name: tool for tool in found}
        fixed = [self._as_saved(one, current.get(one.name), mode) for one in self._saved.tools]
        names = {tool.name for tool in fixed}
        return [*fixed, *(one for one in found if one.name not in names and _may_join(one))]

    def _as_saved(self, saved: SavedTool, tool: Tool | None, mode: Mode) -> Tool:
        spec = self._specs.get(saved.name)
        if spec is None:
            spec = ToolSpec(saved.name, saved.description, saved.schema)
            if tool is not None:
                own = spec_of(tool)
                if (own.description, own.schema) == (spec.description, spec.schema):
                    spec = own  # sessions share it, so that it is encoded once
            self._specs[saved.name] = spec
        if tool is None:
            refuse = _refusal(saved.name, mode)
            return Tool(saved.name, _AnyArguments, refuse, True, dict, spec=spec, foreign=True)
        return replace(tool, spec=spec, offered=True, deferred=False)

    def fix(
        self, context: TurnContext, tools: Sequence[Tool], root: str
    ) -> tuple[SessionPrefix | None, SessionPrefix]:
        """Fix the prefix of the request that comes next, for the next save.

        Returns the one before, and this one. `tools` are those on offer; `root` is the turn at the
        root of the branch.
        """
        saved, before = self._saved, self._records.prefix
        known = saved.tools if saved is not None else ()
        names = {tool.name for tool in known}
        specs = tool_specs([tool for tool in tools if tool.name not in names])
        late = saved is not None
        new = (SavedTool(one.name, one.description, dict(one.schema), late) for one in specs)
        now = SessionPrefix(
            version=__version__,
            system=context.system,
            tools=(*known, *new),
            surroundings=dict(self.states(context.surroundings)),
            model=context.model,
            effort=context.effort or "",
            root=root,
        )
        if now != before:
            self._records.prefix = now
        return before, now

    def late_tools(self, context: TurnContext) -> list[str]:
        """Return the tools that came after the first request, and that no message shown names."""
        if self._saved is None:
            return []
        reported: set[object] = set()
        for message in context.shown:
            names: object = message.meta.get(NEW_TOOLS)
            reported.update(cast(list[object], names) if isinstance(names, list) else ())
        return [tool.name for tool in self._saved.tools if tool.late and tool.name not in reported]


class _AnyArguments(Struct):
    """The arguments of a tool that does not run."""


def _may_join(tool: Tool) -> bool:
    """Whether a tool may come later. Those of MCP servers are found by a search with `mcp`."""
    return not tool.offered or tool.name in TOOL_BY_NAME or tool.name in (FIND_TOOLS, "mcp")


def _unusable(tool: Tool, mode: Mode) -> Tool:
    """Return a tool that says why it does nothing."""
    refuse = _refusal(tool.name, mode)
    return replace(tool, run=refuse, accept=dict, read_only=True, ends_turn=False, card=None)


def _refusal(name: str, mode: Mode) -> Callable[[Any, ToolCall], Awaitable[ToolOutcome]]:
    """Return what a tool runs that cannot be used: it says why."""
    if mode == "plan":
        why = "In plan mode you only read and think: put it into your plan. The user can switch."
    else:
        why = "What it needs is not there now. Go on without it."
    text = f"{name} was not run. {why}"

    async def refuse(_params: Any, _call: ToolCall) -> ToolOutcome:
        return tool_failure(failure("UnknownTool", text))

    return refuse
