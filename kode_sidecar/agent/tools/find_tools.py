"""`find_tools`: tools that requests do not describe, found by words and called by name.

What a request says of a tool is paid for with each one, and most turns need none of these.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import FIND_TOOLS
from kode_sidecar.core.kernel import read_arguments, spec_of
from kode_sidecar.core.kernel.contracts import (
    CallCard,
    Tool,
    ToolCall,
    ToolOutcome,
    ToolSpec,
    tool_failure,
)

_WORD = re.compile(r"\w{2,}")


class FindToolsParams(Struct, forbid_unknown_fields=True):
    """Use more tools than these: `search` describes those that fit, `call` runs one."""

    action: Literal["search", "call"]
    query: Annotated[str, Meta(description="For search: names or English words; empty: all")] = ""
    tool: Annotated[str, Meta(description="For call")] = ""
    arguments: Annotated[dict[str, Any], Meta(description="For call")] = {}


def find_tools_tool(tools: Sequence[Tool]) -> Tool:
    """Make the tool that finds and calls those of `tools` that requests do not describe."""
    known = {tool.name: tool for tool in tools if tool.deferred}
    specs = [spec_of(tool) for tool in known.values()]
    names = ", ".join(known)

    def passes_on(params: FindToolsParams) -> tuple[Tool, Mapping[str, Any]] | None:
        tool = known.get(params.tool)
        return None if params.action == "search" or tool is None else (tool, params.arguments)

    async def run(params: FindToolsParams, _call: ToolCall) -> ToolOutcome:
        if params.action == "search":
            return _described(specs, params.query)
        text = f"{params.tool!r} is none of them: {names}. Others are called by themselves."
        return tool_failure(failure("UnknownTool", text))

    def card(params: FindToolsParams) -> CallCard:
        passed = passes_on(params)
        if passed is None or passed[0].card is None:
            return CallCard(f"Find tools: {params.query or params.tool or 'all'}")
        tool, arguments = passed
        return passed[0].card(read_arguments(tool, arguments)[0])

    plain = spec_of(Tool(FIND_TOOLS, FindToolsParams, run))
    spec = replace(plain, description=f"{plain.description}\n\nThere are: {names}.")
    return Tool(
        *(FIND_TOOLS, FindToolsParams, run),
        spec=spec,
        kind="search",
        card=card,
        passes_on=passes_on,
    )


def _described(specs: Sequence[ToolSpec], query: str) -> ToolOutcome:
    """Describe the tools that fit best first; all if the query is empty or none fits."""
    words = {word.casefold() for word in _WORD.findall(query)}
    scores = {spec.name: _score(spec, words) for spec in specs}
    fitting = sorted(
        (spec for spec in specs if scores[spec.name]), key=lambda spec: -scores[spec.name]
    )
    parts = ["Call them by `find_tools` with `action` call, `tool` and `arguments`."]
    if words and not fitting:
        parts.insert(0, "No tool fits these words. These are all.")
    found = fitting or specs
    parts += [f"tool: {one.name}\n{one.description}\n{_arguments(one.schema)}" for one in found]
    summary = f"Found {', '.join(one.name for one in found)}"
    return ToolOutcome(ok=True, summary=summary, content="\n\n".join(parts))


def _score(spec: ToolSpec, words: set[str]) -> int:
    """Count the words that a tool's description has; those of its name count more."""
    name, text = spec.name.casefold(), spec.description.casefold()
    return sum(3 * (word in name) + (word in text) for word in words)


def _arguments(schema: Mapping[str, Any]) -> str:
    return f"arguments: {msgspec.json.encode(schema).decode()}"
