"""Say a tool call in the words that hook scripts know: `Bash`, `Edit`, `file_path`.

A call that is about several files is several calls there, so that a script sees each path.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kode_sidecar.agent.tools.propose_edit import EditCall, ProposeEditParams
from kode_sidecar.agent.tools.propose_file import FileCall
from kode_sidecar.core.domain.command_rules import shown_command
from kode_sidecar.core.kernel.contracts import Tool
from kode_sidecar.core.text.file_patch import FileAdd, FilePatch, FileUpdate
from kode_sidecar.core.text.tool_arguments import usual_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.workspace import Workspace

Arguments = Mapping[str, Any]


class ForeignCall(NamedTuple):
    """A call as a script sees it. `names` are what a matcher may say, ours last."""

    name: str
    arguments: Arguments
    own_name: str

    @property
    def names(self) -> Sequence[str]:
        """What a matcher may say."""
        return self.name, self.own_name


def foreign_calls(tool: Tool, params: Any, workspace: Workspace) -> Sequence[ForeignCall]:
    """Return what a call is in the words of scripts: at least one call."""
    said = _said(tool, params, lambda path: _absolute(workspace, path))
    return [ForeignCall(name, arguments, tool.name) for name, arguments in said]


def _said(  # noqa: C901 - a table
    tool: Tool, params: Any, absolute: Callable[[str], str]
) -> Iterator[tuple[str, Arguments]]:
    match tool.name:
        case "run_command":
            folder = absolute(params.cwd)
            yield (
                "Bash",
                {"command": shown_command(params.argv), "argv": params.argv, "cwd": folder},
            )
        case "propose_edit":
            yield from _edits(params, absolute)
        case "propose_file":
            yield from _files(params, absolute)
        case "write_artifact":
            yield "Write", _write(absolute(params.path), params.content, "overwrite")
        case "rename_symbol":
            yield (
                "Edit",
                {
                    "file_path": absolute(params.path),
                    "old_string": params.symbol,
                    "new_string": params.new_name,
                },
            )
        case "read_file":
            limit = None if params.end is None else params.end - (params.start or 1) + 1
            path = absolute(params.path)
            yield "Read", {"file_path": path, "offset": params.start, "limit": limit}
        case "list_files":
            pattern = params.pattern or "*"
            yield "Glob", {"pattern": pattern, "path": absolute(params.directory)}
        case "search_code":
            yield "Grep", {"pattern": params.query, "path": absolute(params.path or ".")}
        case "web_fetch":
            yield "WebFetch", {"url": params.url, "prompt": ""}
        case "explore":
            for task in params.tasks:
                yield "Task", {"description": task.title, "prompt": task.question}
        case "mcp" if getattr(params, "action", "") == "call":
            yield f"mcp__{params.server}__{params.tool}", params.arguments
        case name:
            yield name, _plain(params)


def _edits(given: EditCall, absolute: Callable[[str], str]) -> Iterator[tuple[str, Arguments]]:
    request = given.request
    if isinstance(request, ProposeEditParams):
        pairs = [(one.old, one.new) for one in request.edits or ()]
        yield "Edit", _edit(absolute(request.path), pairs or [("", request.new_content or "")])
        return
    # Which reading is meant shows when it is done, so a script sees all of them.
    for reading in request.readings:
        for part in reading:
            yield from _patched(part, absolute)


def _patched(part: FilePatch, absolute: Callable[[str], str]) -> Iterator[tuple[str, Arguments]]:
    path = absolute(part.path)
    if isinstance(part, FileUpdate):
        pairs = [("\n".join(one.old), "\n".join(one.new)) for one in part.chunks]
        yield "Edit", _edit(path, pairs)
        if part.move_to:
            yield "Write", _write(absolute(part.move_to), "", "move")
    elif isinstance(part, FileAdd):
        yield "Write", _write(path, part.text, "create")
    else:
        yield "Write", _write(path, "", "delete")


def _write(path: str, content: str, operation: str) -> Arguments:
    return {"file_path": path, "content": content, "operation": operation}


def _edit(path: str, pairs: Sequence[tuple[str, Any]]) -> Arguments:
    old, new = ("\n".join(pair[side] or "" for pair in pairs) for side in (0, 1))
    edits = [{"old_string": before, "new_string": after or ""} for before, after in pairs]
    return {"file_path": path, "old_string": old, "new_string": new, "edits": edits}


def _files(given: FileCall, absolute: Callable[[str], str]) -> Iterator[tuple[str, Arguments]]:
    params = given.params
    for path in (params.path, params.to):
        if path is not None:
            yield "Write", _write(absolute(path), params.content or "", params.action)


def _absolute(workspace: Workspace, path: str) -> str:
    """Return the path that the tool will act on; one that is refused stays as it is."""
    named = usual_path(path)
    for wanted in (path, *([] if named is None else [named[0]])):
        try:
            place = str(workspace.locate(wanted).path)
        except KodeError:
            continue
        if named is None or wanted != path or os.path.lexists(place):
            return place
    return path


def _plain(params: Any) -> Arguments:
    plain: Any = msgspec.to_builtins(params, enc_hook=repr)
    return msgspec.convert(plain, dict[str, Any]) if isinstance(plain, dict) else {}
