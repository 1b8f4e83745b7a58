"""Reads the user's two files: `config.yaml`, and `.env` in a documented subset of its format.

The subset is what shells and dotenv share:

    # a comment, also after a bare value and a space
    KIMI_API_KEY=sk-...          bare: trimmed, otherwise unchanged
    export KODE_MODEL="kimi k2"  double quotes: \\n \\t \\" \\\\ are escapes
    KODE_LOG_DIR='C:\\logs'       single quotes: literal

One assignment a line; `$NAME` is not expanded; the last assignment of a name wins.
A byte order mark and CRLF are fine.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError

_ASSIGNMENT = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_SINGLE = re.compile(r"'([^']*)'[ \t]*(?:#.*)?")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?')
_ESCAPE = re.compile(r'\\([nt"\\])')
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def parse_env(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the assignments of a `.env` and its problems; problems never contain values."""
    values: dict[str, str] = {}
    problems: list[str] = []
    for number, raw_line in enumerate(re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), 1):
        line = raw_line.strip(" \t")
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        value = None if assignment is None else _value(assignment[2])
        if assignment is None:
            problems.append(f"line {number}: expected NAME=value")
        elif value is None:
            problems.append(
                f"line {number}: {assignment[1]} has an opening quote but no closing one"
            )
        else:
            values[assignment[1]] = value
    return values, problems


def _value(text: str) -> str | None:
    """Return the value after the equals sign; None if its quotes do not close."""
    if text.startswith("'"):
        single = _SINGLE.fullmatch(text)
        return None if single is None else single[1]
    if text.startswith('"'):
        double = _DOUBLE.fullmatch(text)
        return None if double is None else _ESCAPE.sub(lambda m: _ESCAPED[m[1]], double[1])
    bare = re.split(r"(?:^|[ \t])#", text, maxsplit=1)[0]
    return bare.strip(" \t")


def read_env_file(path: Path) -> tuple[dict[str, str], Sequence[str]]:
    """Read and parse one file; problems name the file.

    Raises KodeError `ConfigInvalid` when the file is missing, unreadable or not UTF-8.
    """
    values, problems = parse_env(read_user_text(path))
    return values, [f"{path.name}, {problem}" for problem in problems]


def read_config_file(path: Path) -> Mapping[str, object]:
    """Return the unchecked settings of one YAML file; none for an empty file.

    Raises KodeError `ConfigInvalid` naming line and column.
    """
    # Imported late: PyYAML takes 10 ms, and most users have no such file.
    from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml  # noqa: PLC0415

    text = read_user_text(path)
    try:
        loaded = read_yaml(text).value
    except YamlProblem as error:
        where = f", line {error.line}" if error.line else ""
        where += f", column {error.column}" if error.column else ""
        text = f"{path.name}{where}: not valid YAML: {error.problem}"
        raise KodeError("ConfigInvalid", text) from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise KodeError("ConfigInvalid", f"{path.name}: expected lines such as `mode: review`")
    return {str(key): value for key, value in cast("dict[object, object]", loaded).items()}
