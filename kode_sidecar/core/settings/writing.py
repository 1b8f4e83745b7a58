"""Adds to the user's `config.yaml`; every line that stands there stays as it is."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from kode_sidecar.core.settings.load import state_folder
from kode_sidecar.core.whole_files import make_private, move_over, write_beside
from kode_sidecar.errors import KodeError

Json = dict[str, Any]
Item = str | Sequence[str]


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the user's `config.yaml`, which need not exist."""
    named = environ.get("KODE_CONFIG", "").strip()
    return Path(named) if named else state_folder(environ) / "config.yaml"


def add_to_config(path: Path, keys: Sequence[str], entry: Json | Item) -> None:
    """Add an entry below nested keys: members of a mapping, or one item of a list.

    What is there already is not added again. Raises KodeError `Storage`, or `ConfigInvalid` with
    the lines to add by hand if the file is not written as blocks.
    """
    # Imported late: PyYAML takes 10 ms, and few users add anything.
    from kode_sidecar.core.text.yaml_text import (  # noqa: PLC0415
        YamlProblem,
        read_yaml,
        write_yaml,
    )

    item = write_yaml(entry if isinstance(entry, dict) else [entry])
    try:
        before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        old = cast(Json, read_yaml(before).value or {})
        wanted = _merged(old, keys, entry)
        if wanted == old:
            return
    except (OSError, UnicodeError, YamlProblem) as error:
        raise KodeError("Storage", f"Cannot read or write {path}: {error}.") from None
    after = _with_entry(before, keys, item.splitlines())
    try:
        as_wanted = read_yaml(after).value == wanted
    except YamlProblem:
        as_wanted = False
    if not as_wanted:
        shown = _with_entry("", keys, item.splitlines())
        text = f"`{keys[0]}` in {path} is not written as a block: add this by hand.\n{shown}"
        raise KodeError("ConfigInvalid", text)
    try:
        make_private(path.parent)
        move_over(write_beside(path, after.encode(), durable=False), path)
    except OSError as error:
        raise KodeError("Storage", f"Cannot write {path}: {error.strerror}.") from None


def _merged(old: Json, keys: Sequence[str], entry: Json | Item) -> Json:
    """Return the settings with the entry in them."""
    key, *deeper = keys
    child = old.get(key)
    if deeper:
        return {**old, key: _merged(child or {}, deeper, entry)}
    if not isinstance(entry, dict):
        items: list[Any] = child or []
        return old if entry in items else {**old, key: [entry, *items]}
    return {**old, key: {**entry, **(child or {})}}


def _with_entry(before: str, keys: Sequence[str], entry: Sequence[str]) -> str:
    """Return the text with the entry below the keys, before all others; missing keys are added."""
    lines = before.splitlines()
    at, indent = -1, ""
    for key in keys:
        found = _line_of(lines, at + 1, f"{indent}{key}:", indent)
        if found is None:
            found = len(lines) if at < 0 else at + 1
            lines.insert(found, f"{indent}{key}:")
        at, parent = found, indent
        following = next((line for line in lines[at + 1 :] if not _is_comment(line)), "")
        indent = following[: len(following) - len(following.lstrip(" "))]
        if len(indent) <= len(parent) and not following.startswith(f"{parent}- "):
            indent = f"{parent}  "
    lines[at + 1 : at + 1] = [indent + line for line in entry]
    return "\n".join(lines) + "\n"


def _line_of(lines: Sequence[str], start: int, wanted: str, indent: str) -> int | None:
    """Return the line that begins a block, within the block that `indent` belongs to."""
    begins = re.compile(rf"{re.escape(wanted)}[ \t]*(#.*)?")
    for at in range(start, len(lines)):
        if begins.fullmatch(lines[at]):
            return at
        if not lines[at].startswith(indent) and not _is_comment(lines[at]):
            return None
    return None


def _is_comment(line: str) -> bool:
    """Return whether YAML ignores a line."""
    return line.strip()[:1] in ("", "#")
