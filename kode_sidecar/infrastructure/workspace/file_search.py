"""Files by some letters of their paths, for a client that completes `@`."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from kode_sidecar.core.protocol.documents import FileSearchParams, FileSearchResult, FoundFile
from kode_sidecar.core.text.shown_text import UNSPEAKABLE
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, display_name
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_FOUND = 500
_MOST_MATCHES = 20_000


async def search_files(workspace: Workspace, params: FileSearchParams) -> FileSearchResult:
    """Answer `kode/file/search`: open files first, then those on disk, the best match first.

    The walk runs in a thread and ends when the request is cancelled. Raises KodeError
    `InvalidParams`.
    """
    if not 1 <= params.limit <= MAX_FOUND:
        raise invalid_at("$.limit", f"give a number from 1 to {MAX_FOUND}.")
    matches = _matcher(params.query)
    places = (place for _, place in workspace.open_files() if matches(place.display))
    opened = {place.real: place.display for place in places}
    on_disk: dict[Path, str] = {}
    cut = False
    stop = threading.Event()
    try:
        for start in _starts(workspace):
            walk = partial(list_tree, start, matches, _MOST_MATCHES, stop.is_set, one_project=True)
            listing = await asyncio.to_thread(walk)
            cut = cut or bool(listing.cut)
            for file in listing.files:
                real = start.root.real.joinpath(*file.parts)
                if real not in opened and not file.is_link:
                    name = display_name(start.root, file.parts, workspace.roots)
                    on_disk[real] = name
    finally:
        stop.set()
    ranked = [
        one
        for group in (opened, on_disk)
        for one in sorted(group.items(), key=lambda one: _rank(one[1], params.query))
        if not UNSPEAKABLE.search(one[1])
    ]
    files = tuple(FoundFile(uri=path_to_uri(real), path=name) for real, name in ranked)
    return FileSearchResult(files=files[: params.limit], cut=cut or len(files) > params.limit)


def _starts(workspace: Workspace) -> Iterator[Location]:
    try:
        yield from workspace.targets(".")
    except KodeError:  # no folder is open
        return


def _matcher(query: str) -> Callable[[str], bool]:
    """Return whether a path has the letters of the query in order, whatever their case."""
    letters = [re.escape(letter) for letter in query.replace("\\", "/") if not letter.isspace()]
    pattern = re.compile("[^\0]*?".join(letters), re.IGNORECASE)
    return lambda path: pattern.search(path) is not None


def _rank(path: str, query: str) -> tuple[int, int, str]:
    """Return the place of a path in the answer: by name, by part of the path, by letters."""
    wanted, low = query.casefold().replace("\\", "/"), path.casefold()
    name = low.rpartition("/")[2]
    tests = (name == wanted, name.startswith(wanted), wanted in name, wanted in low, True)
    return tests.index(True), len(path), low
