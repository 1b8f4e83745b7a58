"""Find the available skills by reading only the head of each `SKILL.md` (B8).

A skill is a folder with a `SKILL.md`, in a folder of skills: the user's own, one that a
configuration names, or one in a project that the user trusts. The caller chooses which
of them are searched; nothing else is touched. Links that lead out of a folder are refused.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.skill_front_matter import (
    MAX_FRONT_MATTER_BYTES,
    FrontMatter,
    read_front_matter,
)
from kode_sidecar.core.text.shown_text import is_text
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import FileStatus, read_beginning
from kode_sidecar.infrastructure.workspace.paths import Location, locate, make_roots

SKILL_FILE = "SKILL.md"
PROJECT_FOLDER = ".kode/skills"
SHARED_FOLDER = ".agents/skills"
"""The folder of skills that many tools read, in a project and in the user's own folder."""
MAX_SKILLS = 200
"""The most folders of one source that are searched."""
MAX_INDEX_BYTES = 16_000

SourceKind = Literal["user", "config", "project"]


@dataclass(frozen=True)
class SkillSource:
    """A folder of skills: `below` the folder `root`, which no link may leave.

    A folder that a configuration names must exist. It may itself be a skill's folder.
    """

    kind: SourceKind
    root: Path
    below: str = "."


def user_skills(storage_root: Path) -> SkillSource:
    """Return the user's own skills in the state folder, which may be a link."""
    return SkillSource("user", storage_root / "skills")


@dataclass(frozen=True)
class Skill:
    """The metadata of a skill before it is loaded. `file` names its `SKILL.md` in messages.

    `folder` has all links resolved; nothing outside of it belongs to the skill.
    """

    about: FrontMatter
    kind: SourceKind
    file: str
    folder: Path

    @property
    def id(self) -> str:
        """The name that models and configurations use."""
        return self.about.id


@dataclass(frozen=True)
class SkillProblem:
    """A skill that cannot be used. `error` is `SkillInvalid`, or the error of reading its file."""

    kind: SourceKind
    file: str
    error: KodeError

    @property
    def reported(self) -> str:
        """The problem, with the name of the file."""
        message = self.error.message
        return message if self.file in message else f"{self.file}: {message}"


@dataclass(frozen=True)
class SkillCatalog:
    """Skills sorted by id, and the problems of others in the order of their sources."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[SkillProblem, ...] = ()

    def get(self, skill_id: str) -> Skill:
        """Return a skill. Raises KodeError `SkillNotFound`, or the problem of its folder."""
        for skill in self.skills:
            if skill.id == skill_id:
                return skill
        for problem in self.problems:
            if Path(problem.file).parent.name == skill_id:
                raise problem.error
        ids = [skill.id for skill in self.skills]
        near = get_close_matches(skill_id, ids, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {_some(ids)}."
        if self.problems and not near:
            hint += f" Not usable: {self.problems[0].reported}"
        raise KodeError("SkillNotFound", f"There is no skill {skill_id!r}; {hint}")

    @property
    def for_models(self) -> tuple[Skill, ...]:
        """The skills that a model may load by itself; the others are only the user's to call."""
        return tuple(skill for skill in self.skills if skill.about.for_models)

    def only(self, ids: Collection[str]) -> "SkillCatalog":
        """Return a catalog of only these skills. Raises as `get` does."""
        for skill_id in ids:
            self.get(skill_id)
        return SkillCatalog(tuple(skill for skill in self.skills if skill.id in ids))


