"""Searches the project as the editor sees it: files on disk, and the texts of open buffers.

Ripgrep searches both, so a pattern means the same everywhere and its time is bounded: it gets the
buffers as one text through its standard input, and notebooks, which are read by cells, alike.
"""

import asyncio
import os
import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.notebook import is_notebook
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import cut_line, without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView, targets_seen
from kode_sidecar.infrastructure.workspace.decoding import decode, is_binary, is_utf8
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES, FileStatus, read_with_status
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.globs import compile_glob, is_left_out
from kode_sidecar.infrastructure.workspace.left_out import Unsearched, count_left_out
from kode_sidecar.infrastructure.workspace.paths import Location, display_name
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, RipgrepHit
from kode_sidecar.infrastructure.workspace.ripgrep_rules import ignore_text
from kode_sidecar.infrastructure.workspace.search_query import (
    SearchQuery,
    disk_arguments,
    mark_arguments,
    pattern_arguments,
    selector,
)
from kode_sidecar.infrastructure.workspace.workspace import (
    OnShown,
    OpenFiles,
    TextView,
    Workspace,
    default_view,
)

MAX_LINE_CHARS = 400
FEW = 3
"""With fewer matches a result says what was not searched."""
FALLBACK_ENCODING = "gb18030"


@dataclass(frozen=True, order=True)
class SearchMatch:
    """A matching line as it is shown. `note` names the source of a text not plainly from disk."""

    order: tuple[str, ...]
    line: int
    path: str = field(compare=False)
    text: str = field(compare=False)
    note: str = field(compare=False, default="")


@dataclass
class SearchResult:
    """Matches in order of path and line.

    `unknown` files are open with an unknown text and were not searched. `left_out` says which
    others were not, if there are few matches; `projects` are folders left out as checkouts of
    their own. `more`: there are further matches. `cut` says why the search ended early. A file
    that holds credentials is never mentioned, matching or not: the answer would let a model guess
    its text letter by letter.
    """

    matches: list[SearchMatch] = field(default_factory=list[SearchMatch])
    unknown: list[str] = field(default_factory=list[str])
    left_out: str = ""
    projects: list[str] = field(default_factory=list[str])
    more: bool = False
    cut: str = ""


@dataclass(frozen=True)
class _Buffer:
    """A text that is searched instead of the disk's. `real` is None for an untitled buffer."""

    name: str
    real: Path | None
    document: Document
    view: TextView


