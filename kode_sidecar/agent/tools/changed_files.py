"""Which files changed, by Git and by what is not saved yet, and their diffs.

A file that is open with unsaved text counts as it is in the editor.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from kode_sidecar.core.text.git_diff import numbered_hunks, patch_sections
from kode_sidecar.core.text.line_diff import diff_lines, split_lines, unified_hunks
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.git import Git, GitProgram
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.globs import is_dependency
from kode_sidecar.infrastructure.workspace.paths import Location, Root, display_name
from kode_sidecar.infrastructure.workspace.workspace import Workspace

ChangeScope = Literal["working_tree", "staged", "branch", "range"]
LeftOut = Literal["binary", "generated or vendored", "credentials", "outside the open folders"]

_NO_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_FLAGS = (
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-M", "--relative", "-z"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-color"),
)
_GENERATED = re.compile(
    r"(?i)(?:.*\.min\.(?:js|css)|.*\.(?:lock|map|snap)|.*_pb2(?:_grpc)?\.pyi?|.*\.pb\.(?:go|cc|h)"
    r"|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|.*\.g\.(?:dart|cs))"
)
_ARGUMENT_CHARS = 20_000
_MAX_UNTRACKED_BYTES = 1_000_000


class Wanted(Struct, frozen=True):
    """The changes that are asked for; `named` is the commit, range or base, `paths` limit them."""

    scope: ChangeScope
    named: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class DiffedFile:
    """One changed file. `path` is how the model knows it, `parts` lead there from its root.

    `hunks` is the diff where it is known already: of what Git does not know as it is now.
    """

    root: Root
    parts: tuple[str, ...]
    path: str
    added: int
    removed: int
    old_path: str = ""
    remark: str = ""
    hunks: str | None = None

    @property
    def name(self) -> str:
        """The path as Git knows it from the root."""
        return "/".join(self.parts)


@dataclass
class ChangedFiles:
    """All changed files, and why others that changed are not among them."""

    files: list[DiffedFile] = field(default_factory=list[DiffedFile])
    left_out: dict[LeftOut, list[str]] = field(default_factory=dict[LeftOut, list[str]])

    def leave_out(self, why: LeftOut, path: str) -> None:
        """Name a file that is not shown."""
        self.left_out.setdefault(why, []).append(path)


@dataclass(frozen=True)
class _Comparison:
    """What Git is asked to compare: its command, the trees, and whether the files count, too."""

    command: tuple[str, ...]
    trees: tuple[str, ...]
    with_files: bool

    @property
    def old(self) -> str:
        """The tree of the old texts."""
        return self.trees[0]


class ChangeReader:
    """Reads changes of the open folders. It holds no state."""

    def __init__(self, workspace: Workspace, git: GitProgram) -> None:
        self._workspace = workspace
        self._program = git

    async def list(self, wanted: Wanted) -> ChangedFiles:
        """Return what changed, sorted by path.

        Raises KodeError `ToolFailed`, `InvalidArguments`.
        """
        found = ChangedFiles()
        problems: list[KodeError] = []
        roots = self._workspace.roots
        for root in roots:
            try:
                await self._list_root(root, wanted, found)
            except KodeError as error:  # one of several folders may be under no version control
                problems.append(error)
        if problems and len(problems) == len(roots):
            raise problems[0]
        if not roots:
            raise KodeError("ToolFailed", "No folder is open, so there are no changes to read.")
        found.files.sort(key=lambda file: file.path)
        return found

    async def diffs(self, wanted: Wanted, files: Sequence[DiffedFile]) -> Sequence[str]:
        """Return the numbered hunks of each file, in their order."""
        known = {file.path: file.hunks for file in files if file.hunks is not None}
        for root in self._workspace.roots:
            mine = {file.name: file for file in files if file.root == root and file.hunks is None}
            if not mine:
                continue
            git = self._git(root)
            compared = await _comparison(git, wanted)
            olds = [file.old_path for file in mine.values() if file.old_path]
            for names in _batches([*mine, *olds]):
                patch = await git.ask(
                    *compared.command, "-U3", *_FLAGS, *compared.trees, "--", *names
                )
                for name, lines in patch_sections(patch):
                    if file := mine.get(name):
                        known[file.path] = numbered_hunks(lines, self._encoding(file, lines))
        return [known.get(file.path) or "" for file in files]

    def _git(self, root: Root) -> Git:
        return self._program.at(root.path, [one.path for one in self._workspace.roots])

    def _encoding(self, file: DiffedFile, lines: Sequence[bytes]) -> str:
        try:
            b"\n".join(lines).decode()
        except UnicodeDecodeError:
            try:
                return self._workspace.document(file.path, purpose="read").encoding
            except KodeError:
                return "utf-8"
        return "utf-8"

    async def _list_root(self, root: Root, wanted: Wanted, found: ChangedFiles) -> None:
        git = self._git(root)
        compared = await _comparison(git, wanted)
        output = await git.ask(*compared.command, "--numstat", *_FLAGS, *compared.trees)
        listed = [one for one in _counted(output) if one[0] != one[1] or one[3] != "0 0"]
        names = [new for new, *_ in listed]
        untracked: list[str] = []
        if compared.with_files:
            output = await git.ask("ls-files", "--others", "--exclude-standard", "-z")
            untracked = [_text(name) for name in output.split(b"\0") if name]
        generated = await _generated(git, [*names, *untracked])
        sift = _Sift(self._workspace, root, wanted.paths, generated, found)
        unsaved = await self._unsaved(git, compared, root) if compared.with_files else {}
        for new, old, is_binary, counts in listed:
            if new not in unsaved and (path := sift.path(new, is_binary=is_binary)):
                added, removed = (0, 0) if is_binary else map(int, counts.split())
                moved = old if old != new else ""
                found.files.append(DiffedFile(root, _parts(new), path, added, removed, moved))
        for new, (text, before, remark) in unsaved.items():
            if (path := sift.path(new)) and text != before:
                found.files.append(_as_open(root, new, path, before, text, remark))
        for new in untracked:
            if new not in unsaved and (path := sift.path(new)):
                text = await asyncio.to_thread(self._new_text, root, new, path)
                if text is None:
                    found.leave_out("binary", path)
                else:
                    found.files.append(_as_open(root, new, path, "", text, "new, not in Git yet"))

    def _new_text(self, root: Root, name: str, path: str) -> str | None:
        file = root.path.joinpath(*_parts(name))
        try:
            if file.is_symlink() or file.stat().st_size > _MAX_UNTRACKED_BYTES:
                return None
            return self._workspace.document(path, purpose="read").lf_text
        except (OSError, KodeError):
            return None

    async def _unsaved(
        self, git: Git, compared: _Comparison, root: Root
    ) -> dict[str, tuple[str, str, str]]:
        """Return new text, old text and remark of files whose text in the editor is not saved."""
        found: dict[str, tuple[str, str, str]] = {}
        for document, location in self._workspace.open_files():
            if location.root == root and not location.is_secret and _is_unsaved(document):
                name = "/".join(location.below)
                before = await git.find("rev-parse", "--verify", "-q", f"{compared.old}:./{name}")
                old = await git.ask("cat-file", "blob", before) if before else b""
                encoding = document.encoding if before else "utf-8"
                text = old.decode(encoding, "backslashreplace").removeprefix("\ufeff")
                remark = "with unsaved text" if before else "new, with unsaved text"
                found[name] = document.lf_text, _lf(text), remark
        return found


class _Sift:
    """Decides which changed files are shown, and names the others."""

    def __init__(
        self,
        workspace: Workspace,
        root: Root,
        paths: Sequence[str],
        generated: set[str],
        found: ChangedFiles,
    ) -> None:
        self._workspace, self._root = workspace, root
        self._wanted = [workspace.locate(path).real for path in paths]
        self._generated, self._found = generated, found

    def path(self, name: str, *, is_binary: bool = False) -> str:
        """Return how the model knows a file, empty if it is not shown."""
        shown = display_name(self._root, _parts(name), self._workspace.roots)
        try:
            location: Location | None = self._workspace.locate(str(self._root.path / name))
        except KodeError:
            location = None
        if self._wanted and (
            location is None or not any(location.real.is_relative_to(one) for one in self._wanted)
        ):
            return ""
        if location is None:
            self._found.leave_out("outside the open folders", shown)
        elif location.is_secret:
            self._found.leave_out("credentials", shown)
        elif is_binary:
            self._found.leave_out("binary", shown)
        elif is_dependency(name) or name in self._generated:
            self._found.leave_out("generated or vendored", shown)
        else:
            return shown
        return ""


async def _comparison(git: Git, wanted: Wanted) -> _Comparison:
    named = wanted.named.strip()
    if named.startswith("-") or any(char.isspace() or char == "\0" for char in named):
        raise KodeError("InvalidArguments", f"{named!r} is no name of a commit, range or branch.")
    match wanted.scope:
        case "working_tree" | "staged":
            old = await git.find("rev-parse", "--verify", "-q", "HEAD^{commit}") or _NO_TREE
            await git.ask("rev-parse", "--git-dir")  # says so where there is no repository
            staged = wanted.scope == "staged"
            command = ("diff-index", "--cached") if staged else ("diff-index",)
            return _Comparison(command, (old,), not staged)
        case "branch":
            base = await _base(git, named)
            return _Comparison(("diff-index",), (base,), with_files=True)
        case "range":
            trees = await _ends(git, named)
            return _Comparison(("diff-tree", "-r"), trees, with_files=False)


async def _base(git: Git, named: str) -> str:
    for name in (named,) if named else _BASES:
        if commit := await git.find("rev-parse", "--verify", "-q", f"{name}^{{commit}}"):
            if shared := await git.find("merge-base", commit, "HEAD"):
                return shared
            raise KodeError("ToolFailed", f"{name} and HEAD have no common history.")
    tried = named or ", ".join(_BASES)
    raise KodeError("ToolFailed", f"There is no base {tried}; name the branch to compare with.")


async def _ends(git: Git, named: str) -> tuple[str, str]:
    if not named:
        raise KodeError("InvalidArguments", "Name a commit or a range, such as HEAD or main..HEAD.")
    first, dots, last = named.partition("...") if "..." in named else named.partition("..")
    if not dots:
        new = await _commit(git, named)
        parent = await git.find("rev-parse", "--verify", "-q", f"{new}^1^{{commit}}")
        return parent or _NO_TREE, new
    old, new = await _commit(git, first or "HEAD"), await _commit(git, last or "HEAD")
    if dots == "...":
        old = await git.find("merge-base", old, new) or old
    return old, new


async def _commit(git: Git, name: str) -> str:
    found = await git.find("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
    if found is None:
        raise KodeError("ToolFailed", f"Git knows no commit {name}; is the history complete?")
    return found


async def _generated(git: Git, names: Sequence[str]) -> set[str]:
    """Return the names of generated files, by their name or by the project's `.gitattributes`."""
    found = {name for name in names if _GENERATED.fullmatch(name.rpartition("/")[2])}
    for some in _batches(names):
        asked = ("linguist-generated", "linguist-vendored")
        output = await git.ask("check-attr", "-z", *asked, "--", *some)
        cells = output.split(b"\0")
        for name, _, value in zip(cells[::3], cells[1::3], cells[2::3], strict=False):
            if value in (b"set", b"true"):
                found.add(_text(name))
    return found


