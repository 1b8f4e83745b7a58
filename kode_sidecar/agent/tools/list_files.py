"""`list_files`: list the files below a folder, with unsaved new ones, without ignored ones."""

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import UNSPEAKABLE, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView, targets_seen
from kode_sidecar.infrastructure.workspace.globs import compile_glob
from kode_sidecar.infrastructure.workspace.listing import Listing, list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, display_name
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_FILES = 500
_MOST_NAMED = 5


class ListFilesParams(Struct, forbid_unknown_fields=True):
    """List the files below a folder, at most 500, without what `.gitignore` files name and folders
    such as `node_modules`.
    """

    directory: Annotated[str, Meta(description="Relative to the open folder")] = "."
    pattern: (
        Annotated[
            str,
            Meta(
                description="Glob below directory: *.py (any depth), src/**/*.ts, *.{c,h}; "
                "a leading ! excludes"
            ),
        ]
        | None
    ) = None


def list_files_tool(workspace: Workspace, files: SessionFileView | None = None) -> Tool:
    """Make the tool. `files` includes the session's proposals.

    The walk runs in a thread and ends when the call is cancelled.
    """
    seen = files or workspace

    async def run(params: ListFilesParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        matches = compile_glob(params.pattern or "**")
        starts = targets_seen(workspace, seen, params.directory)
        added = [location.real for location in seen.added()]
        for start in starts:
            holds_added = any(start.real in real.parents for real in added)
            if start.below and not holds_added and not os.path.isdir(start.real):
                raise KodeError(
                    "InvalidArguments", f"{start.display} is a file. Use read_file to read it."
                )
        removed = {location.real for location in seen.removed()}
        on_disk: dict[Path, tuple[list[str], str]] = {}
        cut = ""
        projects: list[str] = []
        for start in sorted(starts, key=lambda start: len(start.root.real.parts)):
            listing = await _list(start, matches)
            on_disk |= _on_disk(workspace, start, listing, removed)  # the innermost folder names it
            cut = cut or listing.cut
            projects += (
                display_name(start.root, parts, workspace.roots) for parts in listing.projects
            )
        shown = [*on_disk.values(), *_beyond_disk(workspace, seen, starts, matches)]
        return _outcome(params, [text for _, text in sorted(shown)], cut, projects)

    return Tool("list_files", ListFilesParams, run, read_only=True, kind="search", card=_card)


def other_projects(names: Sequence[str]) -> str:
    """Return the remark about folders that are left out as projects of their own."""
    some = ", ".join(names[:_MOST_NAMED]) + (" …" * (len(names) > _MOST_NAMED))
    return f"not looked into, as checkouts of their own: {some}"


def _card(params: ListFilesParams) -> CallCard:
    named = f" like {params.pattern}" if params.pattern else ""
    return CallCard(f"List files{named} in {params.directory}", (CallPlace(params.directory),))


async def _list(start: Location, matches: Callable[[str], bool]) -> Listing:
    stop = threading.Event()
    try:
        walk = partial(list_tree, start, matches, MAX_FILES, stop.is_set, one_project=True)
        return await asyncio.to_thread(walk)
    finally:
        stop.set()


def _on_disk(
    workspace: Workspace, start: Location, listing: Listing, removed: Collection[Path]
) -> dict[Path, tuple[list[str], str]]:
    found: dict[Path, tuple[list[str], str]] = {}
    for file in listing.files:
        real = start.root.real.joinpath(*file.parts)
        if real not in removed:
            name = display_name(start.root, file.parts, workspace.roots)
            found[real] = name.split("/"), _shown(name, is_link=file.is_link)
    return found


def _shown(name: str, *, is_link: bool) -> str:
    """Return a file's entry: one line, whatever its name holds."""
    text = UNSPEAKABLE.sub(lambda char: ascii(char[0])[1:-1], name)
    if text != name:
        return f"{text} (cannot be opened: no path can hold such a name)"
    return text + (" (link, not followed)" * is_link)


def _beyond_disk(
    workspace: Workspace,
    files: SessionFileView,
    starts: Sequence[Location],
    matches: Callable[[str], bool],
) -> list[tuple[list[str], str]]:
    """Return files that are not on disk: open in the editor, or proposed."""
    removed = {location.real for location in files.removed()}
    found = {
        location.real: (location, "open in the editor, not on disk")
        for _, location in workspace.open_files()
        if location.real not in removed and not os.path.lexists(location.real)
    }
    found |= {
        location.real: (location, "proposed by you, not on disk") for location in files.added()
    }
    return [
        (location.display.split("/"), f"{location.display} ({remark})")
        for location, remark in found.values()
        for start in starts
        if location.real.is_relative_to(start.real)
        and matches(location.real.relative_to(start.real).as_posix())
    ]


def _outcome(
    params: ListFilesParams, lines: list[str], cut: str, projects: Sequence[str]
) -> ToolOutcome:
    place = params.directory if params.directory not in ("", ".", "./") else "the open folder"
    wanted = f' that match "{params.pattern}"' if params.pattern else ""
    if params.pattern and not lines and place != "the open folder":
        wanted += f", relative to {place}"
    shown = lines[:MAX_FILES]
    if len(shown) < len(lines):
        cut = cut or f"after {MAX_FILES:,} files"
    counted = f"{len(shown)} file{'' if len(shown) == 1 else 's'} in {place}{wanted}"
    head = counted if lines else f"No files in {place}{wanted}. Ignored files are not listed."
    tail = [f"[cut {cut}; narrow with directory or pattern]"] if cut else []
    if projects:
        tail.append(f"[{other_projects(projects)}; name one as directory to list it]")
    content = without_controls("\n".join([head, *shown, *tail]))
    return ToolOutcome(ok=True, summary=without_controls(head), content=content)
