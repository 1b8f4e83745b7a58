"""Writes tool schemas so that every host and chat template can read them. Sans-IO.

Servers, grammars and templates read `parameters.properties` and the `type` of each one, and little
else: references, nullable types and schemas of schemas are lost on the way to the model, or
refused. So a schema is written without them: each node has a `type` (or, for a real choice,
`anyOf` with typed branches, as Moonshot requires), and an optional argument is one that is not
required. What is malformed is repaired where its meaning is plain; size and depth are bounded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from kode_sidecar.infrastructure.providers.schema_types import (
    implied_types,
    of_type,
    type_name,
    types_in,
)

Schema = dict[str, Any]
Path = tuple[str, ...]
# Beyond these, a node is written without its own properties.
_MOST_NODES = 1_000
_DEEPEST = 16
_LONGEST_CHAIN = 32  # of references that only lead to other references


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(cast(list[object], value))


# The keywords that are sent, each with the values that it may have. Others mean nothing to a model.
_KEYWORDS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("description", "pattern", "format"), _is_text),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_size),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is_number
    ),
    "enum": _is_list,
    "const": lambda _: True,
    "default": lambda _: True,
    "uniqueItems": lambda value: isinstance(value, bool),
}
_CHOICES = ("oneOf", "anyOf")


class _Node(NamedTuple):
    schema: Schema
    nullable: bool = False


def normalize_schema(schema: Mapping[str, Any]) -> Schema:
    """Return an equivalent plain schema whose root is an object. The input is not changed."""
    root = _Normalizer(schema).node(schema, (), 0).schema
    branches: list[Schema] = root.pop("anyOf", [])
    for branch in branches:
        # The root must be an object: of a choice, take the first object.
        if branch.get("type") == "object":
            root = {**branch, **root}
            break
    # What the tool does stands beside its schema.
    root.pop("description", None)
    root["type"] = "object"
    root.setdefault("properties", {})
    return root


class _Normalizer:
    """Normalizes one schema; `path` holds the references that are being followed."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def node(self, value: object, path: Path, depth: int) -> _Node:
        """Return the node for a value, which may be anything."""
        self._nodes += 1
        schema, path = self._inlined(_as_schema(value), path)
        found = {
            key: one for key, one in schema.items() if key in _KEYWORDS and _KEYWORDS[key](one)
        }
        kinds = types_in(schema.get("type"))
        if kinds is not None:
            found["type"] = kinds
        deeper = depth < _DEEPEST and self._nodes < _MOST_NODES
        if deeper:
            found |= self._children(schema, path, depth + 1)
        elif "properties" in schema or "items" in schema:
            found.setdefault("type", ["object" if "properties" in schema else "array"])
        choices = next((key for key in _CHOICES if _is_list(schema.get(key))), "")
        branches = [
            self.node(one, path, depth + 1)
            for one in (cast(list[object], schema[choices]) if choices and deeper else ())
        ]
        return _choice(found, branches) if branches else _typed(found)

    def _children(self, schema: Schema, path: Path, depth: int) -> Schema:
        found: Schema = {}
        if isinstance(schema.get("properties"), dict | list):
            found |= self._properties(schema, path, depth)
        items = schema.get("prefixItems", schema.get("items"))
        if isinstance(items, list):
            listed = cast(list[object], items)
            found["prefixItems"] = [self.node(one, path, depth).schema for one in listed]
        elif isinstance(items, dict | str):
            found["items"] = self.node(cast(object, items), path, depth).schema
        more = schema.get("additionalProperties")
        if isinstance(more, bool):
            found["additionalProperties"] = more
        elif isinstance(more, dict):
            found["additionalProperties"] = self.node(cast(object, more), path, depth).schema
        return found

    def _properties(self, schema: Schema, path: Path, depth: int) -> Schema:
        """Return the properties and which of them are required: those that are not nullable."""
        named = _named(schema["properties"])
        asked = _texts(schema.get("required"))
        if isinstance(named.get("required"), list):
            asked += _texts(named.pop("required"))  # it stands one level too deep
        found: Schema = {}
        for name, child in named.items():
            node = self.node(child, path, depth)
            found[name] = node.schema
            if isinstance(child, dict) and cast(Schema, child).get("required") is True:
                asked.append(name)
            if node.nullable:
                asked = [one for one in asked if one != name]
        required = [one for one in dict.fromkeys(asked) if one in found]
        return {"properties": found, **({"required": required} if required else {})}

    def _inlined(self, schema: Schema, path: Path) -> tuple[Schema, Path]:
        """Replace references and `allOf` by their contents; the outer keys win."""
        for _ in range(_LONGEST_CHAIN):
            if isinstance(parts := schema.pop("allOf", None), list):
                for part in cast(list[object], parts)[:_LONGEST_CHAIN]:
                    inlined, path = self._inlined(_as_schema(part), path)
                    schema = _merged(inlined, schema)
            elif isinstance(reference := schema.pop("$ref", None), str):
                # A type that contains itself becomes any object.
                again = reference in path or len(path) > _DEEPEST
                target = {"type": "object"} if again else _as_schema(self._found(reference))
                schema, path = {**target, **schema}, (*path, reference)
            else:
                break
        return schema, path

    def _found(self, reference: str) -> object:
        """Return what a reference inside this schema points to (RFC 6901), or None."""
        value: object = dict(self._root)
        for step in reference.removeprefix("#").strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            listed = cast(list[object], value) if isinstance(value, list) else []
            if listed and name.isdigit():
                value = listed[int(name)] if int(name) < len(listed) else None
            elif name:
                value = cast(Schema, value).get(name) if isinstance(value, dict) else None
        return cast(object, value)