@dataclass
class Search:
    """Searches one workspace as one session sees it.

    `files` includes the session's proposals; `on_shown` is called with the lines the model sees.
    """

    workspace: Workspace
    ripgrep: Ripgrep
    files: SessionFileView
    on_shown: OnShown | None = None

    async def run(self, query: SearchQuery) -> SearchResult:
        """Return the first `max_results` matches in the order of paths.

        Raises KodeError `PathOutsideRoots`, `NotFound`, `InvalidArguments`, `ToolFailed`.
        """
        result = SearchResult()
        targets = targets_seen(self.workspace, self.files, query.path)
        buffers = self._buffers(query, targets, result)
        shown = await asyncio.to_thread(_without_secrets, buffers)
        await self._search_buffers(query, shown, result)
        replaced = {buffer.real for buffer in buffers}
        replaced |= {location.real for location in self.files.removed()}
        files: list[_File] = []
        for target in targets:
            async with self._ignore_file(target) as (rules, names):
                look = _Look(query, target, rules, selector(query, (target,)), replaced, result)
                notebooks = await self._notebooks(look, names)
                await self._search_buffers(query, notebooks, result)
                buffers += notebooks
                replaced |= {notebook.real for notebook in notebooks}
                files += await self._search_disk(look, None)
                if not query.text.isascii():
                    encoding = self.workspace.file_encoding or FALLBACK_ENCODING
                    files += await self._search_disk(look, encoding)
        unique = {(match.order, match.line): match for match in reversed(result.matches)}
        found = sorted(unique.values())
        result.more = len(found) > query.max_results
        result.matches = found[: query.max_results]
        if len(found) < FEW and not result.more:
            await self._note_left_out(query, targets, result)
        self._note_shown(result.matches, buffers, files)
        return result

    async def _note_left_out(
        self, query: SearchQuery, targets: Sequence[Location], result: SearchResult
    ) -> None:
        """Say what was not searched. Files open in the editor were, whatever they are on disk."""
        matches = compile_glob(query.glob or "**")
        encoding = self.workspace.file_encoding or FALLBACK_ENCODING
        fits = any(match.note.startswith("read as") for match in result.matches)
        decode = not query.text.isascii() and not fits  # else they were searched
        found = Unsearched()
        for target in targets:
            here = await asyncio.to_thread(count_left_out, target, matches, decode=decode)
            found.counts += here.counts
            found.complete = found.complete and here.complete
            result.projects += (
                display_name(target.root, parts, self.workspace.roots) for parts in here.projects
            )
        result.left_out = found.words(encoding)

    def _note_shown(
        self, matches: Sequence[SearchMatch], buffers: Iterable[_Buffer], files: Iterable["_File"]
    ) -> None:
        """Report the lines that are shown uncut and match the text that we have read."""
        if self.on_shown is None:
            return
        buffer_of = {buffer.name: buffer for buffer in buffers}
        file_of = {file.name: file for file in files if file.document}
        for name, group in groupby(matches, key=lambda match: match.path):
            buffer = buffer_of.get(name)
            document = buffer.document if buffer else file_of[name].document
            assert document is not None, "a file without text has no matches"
            text = buffer.view.text_lf if buffer else self.files.view(document).text_lf
            lines = split_lines(text)
            for match in group:
                if match.text == _plain(lines[match.line - 1 : match.line]):
                    self.on_shown(document, text, match.line, match.line)

    def _buffers(
        self, query: SearchQuery, targets: tuple[Location, ...], result: SearchResult
    ) -> list[_Buffer]:
        """Return the texts to search in place of the disk's, in the order of their names."""
        selected = selector(query, targets)
        buffers: list[_Buffer] = []
        for document, location in self._overlaid():
            if not selected(location.real) or location.is_secret:
                continue
            if len(document.text) > MAX_FILE_BYTES:  # ripgrep has the same limit for files on disk
                result.cut = f"{location.display} is too large to be searched"
            elif document.synced:
                buffers.append(self._buffer(document, location.display, location.real))
            else:
                result.unknown.append(location.display)
        if not query.glob and query.path in ("", ".", "./"):
            buffers += [
                self._buffer(document, document.key, None)
                for document in self.workspace.documents.all_open()
                if document.synced and document.key.startswith("untitled:")
            ]
        return sorted(buffers, key=lambda buffer: buffer.name.split("/"))

    def _overlaid(self) -> list[tuple[Document, Location]]:
        """Return open documents, and closed ones with pending edits, without deleted ones."""
        removed = {location.real for location in self.files.removed()}
        found = [file for file in self.workspace.open_files() if file[1].real not in removed]
        known = {location.real for _, location in found}
        for path in self.files.pending_paths():
            with suppress(KodeError):
                location = self.workspace.locate(path)
                if location.real not in known:
                    document = self.files.document(path, purpose="read")
                    found.append((document, location))
                    known.add(location.real)
        return found

    def _buffer(self, document: Document, name: str, real: Path | None) -> _Buffer:
        return _Buffer(name, real, document, self.files.view(document))

    async def _search_buffers(
        self, query: SearchQuery, buffers: list[_Buffer], result: SearchResult
    ) -> None:
        texts = [buffer.view.text_lf.removesuffix("\n") + "\n" for buffer in buffers]
        starts = list(accumulate((text.count("\n") for text in texts), initial=0))[:-1]
        seen = 0

        async def accept(hit: RipgrepHit) -> bool:
            nonlocal seen
            index = bisect_right(starts, hit.line - 1) - 1
            buffer = buffers[index]
            line = hit.line - starts[index]
            result.matches.append(_match(buffer.name, line, hit, None, buffer.view.note))
            seen += 1
            return seen <= query.max_results

        if buffers:
            arguments = ["--text", "--encoding=none", *pattern_arguments(query), "-"]
            text = "".join(texts).encode("utf-8", "surrogatepass")
            cut = await self.ripgrep.run(arguments, accept, text=text)
            result.cut = result.cut or cut

    @asynccontextmanager
    async def _ignore_file(self, target: Location) -> AsyncGenerator[tuple[str, list[str]], None]:
        """Yield the name of a file with the ignore rules of a folder, or "", and its notebooks."""
        if not os.path.isdir(target.real):
            yield "", ["/".join(target.below)] if is_notebook(target.real.name) else []
            return
        found = await self.ripgrep.files(mark_arguments(target), target.root.real)
        notebooks = sorted(filter(is_notebook, found))
        marks = [name for name in found if not is_notebook(name)]
        text = await asyncio.to_thread(ignore_text, target, marks)
        if not text:
            yield "", notebooks
            return
        with TemporaryDirectory(prefix="kode-search-") as folder:
            file = Path(folder, "ignore")
            file.write_text(text, encoding="utf-8", errors="surrogateescape")
            yield str(file), notebooks

    async def _notebooks(self, look: "_Look", names: Sequence[str]) -> list[_Buffer]:
        """Return the notebooks of these names as the model reads them, but for those replaced."""
        found: list[_Buffer] = []
        for name in (name.removeprefix("./") for name in names):
            with suppress(KodeError):
                location = self.workspace.locate(str(look.target.root.path / name))
                if location.real in look.replaced or not look.selected(location.real):
                    continue
                file = await asyncio.to_thread(self._read, look.target, name, location)
                if file.document is not None:
                    view = await asyncio.to_thread(default_view, file.document)
                    found.append(_Buffer(file.name, location.real, file.document, view))
        return found

    async def _search_disk(self, look: "_Look", encoding: str | None) -> Iterable["_File"]:
        """Search files below a target; with an `encoding`, report only those that are not UTF-8.

        Returns the files with hits.
        """
        query, target, result = look.query, look.target, look.result
        files: dict[str, _File] = {}
        opened = self.workspace.files_open_now()
        seen = 0

        async def accept(hit: RipgrepHit) -> bool:
            nonlocal seen
            file = files.get(hit.path)
            if file is None:
                file = files[hit.path] = await self._inspect(look, hit.path, opened)
            if file.shows(hit) and not (encoding and file.utf8):
                note = "" if file.utf8 else f"read as {file.encoding}"
                result.matches.append(_match(file.name, hit.line, hit, file.encoding, note))
                seen += 1
            return seen <= query.max_results

        if not os.path.isdir(target.root.real):
            result.cut = result.cut or f"the folder {target.root.name} does not exist"
            return ()
        cut = await self.ripgrep.run(
            disk_arguments(query, target, encoding, look.rules), accept, folder=target.root.real
        )
        result.cut = result.cut or cut
        return files.values()

    async def _inspect(self, look: "_Look", path: str, opened: OpenFiles) -> "_File":
        """Check a file that ripgrep found by the guard; it is nameless if it must not be shown."""
        target = look.target
        try:
            location = self.workspace.locate(str(target.root.path / path))
            if location.real in look.replaced or self.workspace.open_document(location, opened):
                return _File()
        except KodeError:
            return _File()
        if not look.selected(target.root.real / path):
            return _File()
        return await asyncio.to_thread(self._read, target, path, location)

    def _read(self, target: Location, path: str, location: Location) -> "_File":
        """Read a file with hits. Slow for large files or ignore rules: run it in a thread."""
        try:
            if location.is_secret:
                return _File()
            if is_left_out(target.root, target.below, tuple(path.split("/"))):
                return _File()  # ripgrep does not know all rules
            data, status = read_with_status(location, second_names=True)
        except KodeError:
            return _File()
        return _File() if is_binary(data) else self._describe(location, data, status)

    def _describe(self, location: Location, data: bytes, status: FileStatus) -> "_File":
        fallback = self.workspace.file_encoding or FALLBACK_ENCODING
        try:
            decoded = decode(data, location.display, fallback)
            text, encoding = decoded.text, decoded.encoding
        except KodeError:
            text, encoding = data.decode("latin-1"), fallback
        if find_secret(text) is not None:
            return _File()
        uri = location.uri
        document = Document(uri, text, path=location.path, encoding=encoding, status=status)
        return _File(location.display, is_utf8(data), encoding, document)


