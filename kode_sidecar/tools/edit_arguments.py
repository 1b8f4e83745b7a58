"""The shapes in which models send edits, read as the one that `propose_edit` offers."""

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from kode_sidecar.text.apply_patch import FilePatch, PatchError, parse_patch

PATH_NAMES = ("file_path", "filepath", "file", "filename", "target_file")
_EDITS_NAMES = ("edit", "replacements", "changes")
_OLD_NAMES = ("old_string", "oldText", "old_str", "old_text", "oldString", "search")
_NEW_NAMES = ("new_string", "newText", "new_str", "new_text", "newString", "replace")
_PATCH_NAMES = ("patch", "input", "edits", "edit", "diff")
_BEGIN_PATCH = "*** Begin Patch"


def patch_in(arguments: Mapping[str, Any]) -> tuple[FilePatch, ...]:
    """The files of a patch, where the arguments are one. Raises msgspec.ValidationError."""
    texts = (arguments.get(name) for name in _PATCH_NAMES)
    patch = next((text for text in texts if isinstance(text, str) and _BEGIN_PATCH in text), None)
    if patch is None:
        return ()
    try:
        return parse_patch(patch)
    except PatchError as error:
        raise msgspec.ValidationError(f"the patch cannot be read. {error}") from None


def mended_edits(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments by the names that `propose_edit` offers, and what was read as what."""
    given = dict(arguments)
    repairs = rename(given, {"path": PATH_NAMES, "edits": _EDITS_NAMES})
    if "edits" not in given and not {*_OLD_NAMES, "old"}.isdisjoint(given):
        names = (*_OLD_NAMES, *_NEW_NAMES, "old", "new", "replace_all", "replaceAll", "near_line")
        given["edits"] = [{name: given.pop(name) for name in names if name in given}]
        repairs.append("one edit beside `path` was read as a list of one in `edits`")
    edits: object = given.get("edits")
    if isinstance(edits, str):
        edits = _parsed(edits)
        repairs.append("`edits` was text that holds JSON, and was read as a list")
    if isinstance(edits, dict):
        edits = [cast(object, edits)]
        repairs.append("`edits` was one edit, and was read as a list of one")
    if isinstance(edits, list):
        edits = [_renamed(edit, repairs) for edit in cast(list[object], edits)]
    if edits is not None:
        given["edits"] = edits
    return given, tuple(repairs)


def rename(given: dict[str, Any], names: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Give values their right names, in place, where those are free; says which."""
    repairs: list[str] = []
    for right, others in names.items():
        other = next((name for name in others if name in given), None)
        if right not in given and other is not None:
            given[right] = given.pop(other)
            repairs.append(f"`{other}` was read as `{right}`")
    return repairs


def _renamed(edit: object, repairs: list[str]) -> object:
    if not isinstance(edit, dict):
        return edit
    given = dict(cast(dict[str, Any], edit))
    names = {"old": _OLD_NAMES, "new": _NEW_NAMES, "replace_all": ("replaceAll",)}
    repairs += (repair for repair in rename(given, names) if repair not in repairs)
    return given


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