class SkillLibrary:
    """Discovers skills on demand; an unchanged `SKILL.md` is not read again.

    `sources` are searched in order: of two skills with one id the first one counts and the other
    is a problem, so that a project can never replace the user's own.
    """

    def __init__(self, sources: Callable[[], Sequence[SkillSource]]) -> None:
        self._sources = sources
        self._known: dict[Path, tuple[FileStatus, str, Skill | KodeError]] = {}
        self.newest = SkillCatalog()
        """The result of the last `catalog` call."""

    def catalog(self) -> SkillCatalog:
        """Return the skills of now. Never fails: unusable skills are among the problems."""
        found: dict[str, Skill] = {}
        problems: list[SkillProblem] = []
        for source in self._sources():
            for one in self._look_into(source):
                if isinstance(one, SkillProblem):
                    problems.append(one)
                elif one.id in found and one.folder != found[one.id].folder:
                    problems.append(_duplicate(one, found[one.id]))
                else:
                    found.setdefault(one.id, one)
        skills = tuple([found[skill_id] for skill_id in sorted(found)])
        self.newest = SkillCatalog(skills, tuple(problems))
        return self.newest

    def _look_into(self, source: SkillSource) -> Iterator[Skill | SkillProblem]:
        # Most projects have none, and every turn checks: one system call must be enough.
        if source.kind != "config" and not os.path.lexists(os.path.join(source.root, source.below)):
            return
        roots = make_roots([source.root])
        label = source.root.name

        def problem(below: str, error: KodeError) -> SkillProblem:
            # A name that is not valid text could be neither sent nor shown.
            shown = f"{label}/{below}".encode("utf-8", "replace").decode()
            return SkillProblem(source.kind, shown, error)

        try:
            names = _folders(locate(source.below, roots, Path.exists))
        except KodeError as error:
            if error.code != "NotFound" or source.kind == "config":
                yield problem(source.below, error)
            return
        for name in names[:MAX_SKILLS]:
            below = os.path.normpath(f"{source.below}/{name}/{SKILL_FILE}").replace("\\", "/")
            try:
                location = locate(below, roots, Path.exists)
                if not is_text(name):
                    yield problem(below, KodeError("SkillInvalid", "Its name is not UTF-8."))
                elif os.path.lexists(location.path):
                    yield self._skill(source.kind, f"{label}/{below}", location)
            except KodeError as error:
                yield problem(below, _own_words(error))
            except OSError as error:
                yield problem(below, KodeError("Denied", f"It cannot be read: {error.strerror}."))
        if len(names) > MAX_SKILLS:
            text = (
                f"{label} holds {len(names)} folders; only the first {MAX_SKILLS} are looked into."
            )
            yield problem(source.below, KodeError("TooLarge", text))

    def _skill(self, kind: SourceKind, file: str, location: Location) -> Skill:
        known = self._known.get(location.real)
        if known is None or known[1] != file or not _holds(known[0], location.real):
            data, status = read_beginning(location, MAX_FRONT_MATTER_BYTES)
            found: Skill | KodeError
            try:
                found = Skill(read_front_matter(data, file), kind, file, location.real.parent)
            except KodeError as error:  # cached as well: it is reported every turn
                found = error
            known = self._known[location.real] = (status, file, found)
        if isinstance(known[2], KodeError):
            raise known[2]
        return known[2]


def skill_index(prompts: PromptFiles, skills: Sequence[Skill]) -> str:
    """Return the list of skills for a prompt; empty without any.

    Equal skills give equal bytes, at most `MAX_INDEX_BYTES`; the rest is only counted. Raises
    KodeError `ConfigInvalid`.
    """
    if not skills:
        return ""
    lines: list[str] = []
    room = MAX_INDEX_BYTES
    for skill in skills:
        line = _index_line(skill.about)
        room -= len(line.encode()) + 1
        if room < 0:
            lines.append(f"- [{len(skills) - len(lines)} more are not listed]")
            break
        lines.append(line)
    return prompts.read("skill_index", {"skills": "\n".join(lines)})


def _index_line(about: FrontMatter) -> str:
    name = f" ({about.name})" if about.name != about.id else ""
    tags = f" [{', '.join(about.tags)}]" if about.tags else ""
    return f"- `{about.id}`{name}: {about.description}{tags}"


def _folders(place: Location) -> list[str]:
    """Return the names in a folder of skills; `.` if it is a skill itself. Raises KodeError."""
    try:
        names = sorted(os.listdir(place.real))
    except (FileNotFoundError, NotADirectoryError):
        text = f"There is no folder of skills {place.root.name}/{place.display}."
        raise KodeError("NotFound", text) from None
    except OSError as error:
        text = f"The folder of skills {place.display} cannot be read: {error.strerror}."
        raise KodeError("Denied", text) from None
    if SKILL_FILE in names:
        return ["."]
    return [n for n in names if not n.startswith(".") and os.path.isdir(place.real / n)]


def _holds(status: FileStatus, path: Path) -> bool:
    try:
        return status.still_holds(path)
    except OSError:
        return False


def _own_words(error: KodeError) -> KodeError:
    """Return a refusal of the guard, reworded for skills: its text is about open folders."""
    if error.code != "PathOutsideRoots" or "link" not in error.message:
        return error
    text = "It is a link that leads out of its folder of skills: name the other folder instead."
    return KodeError("PathOutsideRoots", text)


def _duplicate(skill: Skill, first: Skill) -> SkillProblem:
    text = f"{skill.file}: the id `{skill.id}` is taken by {first.file}: choose another one."
    details: dict[str, object] = {"file": skill.file, "field": "id"}
    return SkillProblem(skill.kind, skill.file, KodeError("SkillInvalid", text, details=details))


def _some(ids: Sequence[str]) -> str:
    return (", ".join(ids[:20]) + (", …" if len(ids) > 20 else "")) or "none"
