"""Decides which tools a request offers, and how each one is described. Sans-IO.

Tools come from servers of the user's, too. A tool that no host accepts is left out with a notice,
because a host that refuses one tool refuses the whole request, now and for ever.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from kode_sidecar.core.domain.model_event import ModelNotice
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.request_options import Notices, json_bytes
from kode_sidecar.infrastructure.providers.tool_schema import normalize_schema

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# A host renders schemas into the prompt: more than this would leave no room for the conversation.
_MOST_SCHEMA_BYTES = 64 * 1024


class OfferedTool(NamedTuple):
    """A tool as hosts accept it. `fault` says why it cannot be offered; empty: it can."""

    name: str
    description: str
    schema: dict[str, Any]
    fault: str = ""


class OfferedTools(NamedTuple):
    """The tools of a request, in its order, and notices of those left out."""

    specs: tuple[ToolSpec, ...]
    notices: Notices


@lru_cache(maxsize=1024)
def offered(tool: ToolSpec) -> OfferedTool:
    """Return a tool as hosts accept it, computed once for all requests."""
    if not _NAME.fullmatch(tool.name):
        fault = "its name has other than 1 to 64 letters, digits, _ and -"
        return OfferedTool(tool.name, "", {}, fault)
    try:
        plain = normalize_schema(tool.schema)
    except RecursionError:
        return OfferedTool(tool.name, "", {}, "its schema is nested too deeply")
    if len(json_bytes(plain)) > _MOST_SCHEMA_BYTES:
        return OfferedTool(tool.name, "", {}, "its schema is too large")
    return OfferedTool(tool.name, tool.description, plain)


def offered_tools(request: ModelRequest, profile: ModelProfile) -> OfferedTools:
    """Return the tools to send to a model."""
    if not request.tools:
        return OfferedTools((), ())
    if not profile.tools:
        text = (
            f"{profile.id} takes no tools, so it answers without them: it reads and edits nothing."
        )
        return OfferedTools((), (ModelNotice("ToolsLeftOut", text),))
    refused = frozenset(profile.refused_tools)
    specs = tuple(
        one for one in request.tools if one.name not in refused and not offered(one).fault
    )
    if len(specs) == len(request.tools):
        return OfferedTools(specs, ())
    faults = {one.name: offered(one).fault for one in request.tools if one not in specs}
    return OfferedTools(specs, tuple(_reported(faults, profile)))


def _reported(faults: dict[str, str], profile: ModelProfile) -> Iterable[ModelNotice]:
    for name, fault in faults.items():
        why = fault or f"{profile.id} refused its description"
        text = f"The tool {_shown(name)} was left out: {why}. The other tools stay."
        yield ModelNotice("ToolsLeftOut", text)


def _shown(name: str) -> str:
    """Return a tool's name; for one of an MCP server, with the server's."""
    _, mark, rest = name.partition("mcp__")
    server, _, tool = rest.partition("__")
    return f"{tool} of the MCP server {server}" if mark and tool else name
