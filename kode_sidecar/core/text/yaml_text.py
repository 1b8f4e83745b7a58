"""Reads users' YAML as values with their lines. Only this file imports PyYAML, which takes 10 ms.

Duplicate keys and texts that aliases expand too far are errors; only PyYAML's safe types are read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar, cast

import msgspec
import yaml

MAX_NODES = 100_000
"""How many values a text may hold with its aliases written out."""
_MAX_OPEN = 200
# PyYAML looks at every bracket that is open with every token: 16 kB of them took seconds.
_BRACKET = re.compile(r"[\[\]{}]")

T = TypeVar("T")


class YamlProblem(ValueError):
    """What is wrong with a text. `line` and `column` count from 1, 0 where they are not known.

    `path` is the field, `tools.shell`; empty for the text as a whole.
    """

    def __init__(self, problem: str, *, line: int = 0, column: int = 0, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column
        self.path = path


@dataclass(frozen=True)
class YamlDocument:
    """A value, and the line of each part of it by its path, `$.tools.shell` or `$.skills[0]`."""

    value: object
    lines: Mapping[str, int]

    def line_of(self, path: str) -> int:
        """Return the line of a part; of what holds it where the part itself is not there."""
        while path not in self.lines and path:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, 1)

    def convert(self, kind: type[T]) -> T:
        """The value as a msgspec type. Raises YamlProblem with line and path of what is wrong."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at ")
            path = place.strip("`") or "$"
            if "unknown field" in problem:
                path += "." + problem.split("`")[1]
            problem = problem[:1].lower() + problem[1:]
            line = self.line_of(path)
            raise YamlProblem(problem, line=line, path=path.lstrip("$.")) from None


class _Counted:
    """Counts the values while they are read, and stops at too many."""

    limit = MAX_NODES
    seen = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.seen += 1
        if self.seen > self.limit:
            raise YamlProblem(f"more than {self.limit:,} values")
        return super().compose_node(parent, index)  # type: ignore[misc]


class _TextLoader(_Counted, yaml.BaseLoader):
    pass


class _ValueLoader(_Counted, yaml.SafeLoader):
    pass


def read_yaml(text: str, *, only_text: bool = False, max_nodes: int = MAX_NODES) -> YamlDocument:
    """Return the one document of a text; None for an empty one.

    With `only_text` every scalar is the text as it was written: `no` stays `no`, `1.0` `1.0`.
    Raises YamlProblem.
    """
    if _most_open(text) > _MAX_OPEN:
        raise YamlProblem("nested too deeply")
    try:
        reader = _TextLoader(text) if only_text else _ValueLoader(text)
        reader.limit = max_nodes
        node = reader.get_single_node()
        lines = dict(_lines(node, "$", count(1), max_nodes)) if node is not None else {}
        value = None if node is None else cast(Any, reader).construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, error.problem or "broken"
        if mark is None:
            raise YamlProblem(problem) from None
        raise YamlProblem(problem, line=mark.line + 1, column=mark.column + 1) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlProblem("a character that YAML does not allow", line=line) from None
    except RecursionError:
        raise YamlProblem("nested too deeply") from None
    except ValueError as error:
        if isinstance(error, YamlProblem):
            raise
        raise YamlProblem("a number or a date that is none") from None
    return YamlDocument(value, lines)


def _most_open(text: str) -> int:
    """Return how many brackets are open at once at most."""
    most = now = 0
    for bracket in _BRACKET.findall(text):
        now = now + 1 if bracket in "[{" else max(0, now - 1)
        most = max(most, now)
    return most


def _lines(
    node: yaml.Node, path: str, numbers: Iterator[int], most: int
) -> Iterator[tuple[str, int]]:
    """Yield every path below a node with its line; a key that is there twice is a problem.

    `numbers` counts the values, those behind an alias each time.
    """
    line = node.start_mark.line + 1
    if next(numbers) > most:
        raise YamlProblem(f"more than {most:,} values, aliases counted", line=line)
    yield path, line
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(cast("list[yaml.Node]", node.value)):
            yield from _lines(item, f"{path}[{number}]", numbers, most)
    elif isinstance(node, yaml.MappingNode):
        known: set[str] = set()
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            name = str(key.value)
            if isinstance(key, yaml.ScalarNode) and name in known:
                mark = key.start_mark
                text = f"the key `{name}` is there twice"
                raise YamlProblem(text, line=mark.line + 1, column=mark.column + 1)
            known.add(name)
            yield from _lines(value, f"{path}.{name}", numbers, most)
            yield f"{path}.{name}", key.start_mark.line + 1


def write_yaml(value: object) -> str:
    """Return plain data as readable YAML; `read_yaml` returns the same value."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
