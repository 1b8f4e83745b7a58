"""Every way to get params wrong, made from the JSON Schema of the wire and from nothing else."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]

KINDS: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 7,
    "number": 1.5,
    "string": "no such word",
    "array": [],
    "object": {},
}
"""A value of each kind of JSON value. No number here is both an integer and a fraction."""


class Wrong(NamedTuple):
    """A value that does not fit, and the JSON path of what is wrong in it."""

    value: Any
    path: str


class WrongParams:
    """Walks the types of a schema. `$defs` must not hold a type that needs itself."""

    def __init__(self, schema: Json) -> None:
        self._defs: Json = schema["$defs"]

    def of(self, schema: Json, path: str = "$") -> Iterator[Wrong]:
        """Values that fit `schema` except in one place; each place, each wrong kind of value."""
        options = self._options(schema)
        kinds = {kind for option in options for kind in _kinds(option)}
        yield from (Wrong(value, path) for kind, value in KINDS.items() if kind not in kinds)
        objects = [option for option in options if option.get("properties")]
        tagged = [option for option in objects if "const" in option["properties"].get("type", {})]
        if tagged:
            yield from _unknown_tags(tagged, path)
        for option in objects:
            yield from self._of_object(option, path, is_tagged=option in tagged)
        for option in options:
            if "enum" in option:
                yield Wrong(option["enum"][0].upper(), path)
                yield Wrong("", path)
            if "minimum" in option:
                yield Wrong(option["minimum"] - 1, path)
            if "items" in option:
                good = self.sample(option["items"])
                yield from (
                    Wrong([good] * before + [value], inner)
                    for before in (0, 2)
                    for value, inner in self.of(option["items"], f"{path}[{before}]")
                )

    def _of_object(self, schema: Json, path: str, *, is_tagged: bool) -> Iterator[Wrong]:
        good = self.sample(schema)
        for name, member in schema["properties"].items():
            place = f"{path}.{name}"
            if name in schema.get("required", ()):
                yield Wrong({key: good[key] for key in good if key != name}, place)
            if not (is_tagged and name == "type"):
                wrong = self.of(member, place)
                yield from (Wrong({**good, name: value}, inner) for value, inner in wrong)

    def sample(self, schema: Json) -> Any:
        """The smallest value that fits."""
        schema = self._options(schema)[0]
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "null")
        if kind != "object":
            return [] if kind == "array" else KINDS[kind]
        properties = schema.get("properties", {})
        return {name: self.sample(properties[name]) for name in schema.get("required", ())}

    def _options(self, schema: Json) -> list[Json]:
        """What a value may be, references followed."""
        if "$ref" in schema:
            return self._options(self._defs[schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return [option for each in schema["anyOf"] for option in self._options(each)]
        return [schema]


def places(cases: list[Wrong]) -> set[str]:
    """The paths, whatever the index."""
    return {case.path.replace("[2]", "[0]") for case in cases}


def _unknown_tags(tagged: list[Json], path: str) -> Iterator[Wrong]:
    tag = tagged[0]["properties"]["type"]["const"]
    place = f"{path}.type"
    yield from (Wrong({"type": value}, place) for value in (*KINDS.values(), tag.upper()))


def _kinds(schema: Json) -> set[str]:
    if not schema.keys() & {"type", "const", "enum"}:
        return set(KINDS)  # anything goes
    kind = schema.get("type", "string")
    return {kind, "integer"} if kind == "number" else {kind}


def spelled(value: Any) -> str:
    """For the message of a test that fails."""
    return json.dumps(value, ensure_ascii=False)
