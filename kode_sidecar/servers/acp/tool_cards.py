"""Describes a tool call for the client: title, kind, locations, content. Pure functions."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from kode_sidecar.core.domain.agent_event import ReviewUpdated
from kode_sidecar.core.domain.agent_tool import AGENT_TOOLS
from kode_sidecar.core.domain.change_set import FileView, HunkView
from kode_sidecar.core.domain.finding import FindingView
from kode_sidecar.core.domain.message import (
    ImageBlock,
    TextBlock,
    ToolKind,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.uris import uri_to_path
from kode_sidecar.servers.acp.types import ToolKind as AcpToolKind

Json = dict[str, Any]

PLAN_TOOL = "update_plan"
"""A call of it is shown as the plan that it writes, not as a card besides."""
_PLAN_STATES = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}
_TITLE_CHARS = 120
# What the user is asked and what the model notes for itself are no kinds of ACP.
_KINDS: Mapping[ToolKind, AcpToolKind] = {
    "read": "read",
    "search": "search",
    "edit": "edit",
    "run": "execute",
}
_FILE_KINDS: Mapping[object, AcpToolKind] = {"move": "move", "delete": "delete"}
_VERBS: Mapping[str, str] = {tool.name: tool.verb for tool in AGENT_TOOLS if tool.verb}
_VERBATIM: Collection[str] = {tool.name for tool in AGENT_TOOLS if tool.verbatim}
_SUBJECTS = ("path", "pattern", "query", "name", "question", "tool")


def tool_kind(block: ToolUseBlock) -> AcpToolKind:
    """Return the kind of a tool; MCP tools, which have names of their own, are `other`."""
    if block.name == "mcp":
        return "fetch"
    if block.name == "propose_file":
        return _FILE_KINDS.get(block.input.get("action"), "edit")
    return _KINDS.get(block.kind, "other")


def tool_title(block: ToolUseBlock) -> str:
    """Return the title of the card."""
    subject = next((s for key in _SUBJECTS if isinstance(s := block.input.get(key), str)), "")
    verb = _VERBS.get(block.name, block.name)
    if block.name == "propose_file":
        verb = str(block.input.get("action", "Write")).capitalize()
    title = one_line(without_controls(f"{verb} {subject}".strip()))
    return cut_line(title, _TITLE_CHARS) or block.name


def tool_locations(block: ToolUseBlock, folder: Path) -> list[Json]:
    """Return the file that the call is about, as an absolute path, so an editor can follow."""
    path = block.input.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        return []
    location: Json = {"path": str(folder / path)}
    line = block.input.get("start")
    if isinstance(line, int) and not isinstance(line, bool) and line > 0:
        location["line"] = line
    return [location]


def tool_call(block: ToolUseBlock, folder: Path) -> Json:
    """Return the members of a call with known arguments, without its id and status."""
    card: Json = {
        "title": tool_title(block),
        "name": block.name,
        "kind": tool_kind(block),
        "rawInput": block.input if block.invalid_input is None else block.invalid_input,
    }
    locations = tool_locations(block, folder)
    return {**card, "locations": locations} if locations else card


def tool_result(name: str, block: ToolResultBlock, kept: Sequence[Json]) -> Json:
    """Return the members of a call that has ended; `kept` is what its card shows already."""
    failed = block.is_error or block.status != "ok"
    content = list(kept)
    if failed or not kept:
        content += [_result_content(name, part) for part in block.content]
    return {
        "status": "failed" if failed else "completed",
        "content": content,
        "rawOutput": {"status": block.status, "summary": block.summary},
    }


def _result_content(name: str, part: TextBlock | ImageBlock) -> Json:
    if isinstance(part, ImageBlock):
        return text_content({"type": "image", "mimeType": part.media_type, "data": part.data})
    return text_content(fenced(part.text) if name in _VERBATIM else part.text)


def text_content(content: str | Json) -> Json:
    """Return a content block of a card."""
    block = {"type": "text", "text": content} if isinstance(content, str) else content
    return {"type": "content", "content": block}


def review_card(event: ReviewUpdated, folder: Path) -> Json:
    """Return the members of a card with the open findings of a review, file by file."""
    lines, shown = finding_list(event.findings)
    content = text_content(without_controls("\n".join([one_line(event.summary), *lines])))
    locations = [
        {"path": str(uri_to_path(one.uri) or folder / one.path), "line": line}
        for one, line in shown
    ]
    return {"content": [content], "locations": locations}


def finding_list(
    findings: Sequence[FindingView],
) -> tuple[list[str], list[tuple[FindingView, int]]]:
    """Return the open findings as lines of Markdown, file by file, and each with its line."""
    shown = [
        (one, one.range.start.line + 1)
        for one in findings
        if one.state == "open" and one.range is not None
    ]
    lines: list[str] = []
    ordered: list[tuple[FindingView, int]] = []
    for path in dict.fromkeys(one.path for one, _ in shown):
        lines.append(f"\n**{one_line(path)}**")
        for one, line in (each for each in shown if each[0].path == path):
            text = one_line(f"{one.severity} `{one.finding_id}` line {line}: {one.title}")
            lines += [f"- {text}", *(f"  {part}" for part in one.explanation.splitlines())]
            ordered.append((one, line))
    return lines, ordered


def plan_entry(text: str, state: str) -> Json:
    """Return a step of the model's plan."""
    return {"content": text, "priority": "medium", "status": _PLAN_STATES.get(state, "pending")}


def fenced(text: str, language: str = "") -> str:
    """Return text in a fence, so that Markdown shows it unchanged."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def diff_content(file: FileView, hunk: HunkView) -> Json:
    """Return a proposed hunk as a diff of its lines, with LF; a new file has no old text."""
    path = str(uri_to_path(file.uri) or file.path)
    if hunk.kind == "rename":
        return text_content(f"{file.path} → {hunk.new_path}")
    new = {"type": "diff", "path": path, "newText": to_lf(hunk.new_text or "")}
    return new if hunk.kind == "create" else {**new, "oldText": to_lf(hunk.old_text or "")}
