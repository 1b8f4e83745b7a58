"""`list_files`: list the files below a folder, with unsaved new ones, without ignored ones."""

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView, targets_seen
from kode_sidecar.infrastructure.workspace.globs import compile_glob
from kode_sidecar.infrastructure.workspace.listing import Listing, list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, display_name
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_FILES = 500


class ListFilesParams(Struct, forbid_unknown_fields=True):
    """List the files below a folder of the project, sorted by path, as you have proposed them.

    What `.gitignore` files name is left out, and so are folders such as `.git`, `node_modules`
    and `.venv`. Files that exist only in the editor are listed too. At most 500 are listed:
    narrow with `directory` or `pattern` then.
    """

    directory: Annotated[
        str, Meta(description='Folder, relative to the open folder; "." is all of it')
    ] = "."
    pattern: (
        Annotated[
            str,
            Meta(
                description="Glob, relative to directory: *.py (any depth), src/**/*.ts, *.{c,h}; "
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
        shown: list[tuple[list[str], str]] = []
        cut = ""
        for start in starts:
            listing = await _list(start, matches)
            shown += _on_disk(workspace, start, listing, removed)
            cut = cut or listing.cut
        shown += _beyond_disk(workspace, seen, starts, matches)
        return _outcome(params, [text for _, text in sorted(shown)], cut)

    return Tool("list_files", ListFilesParams, run, read_only=True, kind="search", card=_card)


def _card(params: ListFilesParams) -> CallCard:
    named = f" like {params.pattern}" if params.pattern else ""
    return CallCard(f"List files{named} in {params.directory}", (CallPlace(params.directory),))


async def _list(start: Location, matches: Callable[[str], bool]) -> Listing:
    stop = threading.Event()
    try:
        return await asyncio.to_thread(list_tree, start, matches, MAX_FILES, stop.is_set)
    finally:
        stop.set()


def _on_disk(
    workspace: Workspace, start: Location, listing: Listing, removed: Collection[Path]
) -> list[tuple[list[str], str]]:
    names = [
        (display_name(start.root, file.parts, workspace.roots), file.is_link)
        for file in listing.files
        if not removed or start.root.real.joinpath(*file.parts) not in removed
    ]
    return [(name.split("/"), name + (" (link, not followed)" * link)) for name, link in names]


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


def _outcome(params: ListFilesParams, lines: list[str], cut: str) -> ToolOutcome:
    place = params.directory if params.directory not in ("", ".", "./") else "the open folder"
    wanted = f' that match "{params.pattern}"' if params.pattern else ""
    shown = lines[:MAX_FILES]
    if len(shown) < len(lines):
        cut = cut or f"after {MAX_FILES:,} files"
    counted = f"{len(shown)} file{'' if len(shown) == 1 else 's'} in {place}{wanted}"
    head = counted if lines else f"No files in {place}{wanted}. Ignored files are not listed."
    tail = [f"[cut {cut}; narrow with directory or pattern]"] if cut else []
    content = without_controls("\n".join([head, *shown, *tail]))
    return ToolOutcome(ok=True, summary=without_controls(head), content=content)
