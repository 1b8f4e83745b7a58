"""YAML that people write: the value, and the line that each part of it stands on.

Strict where YAML is lenient by accident: a key given twice, a key that is no text and an alias are
refused. The only user of PyYAML, which takes 10 ms to import.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import msgspec
import yaml

from kode_sidecar.errors import KodeError

Path = tuple[str | int, ...]
"""Names and list positions that lead from the whole to a part, e.g. `("tools", "shell")`."""

T = TypeVar("T")

_DEEPEST = 50
_AT = re.compile(r"(?: - at `(?P<at>[^`]*)`)$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>.*?)`")
_PART = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class _Loader(yaml.SafeLoader):
    """SafeLoader without aliases: they can blow up, and no file of ours needs one."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType]
            loader: Any = self
            mark = loader.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem="aliases are not allowed here", problem_mark=mark)
        return super().compose_node(parent, index)


@dataclass(frozen=True)
class YamlText:
    """What a YAML text says. `name` is how its errors call it; lines count from 1."""

    name: str
    value: Any
    lines: Mapping[Path, int]

    def as_struct(self, kind: type[T]) -> T:
        """The value as a struct. Raises KodeError `ConfigInvalid` naming file, line and field."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            self._refuse(str(error))

    def fail(self, path: Path, problem: str) -> NoReturn:
        """Raise KodeError `ConfigInvalid` about one part."""
        shown = _spelled(path)
        line = next(
            self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines
        )
        field = f"`{shown}`: " if shown else ""
        raise KodeError(
            "ConfigInvalid",
            f"{self.name}, line {line}: {field}{problem}",
            details={"file": self.name, "line": line, "field": shown},
        )

    def _refuse(self, complaint: str) -> NoReturn:
        at = _AT.search(complaint)
        problem = complaint[: at.start()] if at else complaint
        path: Path = tuple(
            name or int(position) for name, position in _PART.findall(at["at"] if at else "")
        )
        unknown = _UNKNOWN.search(problem)
        if unknown:
            self.fail((*path, unknown["name"]), "there is no such field")
        self.fail(path, problem[:1].lower() + problem[1:])


def parse_yaml(text: str, name: str, *, first_line: int = 1) -> YamlText:
    """The one document of a text; an empty one is an empty mapping.

    `first_line` is the line of the file that the text begins on.
    Raises KodeError `ConfigInvalid` naming line and column.
    """
    loader: Any = None
    try:
        loader = _Loader(text)
        node: yaml.Node | None = loader.get_single_node()
        lines: dict[Path, int] = {(): first_line}
        if node is None:
            return YamlText(name, {}, lines)
        _read_lines(node, (), lines, first_line)
        return YamlText(name, loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f", line {mark.line + first_line}, column {mark.column + 1}"
        problem = error.problem or "broken"
        raise KodeError("ConfigInvalid", f"{name}{where}: not valid YAML: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise KodeError("ConfigInvalid", f"{name} is not valid YAML") from None
    finally:
        if loader is not None:
            loader.dispose()


def _read_lines(node: yaml.Node, path: Path, lines: dict[Path, int], first_line: int) -> None:
    """Note where each part stands; refuse keys that are given twice or are no text."""
    if len(path) > _DEEPEST:
        raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=node.start_mark)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                problem = "a key must be text; put quotes around it"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            name = str(key.value)
            if name in seen:
                problem = f"`{name}` is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
            lines[(*path, name)] = key.start_mark.line + first_line
            _read_lines(value, (*path, name), lines, first_line)
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            lines[(*path, position)] = item.start_mark.line + first_line
            _read_lines(item, (*path, position), lines, first_line)


def _spelled(path: Path) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
