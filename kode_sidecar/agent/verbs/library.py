"""Find the verbs: built-in ones, the user's own, a trusted project's, and those of other tools.

Only files in the folders that the caller names are read, each within a limit, and no link that
leads out of them is followed. A file that cannot be used is a problem with a reason, never a
failure.
"""

import os
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.verbs.verb_file import (
    MAX_VERB_BYTES,
    Verb,
    VerbPlace,
    is_verb_name,
    read_verb,
)
from kode_sidecar.core.protocol.process import VerbSource
from kode_sidecar.core.text.shown_text import with_escapes
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import FileStatus, read_with_status
from kode_sidecar.infrastructure.workspace.paths import Location, Root, locate, make_roots

BUILT_IN = "verbs"
"""The folder of the built-in verbs among the prompts of each language."""
MAX_VERBS = 200
"""The most files of one folder that are read."""
_PROMPT_FILE = ".prompt.md"
_MAX_DEPTH = 3
_PROJECT = "project:"


@dataclass(frozen=True)
class VerbFolder:
    """A folder of verbs: `below` the folder `root`, which no link may leave.

    `foreign`: the folder of another tool. `suffix` is the end of the names of its files.
    """

    source: VerbSource
    root: Path
    below: str = "commands"
    foreign: bool = False
    suffix: str = ".md"


@dataclass(frozen=True)
class VerbProblem:
    """A file that is no usable verb, and why."""

    name: str
    source: VerbSource
    file: str
    error: KodeError

    @property
    def message(self) -> str:
        """The reason, with the name of the file."""
        text = self.error.message
        return text if self.file in text else f"{self.file}: {text}"


@dataclass(frozen=True)
class VerbTable:
    """The verbs by name, and the files that cannot be used."""

    verbs: tuple[Verb, ...] = ()
    problems: tuple[VerbProblem, ...] = ()

    def get(self, name: str) -> Verb | None:
        """Return a verb; None if nothing has this name. Raises KodeError if its file is unusable.

        Names are compared composed (NFC), as editors and file systems differ in that.
        """
        wanted = unicodedata.normalize("NFC", name)
        for verb in self.verbs:
            if verb.name == wanted:
                return verb
        for problem in self.problems:
            if problem.name == wanted:
                raise KodeError("ConfigInvalid", problem.message)
        return None


class _Known(NamedTuple):
    status: FileStatus
    place: VerbPlace
    found: Verb | KodeError


