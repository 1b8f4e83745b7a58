"""A case as a model writes it in each of six dialects, and what is right there.

A quote says where its lines are; a range says it by numbers and the revision that was read; a whole
text says nothing about the lines that others wrote in the meantime.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from benchmarks.edit_application.damages import Case, Lines

DIALECTS = ("search/replace", "range", "whole file", "V4A", "unified diff", "write")
QUOTING = ("search/replace", "V4A", "unified diff")
NEW_FILE = "new"

_ABOUT_QUOTES = {
    "indentation",
    "blanks",
    "quotes",
    "look-alikes",
    "wrong numbers",
    "doubled lines",
}
_ABOUT_NEW_FILES = {"none", "elisions", "cut ends"}


@dataclass(frozen=True)
class Call:
    """A call of a tool, in JSON; `patch` is the text of a patch in it."""

    tool: str
    arguments: str
    patch: str = ""


def applies(dialect: str, damage: str) -> bool:
    """Return whether a dialect can be damaged like that."""
    if dialect == "write":
        return damage in _ABOUT_NEW_FILES
    return dialect in QUOTING or damage not in _ABOUT_QUOTES


def meaning(dialect: str, damage: str, case: Case) -> Lines | None:
    """Return the one right text; None if the edit must be refused."""
    edit = case.edit
    if damage in ("stale base", "moved lines"):
        # A range follows its lines, but not to another place; a whole text would undo the others.
        follows = dialect in QUOTING or (dialect == "range" and damage == "stale base")
        return case.expected if follows else None
    if damage == "repeated blocks" and dialect not in ("search/replace", "V4A"):
        return (*case.now[: edit.start], *case.new, *case.now[edit.end :])  # it says which one
    return case.expected


def written(dialect: str, case: Case, path: str, base_rev: str) -> Call:
    """Return the call; one that is cut ends in the middle of the text to put there."""
    write: Callable[[Case, str, str], tuple[str, dict[str, Any]]] = _WRITERS[dialect]
    tool, arguments = write(case, path, base_rev)
    patch = arguments.get("patch", "")
    text = json.dumps(arguments)
    # A cut patch stands whole in its call: that the model stopped too early shows nowhere else.
    return Call(tool, text[: len(text) * 2 // 3] if case.cut and not patch else text, patch)


def hunk(case: Case) -> list[str]:
    """Return the lines of a patch's one change."""
    old, new = list(case.old), list(case.new)
    lines = [*(f" {line}" for line in case.head), *(f"-{line}" for line in old)]
    if case.cut:
        if not new:
            return lines[: len(case.head) + (len(old) + 1) // 2]
        return [*lines, *(f"+{line}" for line in new[: len(new) // 2])]
    return [*lines, *(f"+{line}" for line in new), *(f" {line}" for line in case.tail)]


def _search_replace(case: Case, path: str, _rev: str) -> tuple[str, dict[str, Any]]:
    old, new = ([*case.head, *part, *case.tail] for part in (case.old, case.new))
    one: dict[str, Any] = {"old": "\n".join(old), "new": "\n".join(new)}
    if case.at != case.edit.first + 1:
        one["near_line"] = case.at
    return "propose_edit", {"path": path, "edits": [one]}


def _range(case: Case, path: str, rev: str) -> tuple[str, dict[str, Any]]:
    edit = case.edit
    lines = [edit.first + 1, edit.last]
    new = whole((*edit.head, *case.new, *edit.tail))
    return "propose_edit", {"path": path, "range": lines, "base_rev": rev, "new_content": new}


def _whole_file(case: Case, path: str, _rev: str) -> tuple[str, dict[str, Any]]:
    lines = (*case.read[: case.edit.start], *case.new, *case.read[case.edit.end :])
    return "propose_file", {"action": "overwrite", "path": path, "content": whole(lines)}


def _write(case: Case, path: str, _rev: str) -> tuple[str, dict[str, Any]]:
    _, arguments = _whole_file(case, path, "")
    new = str(PurePosixPath(path).with_stem(NEW_FILE))
    return "propose_file", {**arguments, "action": "create", "path": new}


def _v4a(case: Case, path: str, _rev: str) -> tuple[str, dict[str, Any]]:
    end = [] if case.cut else ["*** End Patch"]
    lines = ["*** Begin Patch", f"*** Update File: {path}", "@@", *hunk(case), *end]
    return "propose_edit", {"patch": whole(tuple(lines))}


def _unified(case: Case, path: str, _rev: str) -> tuple[str, dict[str, Any]]:
    around = len(case.head) + len(case.tail)
    counts = around + len(case.old), around + len(case.new)
    ranges = f"@@ -{case.at},{counts[0]} +{case.at},{counts[1]} @@"
    return "propose_edit", {"patch": whole((f"--- a/{path}", f"+++ b/{path}", ranges, *hunk(case)))}


def whole(lines: Lines) -> str:
    """Return the text of lines that all end."""
    return "".join(f"{line}\n" for line in lines)


_WRITERS: dict[str, Callable[[Case, str, str], tuple[str, dict[str, Any]]]] = {
    "search/replace": _search_replace,
    "range": _range,
    "whole file": _whole_file,
    "V4A": _v4a,
    "unified diff": _unified,
    "write": _write,
}
