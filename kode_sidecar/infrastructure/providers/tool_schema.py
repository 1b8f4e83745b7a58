"""Adapts tool schemas to hosts: plain JSON Schema, or Moonshot's subset of it. Sans-IO."""

from collections.abc import Mapping
from typing import Any, cast

Schema = dict[str, Any]
_DROPPED = frozenset({"$schema", "$id", "$defs", "definitions", "title"})
_MAPS = frozenset({"properties", "patternProperties"})
_LISTS = frozenset({"anyOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties", "not"})
# Only this may stand beside `anyOf`; the value of a `default` belongs to one of the branches.
_BESIDE = frozenset({"description"})
_KINDS_OF = {"integer": ("integer", "number")}
_TYPE_NAMES: dict[type, str] = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with an object as its root, which every host requires."""
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


def normalize_schema(schema: Mapping[str, Any]) -> Schema:
    """Return an equivalent schema in Moonshot's subset. The input is not changed."""
    found: Schema = {}
    for key in ("definitions", "$defs"):
        found.update(schema.get(key, {}))
    root = _Normalizer(found).node(schema, ())
    branches: list[Schema] = root.pop("anyOf", [])
    for branch in branches:
        # The root must be an object: of a choice, take the first object.
        if branch.get("type") == "object":
            root = {**branch, **root}
            break
    root["type"] = "object"
    root.setdefault("properties", {})
    return root


class _Normalizer:
    """Normalizes one schema; `path` holds the references that are being followed."""

    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions

    def node(self, schema: Mapping[str, Any] | bool, path: tuple[str, ...]) -> Schema:
        if isinstance(schema, bool):
            return {"type": "string"}
        merged, path = self._inline(dict(schema), path)
        result: Schema = {}
        for key, value in merged.items():
            if key not in _DROPPED:
                result[key] = self._child(key, value, path)
        return _with_type(result)

    def _inline(self, schema: Schema, path: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Replace references and `allOf` by their contents; the outer keys win."""
        while True:
            if "oneOf" in schema:
                schema["anyOf"] = schema.pop("oneOf")
            if isinstance(schema.get("items"), list):
                schema["prefixItems"] = schema.pop("items")
            if "allOf" in schema:
                for part in cast(list[object], schema.pop("allOf")):
                    inlined, path = self._inline(_as_schema(part), path)
                    schema = _merged(inlined, schema)
            elif "$ref" in schema:
                reference = str(schema.pop("$ref"))
                target = _as_schema(self._definitions.get(reference.rpartition("/")[2]))
                # A type that contains itself becomes any object.
                schema = {**({"type": "object"} if reference in path else target), **schema}
                path = (*path, reference)
            else:
                return schema, path

    def _child(self, key: str, value: Any, path: tuple[str, ...]) -> Any:
        if key in _MAPS:
            return {name: self.node(child, path) for name, child in value.items()}
        if key in _LISTS:
            return [self.node(child, path) for child in value]
        if key in _ONE and not isinstance(value, bool):
            return self.node(value, path)
        return value


def _as_schema(value: object) -> Schema:
    """Return a copy; `true`, which allows anything, becomes an empty schema."""
    return dict(cast(Schema, value)) if isinstance(value, dict) else {}


def _merged(part: Schema, schema: Schema) -> Schema:
    both = {**part, **schema}
    if "properties" in part and "properties" in schema:
        both["properties"] = {**part["properties"], **schema["properties"]}
    if "required" in part and "required" in schema:
        both["required"] = list(dict.fromkeys([*part["required"], *schema["required"]]))
    return both


def _with_type(schema: Schema) -> Schema:
    """Return `schema` with exactly one of `type` and `anyOf`."""
    if "anyOf" in schema:
        outside = {key: schema.pop(key) for key in list(schema) if _moves_inside(key)}
        return {**schema, "anyOf": _branches(schema["anyOf"], outside)}
    kinds = schema.get("type") or _implied_types(schema)
    if isinstance(kinds, str):
        return {**schema, "type": kinds}
    if len(kinds) == 1:
        return {**schema, "type": kinds[0]}
    beside = {key: value for key, value in schema.items() if key in _BESIDE}
    inside = {key: value for key, value in schema.items() if key not in _BESIDE}
    default = {"default": inside.pop("default")} if "default" in inside else {}
    branches = [_of_type(inside, kind) for kind in kinds]
    return {**beside, "anyOf": _branches(branches, default)}


def _moves_inside(key: str) -> bool:
    return key != "anyOf" and key not in _BESIDE


def _branches(branches: list[Schema], outside: Schema) -> list[Schema]:
    """Return the branches with the keys beside `anyOf`; a default goes to the branch it fits."""
    has_default = "default" in outside
    default = outside.pop("default", None)
    found = [branch if "anyOf" in branch else {**outside, **branch} for branch in branches]
    for branch in found if has_default else ():
        if branch.get("type") in _KINDS_OF.get(_type_name(default), (_type_name(default),)):
            branch.setdefault("default", default)
            break
    return found


def _of_type(schema: Schema, kind: str) -> Schema:
    """Return the branch for one of several types, with only the values of that type."""
    branch = {**schema, "type": kind}
    if "enum" in branch:
        branch["enum"] = [value for value in branch["enum"] if _type_name(value) == kind]
        if not branch["enum"]:
            del branch["enum"]
    return branch


def _implied_types(schema: Schema) -> list[str]:
    if "const" in schema:
        return [_type_name(schema["const"])]
    if schema.get("enum"):
        return list(dict.fromkeys(_type_name(value) for value in schema["enum"]))
    if "properties" in schema or "additionalProperties" in schema:
        return ["object"]
    if "items" in schema or "prefixItems" in schema:
        return ["array"]
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return ["number"]
    return ["string"]


def _type_name(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "string")
