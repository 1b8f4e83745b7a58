"""`list_files`: the files below a folder, without ignored ones, with unsaved new ones."""

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.workspace.globs import compile_glob
from kode_sidecar.workspace.listing import Listing, list_tree
from kode_sidecar.workspace.paths import Location, display_name
from kode_sidecar.workspace.shown_text import without_controls
from kode_sidecar.workspace.workspace import Workspace

Places = Callable[[], Iterable[Location]]
MAX_FILES = 500


class ListFilesParams(Struct, forbid_unknown_fields=True):
    """List the files below a folder of the project, sorted by path.

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


def list_files_tool(workspace: Workspace, added: Places = tuple, removed: Places = tuple) -> Tool:
    """The tool. The walk runs in a thread and ends when the call is cancelled.

    `added` and `removed` are the places that the session has proposed to change.
    """

    async def run(params: ListFilesParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        matches = compile_glob(params.pattern or "**")
        starts = workspace.targets(params.directory)
        for start in starts:
            if start.below and not os.path.isdir(start.real):
                raise KodeError(
                    "InvalidArguments", f"{start.display} is a file. Use read_file to read it."
                )
        shown: list[tuple[list[str], str]] = []
        cut = ""
        gone = {place.real for place in removed()}
        for start in starts:
            listing = await _list(start, matches)
            shown += _on_disk(workspace, start, listing, gone)
            cut = cut or listing.cut
        opened = [place for _, place in workspace.open_files()]
        shown += _unsaved(starts, opened, matches, "open in the editor, not on disk")
        shown += _unsaved(starts, added(), matches, "proposed by you, not on disk")
        return _outcome(params, [text for _, text in sorted(shown)], cut)

    return Tool("list_files", ListFilesParams, run, read_only=True)


async def _list(start: Location, matches: Callable[[str], bool]) -> Listing:
    stop = threading.Event()
    try:
        return await asyncio.to_thread(list_tree, start, matches, MAX_FILES, stop.is_set)
    finally:
        stop.set()


def _on_disk(
    workspace: Workspace, start: Location, listing: Listing, gone: Collection[Path]
) -> list[tuple[list[str], str]]:
    names = [
        (display_name(start.root, file.parts, workspace.roots), file.is_link)
        for file in listing.files
        if start.root.real.joinpath(*file.parts) not in gone
    ]
    return [(name.split("/"), name + (" (link, not followed)" * link)) for name, link in names]


def _unsaved(
    starts: Iterable[Location],
    places: Iterable[Location],
    matches: Callable[[str], bool],
    note: str,
) -> list[tuple[list[str], str]]:
    """Files that are not on disk."""
    return [
        (place.display.split("/"), f"{place.display} ({note})")
        for place in places
        for start in starts
        if place.real.is_relative_to(start.real)
        and not os.path.lexists(place.real)
        and matches(place.real.relative_to(start.real).as_posix())
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
