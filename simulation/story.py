"""A story: how a world begins, and what happens in it, step by step. It is also its text.

A seed makes a story, a story makes a run, and a run that fails is a text file that anybody can
read, shorten and play again. The numbers of a step choose among what there is at that moment, so
that every part of a story is a story.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

HEAD = "simulation 1"


class Violation(AssertionError):
    """A promise that was broken. `rule` names it: a smaller story must break the same one."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


@dataclass(frozen=True)
class Step:
    """One thing that happens: a verb, and what it is done to."""

    verb: str
    args: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.verb, *map(str, self.args)))

    def number(self, at: int) -> int:
        """Return the number at that place."""
        found = self.args[at] if at < len(self.args) else 0
        return found if isinstance(found, int) else 0

    def word(self, at: int) -> str:
        """Return the word at that place."""
        return str(self.args[at]) if at < len(self.args) else ""


@dataclass(frozen=True)
class Story:
    """`world` is who plays it, `settings` how it begins, `lines` the text of the file in it."""

    world: str
    settings: Mapping[str, str]
    steps: Sequence[Step]
    lines: Sequence[str] = ()
    notes: Sequence[str] = field(default=(), compare=False)

    def __str__(self) -> str:
        head = [f"# {note}" for note in self.notes]
        head += [
            f"{HEAD} {self.world}",
            *(f"{key}: {value}" for key, value in self.settings.items()),
        ]
        text = [f"| {line}" for line in self.lines]
        return "\n".join([*head, *text, "", *map(str, self.steps), ""])

    def with_notes(self, *notes: str) -> "Story":
        """Return the same story with other notes above it."""
        return replace(self, notes=notes)


def parse_story(text: str) -> Story:
    """Read a story. Raises ValueError that names the line."""
    notes: list[str] = []
    settings: dict[str, str] = {}
    lines: list[str] = []
    steps: list[Step] = []
    world = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            notes.append(line[1:].strip())
        elif not world:
            if not line.startswith(f"{HEAD} "):
                raise ValueError(f"line {number}: a story begins with `{HEAD} edits` or `… whole`")
            world = line.removeprefix(HEAD).strip()
        elif line.startswith("|"):
            lines.append(line[2:])
        elif ": " in line:
            key, value = line.split(": ", 1)
            settings[key] = value
        elif line.strip():
            steps.append(_step(line))
    return Story(world, settings, tuple(steps), tuple(lines), tuple(notes))


def read_story(path: Path) -> Story:
    """Read a story file. Raises ValueError, OSError."""
    return parse_story(path.read_text(encoding="utf-8"))


def _step(line: str) -> Step:
    verb, *args = line.split()
    return Step(verb, tuple(int(arg) if arg.lstrip("-").isdigit() else arg for arg in args))