def _as_schema(value: object) -> Schema:
    """Return a copy of a schema; a text is the name of a type, a list those of several."""
    if isinstance(value, dict):
        return dict(cast(Schema, value))
    kinds = types_in(value)
    if kinds is None:
        # `true`, which allows anything, and what means nothing.
        return {"description": value} if isinstance(value, str) else {}
    return {"type": kinds}


def _named(properties: object) -> Schema:
    """Return properties by name, also those written as a list of objects with a name."""
    if isinstance(properties, dict):
        return dict(cast(Schema, properties))
    listed = [cast(Schema, one) for one in cast(list[object], properties) if isinstance(one, dict)]
    return {one["name"]: one for one in listed if isinstance(one.get("name"), str)}


def _texts(value: object) -> list[str]:
    listed = cast(list[object], value) if isinstance(value, list) else []
    return [one for one in listed if isinstance(one, str)]


def _merged(part: Schema, schema: Schema) -> Schema:
    both = {**part, **schema}
    ours, theirs = schema.get("properties"), part.get("properties")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        both["properties"] = {**cast(Schema, theirs), **cast(Schema, ours)}
    if required := [*_texts(part.get("required")), *_texts(schema.get("required"))]:
        both["required"] = list(dict.fromkeys(required))
    return both


def _typed(schema: Schema) -> _Node:
    """Return a node without `anyOf`: one type, or a choice of several."""
    kinds: Sequence[str] = schema.pop("type", None) or implied_types(schema)
    some = [kind for kind in kinds if kind != "null"] or ["null"]
    nullable = "null" in kinds
    if len(some) == 1:
        return _Node(_without_null(of_type(schema, some[0])), nullable)
    branches = [_Node(of_type(schema, kind)) for kind in some]
    for branch in branches:
        branch.schema.pop("description", None)
        branch.schema.pop("default", None)
    beside = {key: value for key, value in schema.items() if key in ("description", "default")}
    return _Node(_choice(beside, branches).schema, nullable)


def _choice(outside: Schema, branches: Sequence[_Node]) -> _Node:
    """Return a node for one of several: the one that is not null, or `anyOf` with typed branches.

    The keys beside `anyOf` move into the branches, and a default goes to the branch that it fits.
    """
    default = outside.pop("default", None)
    about = {key: outside.pop(key) for key in ("description",) if key in outside}
    kinds = outside.pop("type", None)
    if kinds is not None and len(kinds) == 1:
        outside["type"] = kinds[0]
    nullable = any(one.nullable or one.schema.get("type") == "null" for one in branches)
    flat: list[Schema] = []
    for node in branches:
        for branch in node.schema.get("anyOf", [node.schema]):
            whole = _both(outside, branch)
            if branch.get("type") != "null" and whole not in flat:
                flat.append(whole)
    if not flat:
        return _Node({**about, "type": "null"}, nullable)
    fits = next((one for one in flat if _fits(default, one)), None) if default is not None else None
    flat = _joined_values(flat)
    if len(flat) == 1:
        own = {} if fits is None else {"default": default}
        return _Node({**flat[0], **about, **own}, nullable)
    if fits is not None:
        fits.setdefault("default", default)
    return _Node({**about, "anyOf": flat}, nullable)


def _both(outside: Schema, branch: Schema) -> Schema:
    """Return a branch with what stands beside the choice; its own keys win."""
    both = _merged(outside, branch)
    if outside and branch.keys() <= {"type", "description"} and branch["type"] == "string":
        # The branch said nothing of its type.
        both["type"] = outside.get("type") or implied_types(outside)[0]
    return both


def _joined_values(branches: list[Schema]) -> list[Schema]:
    """Return one branch for several that only list values of one type."""
    if len(branches) < 2 or len({one["type"] for one in branches}) > 1:
        return branches
    values: list[object] = []
    for one in branches:
        if not one.keys() <= {"type", "enum", "const", "description"}:
            return branches
        values += one.get("enum") or ([one["const"]] if "const" in one else [])
        if not one.keys() & {"enum", "const"}:
            return branches
    return [{"type": branches[0]["type"], "enum": values}]


def _without_null(schema: Schema) -> Schema:
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


def _fits(default: object, branch: Schema) -> bool:
    kind = type_name(default)
    return branch.get("type") in ((kind, "number") if kind == "integer" else (kind,))