class VerbLibrary:
    """Reads the verbs on demand; an unchanged file is not read again.

    `folders` are searched in order, and of two files with one name the first one counts: the
    user's own replaces a built-in verb, a project's never does. It is offered as `project:name`.
    """

    def __init__(self, prompts: PromptFiles, folders: Callable[[], Sequence[VerbFolder]]) -> None:
        self._prompts = prompts
        self._folders = folders
        self._known: dict[Path, _Known] = {}

    def table(self) -> VerbTable:
        """Return the verbs of now; blocks. Raises KodeError only for built-in prompts."""
        folders = self._folders()
        own = [one for folder in folders if folder.source == "user" for one in self._read(folder)]
        project = [
            one for folder in folders if folder.source != "user" for one in self._read(folder)
        ]
        verbs: dict[str, Verb] = {}
        problems: list[VerbProblem] = []
        for one in (*own, *self._built_in(), *project):
            if isinstance(one, VerbProblem):
                problems.append(one)
                continue
            first = verbs.setdefault(one.name, one)
            if first is not one and one.place.source != "builtin":
                problems.append(_duplicate(one, first))
                if one.place.source == "project":
                    other = replace(one, place=replace(one.place, name=f"{_PROJECT}{one.name}"))
                    verbs.setdefault(other.name, other)
        return VerbTable(tuple([verbs[name] for name in sorted(verbs)]), tuple(problems))

    def _built_in(self) -> Iterator[Verb]:
        for name in self._prompts.names(BUILT_IN):
            place = VerbPlace(name, "builtin", f"{BUILT_IN}/{name}.md")
            yield read_verb(self._prompts.read(f"{BUILT_IN}/{name}").encode(), place)

    def _read(self, folder: VerbFolder) -> Iterator[Verb | VerbProblem]:
        # Most folders do not exist: one system call must be enough.
        if not os.path.isdir(os.path.join(folder.root, folder.below)):
            return
        roots = make_roots([folder.root])
        label = f"{folder.root.name}/{folder.below}"
        try:
            names = list(
                islice(
                    _files(locate(folder.below, roots, Path.exists), folder.suffix), MAX_VERBS + 1
                )
            )
        except KodeError as error:
            yield _problem(folder, "", label, error)
            return
        for name in names[:MAX_VERBS]:
            yield self._verb(folder, roots, name)
        if len(names) > MAX_VERBS:
            text = f"Only the first {MAX_VERBS} files of this folder are read."
            yield _problem(folder, "", label, KodeError("TooLarge", text))

    def _verb(self, folder: VerbFolder, roots: Sequence[Root], path: str) -> Verb | VerbProblem:
        below = f"{folder.below}/{path}"
        shown = with_escapes(f"{folder.root.name}/{below}")
        name = _name(path, folder.suffix)
        if not is_verb_name(name):
            text = "Its name is no verb: use letters, digits, `-`, `_` and `.`"
            return _problem(folder, "", shown, KodeError("SkillInvalid", text))
        try:
            location = locate(below, roots, Path.exists)
            place = VerbPlace(name, folder.source, shown, location.real, folder.foreign)
            return self._fresh(location, place)
        except (KodeError, OSError) as error:
            return _problem(folder, name, shown, error)

    def _fresh(self, location: Location, place: VerbPlace) -> Verb:
        known = self._known.get(location.real)
        if known is None or known.place != place or not _holds(known.status, location.real):
            data, status = read_with_status(location, MAX_VERB_BYTES)
            found: Verb | KodeError
            try:
                found = read_verb(data, place)
            except KodeError as error:
                found = error
            known = self._known[location.real] = _Known(status, place, found)
        if isinstance(known.found, KodeError):
            raise known.found
        return known.found


def _files(folder: Location, suffix: str) -> Iterator[str]:
    """Yield the files of a folder in order, by their paths in it; enters no link to a folder."""
    base = str(folder.real)
    for parent, folders, names in os.walk(base):
        below = os.path.relpath(parent, base).replace(os.sep, "/")
        depth = 0 if below == "." else below.count("/") + 1
        folders[:] = sorted(folders) if depth < _MAX_DEPTH else ()
        for name in sorted(names):
            if name.endswith(suffix):
                yield f"{below}/{name}" if depth else name


def _name(path: str, suffix: str) -> str:
    """Return the name of a verb by its file: `git/tag.md` is `git:tag`."""
    ending = _PROMPT_FILE if path.endswith(_PROMPT_FILE) else suffix
    return unicodedata.normalize("NFC", path.removesuffix(ending).replace("/", ":"))


def _holds(status: FileStatus, path: Path) -> bool:
    try:
        return status.still_holds(path)
    except OSError:
        return False


def _problem(folder: VerbFolder, name: str, file: str, error: KodeError | OSError) -> VerbProblem:
    if isinstance(error, OSError):
        error = KodeError("Denied", f"{file} cannot be read: {error.strerror}.")
    return VerbProblem(name, folder.source, file, error)


def _duplicate(verb: Verb, first: Verb) -> VerbProblem:
    way = f"use `/{_PROJECT}{verb.name}`" if verb.place.source == "project" else "rename it"
    text = f"{verb.place.file}: the name `{verb.name}` is taken by {first.place.file}: {way}."
    error = KodeError("SkillInvalid", text)
    return VerbProblem("", verb.place.source, verb.place.file, error)