@dataclass(frozen=True)
class _Look:
    """What to search below a target. `rules` is an ignore file; `replaced` files are not read."""

    query: SearchQuery
    target: Location
    rules: str
    selected: Callable[[Path], bool]
    replaced: set[Path | None]
    result: SearchResult


@dataclass(frozen=True)
class _File:
    """A file with hits as we read it ourselves, not as ripgrep saw it."""

    name: str = ""
    utf8: bool = True
    encoding: str = "utf-8"
    document: Document | None = None

    def shows(self, hit: RipgrepHit) -> bool:
        """Return whether a hit may be shown: its lines are in the text that passed the guard.

        If a link replaced the file during the search, ripgrep found another file's lines.
        """
        if not self.name:
            return False
        text = hit.text
        text = text if isinstance(text, str) else text.decode(self.encoding or "utf-8", "replace")
        seen = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
        return self._lines[hit.line - 1 : hit.line - 1 + len(seen)] == seen

    @cached_property
    def _lines(self) -> list[str]:
        return self.document.text.split("\n") if self.document else []


def _without_secrets(buffers: Sequence[_Buffer]) -> list[_Buffer]:
    return [buffer for buffer in buffers if find_secret(buffer.view.text_lf) is None]


def _plain(lines: Sequence[str]) -> str | None:
    """Return the first line as it is shown; None if there is none."""
    return without_controls(lines[0].removesuffix("\n")) if lines else None


def _match(name: str, line: int, hit: RipgrepHit, encoding: str | None, note: str) -> SearchMatch:
    """Format a hit: its first line, without control characters, cut around the match."""
    if isinstance(hit.text, bytes):
        head = hit.text[: hit.column].decode(encoding or "utf-8", "replace")
        text = hit.text.decode(encoding or "utf-8", "replace")
    else:
        head = hit.text.encode("utf-8", "surrogatepass")[: hit.column].decode("utf-8", "replace")
        text = hit.text
    first = without_controls(re.split(r"[\r\n]", text, maxsplit=1)[0])
    return SearchMatch(
        tuple(name.split("/")), line, name, cut_line(first, MAX_LINE_CHARS, len(head)), note
    )