def _counted(output: bytes) -> Sequence[tuple[str, str, bool, str]]:
    """Return new name, old name, whether it is binary, and counts of each entry of `--numstat`."""
    found: list[tuple[str, str, bool, str]] = []
    cells = iter(output.split(b"\0"))
    for cell in cells:
        if not cell:
            continue
        added, removed, name = cell.split(b"\t", 2)
        old = name or next(cells)
        new = name or next(cells)
        counts = f"{added.decode()} {removed.decode()}"
        found.append((_text(new), _text(old), added == b"-", counts))
    return found


def _as_open(root: Root, name: str, path: str, before: str, text: str, remark: str) -> DiffedFile:
    old, new = split_lines(before), split_lines(text)
    runs = diff_lines(old, new)
    added = sum(b1 - b0 for _, _, b0, b1 in runs)
    removed = sum(a1 - a0 for a0, a1, _, _ in runs)
    return DiffedFile(
        root, _parts(name), path, added, removed, remark=remark, hunks=text_hunks(before, text)
    )


def text_hunks(before: str, text: str) -> str:
    """Return the numbered hunks between two texts with LF line ends."""

    def shown(mark: str, line: str) -> str:
        return f"{mark}{line.removesuffix(chr(10))}\n"

    patch = unified_hunks(split_lines(before), split_lines(text), shown)
    return numbered_hunks(
        patch.encode("utf-8", "backslashreplace").removesuffix(b"\n").split(b"\n")
    )


def _is_unsaved(document: Document) -> bool:
    if not document.synced or document.path is None:
        return False
    try:
        data = document.path.read_bytes() if os.path.isfile(document.path) else b""
        saved = data.decode(document.encoding).removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError, LookupError):
        return True
    return _lf(saved) != document.lf_text


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parts(name: str) -> tuple[str, ...]:
    return tuple(name.split("/"))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _batches(names: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return the names in groups that fit on a command line of every system."""
    found: list[list[str]] = []
    room = 0
    for name in names:
        if len(name) + 3 > room:
            found.append([])
            room = _ARGUMENT_CHARS
        found[-1].append(name)
        room -= len(name) + 3
    return found
