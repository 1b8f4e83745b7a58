"""The types of JSON Schema: their names, and the one that a schema implies. Sans-IO."""

from collections.abc import Mapping
from typing import Any, cast

Schema = dict[str, Any]
_NAME_OF: Mapping[type, str] = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_NAMES = frozenset(_NAME_OF.values())
# Names of other languages that servers write by mistake.
_MEANT = {
    **{"str": "string", "text": "string", "int": "integer", "float": "number", "double": "number"},
    **{"bool": "boolean", "dict": "object", "map": "object", "list": "array", "none": "null"},
}
_ONLY_OF = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), ("string",)),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), ("array",)),
    **dict.fromkeys(("properties", "required", "additionalProperties"), ("object",)),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        ("number", "integer"),
    ),
}


def type_name(value: object) -> str:
    """Return the name of a value's type."""
    return _NAME_OF.get(type(value), "string")


def types_in(value: object) -> list[str] | None:
    """Return the types that a value names, in any common spelling; None if it names none."""
    listed = cast(list[object], value) if isinstance(value, list) else [value]
    names = [one.strip().lower() for one in listed if isinstance(one, str)]
    known = [_MEANT.get(one, one) for one in names]
    return list(dict.fromkeys(one for one in known if one in _NAMES)) or None


def implied_types(schema: Schema) -> list[str]:
    """Return the types of a schema that names none, by its other keywords."""
    if "const" in schema:
        return [type_name(schema["const"])]
    if "enum" in schema:
        return list(dict.fromkeys(type_name(value) for value in schema["enum"]))
    found = next((kinds[0] for key, kinds in _ONLY_OF.items() if key in schema), None)
    return [found or "string"]


def of_type(schema: Schema, kind: str) -> Schema:
    """Return a schema of one type, with only the keywords and values of that type."""
    found = {key: value for key, value in schema.items() if kind in _ONLY_OF.get(key, (kind,))}
    if "enum" in found:
        fitting = (kind, "integer") if kind == "number" else (kind,)
        found["enum"] = [value for value in found["enum"] if type_name(value) in fitting]
        if not found["enum"]:
            del found["enum"]
    if kind == "array" and not found.keys() & {"items", "prefixItems"}:
        found["items"] = {"type": "string"}  # hosts refuse an array without any
    return {**found, "type": kind}
