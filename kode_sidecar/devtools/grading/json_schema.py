"""Compares values with a JSON Schema, by the words that published schemas of protocols use."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

Words = Mapping[str, Any]
_TYPES: Words = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_CHECKED = {
    *("$ref", "type", "const", "enum", "pattern", "minLength", "minimum", "maximum"),
    *("allOf", "anyOf", "oneOf", "not", "properties", "required", "additionalProperties"),
    *("items", "minItems", "uniqueItems", "definitions", "$defs", "unevaluatedProperties"),
}
_SAYS_NOTHING = {
    *("$schema", "$id", "id", "$comment", "title", "description", "default", "format"),
    *("examples", "deprecated", "discriminator"),
}


class Schema:
    """A schema, from its JSON. A word that is not checked here is an error, but those of ACP."""

    def __init__(self, data: bytes) -> None:
        self.whole: Words = json.loads(data)
        self.definitions: Words = self.whole.get("$defs") or self.whole["definitions"]

    def problems(self, value: Any, schema: Words | None = None, path: str = "$") -> Iterator[str]:
        """Yield what is wrong with a value, by a part of the schema or by all of it.

        Raises ValueError for a schema that says what is not checked here.
        """
        schema = self.whole if schema is None else schema
        unknown = {word for word in schema if not word.startswith("x-")} - _CHECKED - _SAYS_NOTHING
        if unknown or schema.get("unevaluatedProperties", True) is not True:
            raise ValueError(f"{path}: the schema says {unknown or schema}, which nobody checks")
        if "$ref" in schema:
            named = self.definitions[schema["$ref"].rpartition("/")[2]]
            yield from self.problems(value, named, path)
        kinds = schema.get("type")
        if kinds is not None and not _is(value, [kinds] if isinstance(kinds, str) else kinds):
            yield f"{path}: {value!r:.80} is not {kinds}"
            return
        yield from _scalars(value, schema, path)
        if isinstance(value, dict):
            yield from self._members(cast(Words, value), schema, path)
        if isinstance(value, list):
            yield from self._items(cast(list[Any], value), schema, path)
        yield from self._forms(value, schema, path)

    def _items(self, value: list[Any], schema: Words, path: str) -> Iterator[str]:
        if len(value) < schema.get("minItems", 0):
            yield f"{path}: too few"
        if schema.get("uniqueItems") and len({json.dumps(one) for one in value}) < len(value):
            yield f"{path}: the same item twice"
        if "items" in schema:
            for at, item in enumerate(value):
                yield from self.problems(item, schema["items"], f"{path}[{at}]")

    def _forms(self, value: Any, schema: Words, path: str) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.problems(value, part, path)
        for word in ("anyOf", "oneOf"):
            wrong = [list(self.problems(value, one, path)) for one in schema.get(word, ())]
            if wrong and all(wrong):
                yield f"{path}: none of {word} fits: {min(wrong, key=len)}"
            if word == "oneOf" and sum(not one for one in wrong) > 1:
                yield f"{path}: more than one of oneOf fits"
        if "not" in schema and not list(self.problems(value, schema["not"], path)):
            yield f"{path}: fits what it must not"

    def _members(self, value: Words, schema: Words, path: str) -> Iterator[str]:
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{path}: {name} is missing"
        more = schema.get("additionalProperties")
        for name, member in value.items():
            if name in known:
                yield from self.problems(member, known[name], f"{path}.{name}")
            elif isinstance(more, dict):
                yield from self.problems(member, cast(Words, more), f"{path}.{name}")
            elif more is False:
                yield f"{path}: {name} is not allowed"


def _scalars(value: Any, schema: Words, path: str) -> Iterator[str]:
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r:.80} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r:.80} is none of {schema['enum']}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"{path}: too short"
        if not re.search(schema.get("pattern", ""), value):
            yield f"{path}: {value!r:.80} is not like {schema['pattern']}"
    if _is(value, ["number"]):
        if value < schema.get("minimum", value):
            yield f"{path}: {value} is too small"
        if value > schema.get("maximum", value):
            yield f"{path}: {value} is too large"


def _is(value: Any, kinds: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _TYPES[kind]) for kind in kinds)
