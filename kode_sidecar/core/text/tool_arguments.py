"""Reads arguments that a model wrote under the names of other tools, or of other agents. Pure."""

import re
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

_PATHS = ("path", "file_path", "filepath", "file", "filename", "file_name", "target_file")
_FOLDERS = ("directory", "dir", "folder", "directory_path", "dir_path", "root")
_GLOBS = ("glob", "include", "file_pattern", "glob_pattern", "file_glob", "includes")
NAMES: Mapping[str, tuple[str, ...]] = {
    "path": (*_PATHS, *_FOLDERS, "absolute_path", "relative_path", "from", "source"),
    "directory": (*_FOLDERS, *_PATHS),
    "query": ("pattern", "search", "text", "search_term", "keyword", "q", "needle", "regexp"),
    "pattern": (*_GLOBS, "query", "name"),
    "glob": (*_GLOBS, "pattern"),
    "start": ("offset", "start_line", "line_start", "from_line", "first_line", "line"),
    "end": ("end_line", "line_end", "to_line", "last_line"),
    "max_results": ("limit", "head_limit", "max_matches", "max_count", "count", "num_results"),
    "regex": ("is_regex", "use_regex", "is_regexp"),
    "edits": ("edit", "replacements", "changes"),
    "old": ("old_string", "old_str", "old_text", "search", "original", "find"),
    "new": ("new_string", "new_str", "new_text", "replace", "replacement", "updated"),
    "near_line": ("line", "start_line", "line_number"),
    "content": ("text", "contents", "file_text", "new_content"),
    "to": ("target", "new_path", "destination", "move_to"),
    "action": ("operation", "mode", "command"),
}
"""For each argument the names that others give it. A tool's own arguments are never renamed."""
_INVERTED = {"case_sensitive": ("case_insensitive", "ignore_case", "i")}
_PLACE = re.compile(r"(.+?)(?:(?::|#L)(\d+)(?:-L?(\d+)|:\d+)?)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def fitted(
    arguments: Mapping[str, Any], params: type[Struct]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return arguments under the names of `params`, and what was done to them, for the model.

    What `params` has no place for is left out, and so is a null that only stands for nothing.
    """
    known = {field.name for field in fields(params)}
    notes: list[str] = []
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        plain = (
            name if name in known else _CAMEL.sub("_", name).lower().strip("-").replace("-", "_")
        )
        given[plain if plain not in arguments else name] = value
    for right in sorted(known - given.keys(), key=_rank):
        for other in NAMES.get(right, ()):
            if other in given and other not in known:
                given[right] = given.pop(other)
                notes.append(f"`{other}` was read as `{right}`")
                break
    _compute(given, known, notes)
    for name in [name for name in given if name not in known]:
        del given[name]
        notes.append(f"`{name}` is none of its arguments and was ignored")
    for name in [name for name in given if given[name] is None and not _takes_null(params, name)]:
        del given[name]
    return given, tuple(notes)


def usual_path(path: str) -> tuple[str, int | None, int | None] | None:
    """Return the path of `path:line`, `path:first-last`, `path:line:column` or `path#L1-L2`.

    With the lines. Blanks before a path are taken off, too. None if there is nothing to take off.
    """
    found = _PLACE.fullmatch(path.lstrip())
    if found is None or found[1] == path:
        return None
    first, last = (int(found[at]) if found[at] else None for at in (2, 3))
    return found[1], first, last


def arguments_of(params: type[Struct]) -> str:
    """Return the names of a tool's arguments, for the model."""
    return ", ".join(f"`{field.name}`" for field in fields(params)) or "none"


def _rank(name: str) -> int:
    """Return the turn of an argument: `query` takes a `pattern` before `glob` does."""
    names = list(NAMES)
    return names.index(name) if name in names else len(names)


def _compute(given: dict[str, Any], known: set[str], notes: list[str]) -> None:
    """Replace arguments that say the same in another way: a count of lines, the opposite."""
    for right, others in _INVERTED.items():
        for other in others:
            if right in known and right not in given and isinstance(given.get(other), bool):
                given[right] = not given.pop(other)
                notes.append(f"`{other}` was read as the opposite of `{right}`")
    start, count = given.get("start"), given.get("limit")
    if {"start", "end"} <= known and "limit" not in known and "end" not in given:
        if start == 0:
            given["start"] = start = 1
        if isinstance(count, int) and count > 0 and isinstance(start, int | None):
            given["end"] = (start or 1) + count - 1
            del given["limit"]
            notes.append("`limit` was read as a number of lines")


@cache
def _nullable(params: type[Struct]) -> frozenset[str]:
    hints = get_type_hints(params)
    return frozenset(name for name, hint in hints.items() if types.NoneType in get_args(hint))


def _takes_null(params: type[Struct], name: str) -> bool:
    return name in _nullable(params)
