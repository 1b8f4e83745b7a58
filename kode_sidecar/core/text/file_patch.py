"""What a patch does to files, whatever its grammar. Values only; pure."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class PatchChunk:
    """One change of a file. `context` are lines somewhere above it, outermost first.

    `at_end`: the old lines are the last of the file. `line`, from 1, is its stated beginning and
    only decides among several places that fit. `ends_file`: it says that the last line, which had
    no line end, gets one. `cut`: it ends with a change and has fewer lines than it says,
    so its end may be missing; where the file ends there, too, "perhaps" means that it is not.
    """

    context: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    at_end: bool = False
    line: int | None = None
    ends_file: bool = False
    cut: Literal["no", "perhaps", "yes"] = "no"


@dataclass(frozen=True)
class FileAdd:
    """A new file; with `replaces`, in place of one that the patch deletes first."""

    path: str
    text: str
    replaces: bool = False


@dataclass(frozen=True)
class FileDelete:
    """A file to delete."""

    path: str


@dataclass(frozen=True)
class FileUpdate:
    """Changes of one file, in order, and where it moves."""

    path: str
    chunks: tuple[PatchChunk, ...]
    move_to: str | None = None


FilePatch = FileAdd | FileDelete | FileUpdate


@dataclass(frozen=True)
class PatchReadings:
    """What a patch can mean, the likelier reading first.

    `sure`: the first one that fits the files is meant. Else a second one that fits, too, makes the
    patch ambiguous. Names of a unified diff may have git's prefixes or none, and a line that was
    removed may look like the header of a file.
    """

    readings: tuple[tuple[FilePatch, ...], ...] = field(default=())
    sure: bool = True


class PatchError(Exception):
    """What is wrong with a patch, for the model."""
