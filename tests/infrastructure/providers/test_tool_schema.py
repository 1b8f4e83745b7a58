"""Tool schemas as all hosts get them: Moonshot's dialect of JSON Schema, and plainer."""

import time
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.infrastructure.providers.tool_schema import normalize_schema


class Place(msgspec.Struct):
    line: int
    column: int = 0


class Params(msgspec.Struct):
    """What a tool may ask for."""

    path: Annotated[str, msgspec.Meta(description="Where", min_length=1)]
    mode: Literal["a", "b"] = "a"
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at: Place | None = None
    pairs: tuple[str, int] = ("a", 1)
    more: dict[str, Any] = {}


class Node(msgspec.Struct):
    name: str
    children: list["Node"] = []


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {"type": "object", "properties": {}}),
    "no $schema, no title": (
        {
            "$schema": "x",
            "title": "T",
            "type": "object",
            "properties": {"title": {"type": "string"}},
        },
        {"type": "object", "properties": {"title": {"type": "string"}}},
    ),
    "enum and const get a type": (
        {"properties": {"a": {"enum": ["x", "y"]}, "b": {"const": 3}, "c": {"enum": [1, "x"]}}},
        {
            "type": "object",
            "properties": {
                "a": {"enum": ["x", "y"], "type": "string"},
                "b": {"const": 3, "type": "integer"},
                "c": {
                    "anyOf": [{"enum": [1], "type": "integer"}, {"enum": ["x"], "type": "string"}]
                },
            },
        },
    ),
    "a list of types": (
        {"properties": {"a": {"type": ["string", "null"], "description": "d", "minLength": 1}}},
        {
            "type": "object",
            "properties": {"a": {"description": "d", "minLength": 1, "type": "string"}},
        },
    ),
    "a type beside anyOf moves inside": (
        {
            "properties": {
                "a": {
                    "type": "string",
                    "description": "d",
                    "anyOf": [{"minLength": 1}, {"pattern": "x"}],
                }
            }
        },
        {
            "type": "object",
            "properties": {
                "a": {
                    "description": "d",
                    "anyOf": [
                        {"type": "string", "minLength": 1},
                        {"type": "string", "pattern": "x"},
                    ],
                }
            },
        },
    ),
    "oneOf and allOf": (
        {
            "$defs": {"S": {"type": "string"}},
            "properties": {
                "a": {"oneOf": [{"type": "string"}, {"type": "null"}]},
                "b": {"allOf": [{"$ref": "#/$defs/S"}], "description": "d"},
                "c": {
                    "allOf": [
                        {"properties": {"x": {}}, "required": ["x"]},
                        {"properties": {"y": {}}, "required": ["y"]},
                    ]
                },
            },
        },
        {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "string", "description": "d"},
                "c": {
                    "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                    "required": ["y", "x"],
                    "type": "object",
                },
            },
        },
    ),
    "tuples": (
        {"properties": {"a": {"type": "array", "items": [{"type": "string"}, {}]}}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]}
            },
        },
    ),
    "a default goes into the branch that it fits": (
        {
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "default": None, "description": "d"},
                "b": {"anyOf": [{"type": "string"}, {"type": "number"}], "default": 3},
                "c": {"anyOf": [{"type": "string"}, {"type": "number"}], "default": [1]},
            },
        },
        {
            "type": "object",
            "properties": {
                "a": {"description": "d", "type": "string"},
                "b": {"anyOf": [{"type": "string"}, {"type": "number", "default": 3}]},
                "c": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            },
        },
    ),
    "a root that is a choice": (
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {}}}]},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_rules(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, expected = case
    before = repr(schema)
    assert normalize_schema(schema) == expected
    assert repr(schema) == before


def violations(schema: Any, where: str = "") -> list[str]:
    """What Moonshot would refuse."""
    found: list[str] = []
    if ("type" in schema) == ("anyOf" in schema):
        found.append(f"{where}: needs one of type and anyOf")
    if "anyOf" in schema and (beside := schema.keys() - {"anyOf", "description", "properties"}):
        found.append(f"{where}: {beside} beside anyOf")
    if {"$ref", "$defs", "$schema", "oneOf", "allOf"} & schema.keys():
        found.append(f"{where}: {list(schema)}")
    if not isinstance(schema.get("type", ""), str):
        found.append(f"{where}: a list of types")
    for name, child in schema.get("properties", {}).items():
        found += violations(child, f"{where}.{name}")
    for key in ("anyOf", "prefixItems"):
        for child in schema.get(key, ()):
            found += violations(child, f"{where}|{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found += violations(schema[key], f"{where}.{key}")
    return found


@pytest.mark.parametrize("params", [Params, Node])
def test_our_params(params: type[msgspec.Struct]) -> None:
    found = normalize_schema(msgspec.json.schema(params))
    assert violations(found) == []
    assert found["type"] == "object"


def test_a_struct_that_holds_itself_ends() -> None:
    found = normalize_schema(msgspec.json.schema(Node))
    child = found["properties"]["children"]["items"]
    assert child == {"type": "object"}


LEAVES = st.sampled_from(
    [{}, {"type": "string"}, {"enum": ["a", None]}, {"const": True}, {"$ref": "#/$defs/X"}, True]
)


def branches(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("ab"), children)}),
        st.fixed_dictionaries({"anyOf": st.lists(children, min_size=1, max_size=2)}),
        st.fixed_dictionaries(
            {"type": st.just("string"), "oneOf": st.lists(children, min_size=1, max_size=2)}
        ),
        st.fixed_dictionaries({"type": st.just(["array", "null"]), "items": children}),
        st.fixed_dictionaries({"items": st.lists(children, max_size=2)}),
    )


@given(st.recursive(LEAVES, branches, max_leaves=8), st.recursive(LEAVES, branches, max_leaves=4))
def test_any_schema_becomes_one_they_take(schema: Any, shared: Any) -> None:
    whole = {"type": "object", "properties": {"p": schema}, "$defs": {"X": shared}}
    assert violations(normalize_schema(whole)) == []


NULLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "properties: null": ({"properties": None}, {}),
    "required: null": (
        {"properties": {"a": {"type": "string"}}, "required": None},
        {"a": {"type": "string"}},
    ),
    "required inside of properties": (
        {"properties": {"a": {"type": "string"}, "required": ["a"]}},
        {"a": {"type": "string"}},
    ),
    "a property that is null": ({"properties": {"a": None}}, {"a": {"type": "string"}}),
    "a property that is a type's name": (
        {"properties": {"a": "integer"}},
        {"a": {"type": "integer"}},
    ),
    "a type in other words": ({"properties": {"a": {"type": "Int"}}}, {"a": {"type": "integer"}}),
    "items: null": (
        {"properties": {"a": {"type": "array", "items": None}}},
        {"a": {"type": "array", "items": {"type": "string"}}},
    ),
    "anyOf: null": ({"properties": {"a": {"anyOf": None}}}, {"a": {"type": "string"}}),
    "allOf: null": (
        {"properties": {"a": {"allOf": None, "type": "number"}}},
        {"a": {"type": "number"}},
    ),
    "enum: null": ({"properties": {"a": {"enum": None}}}, {"a": {"type": "string"}}),
    "bounds that are words": (
        {"properties": {"a": {"type": "integer", "minimum": "1", "exclusiveMaximum": True}}},
        {"a": {"type": "integer"}},
    ),
    "additionalProperties: null": ({"properties": {}, "additionalProperties": None}, {}),
    "$defs: null": ({"properties": {}, "$defs": None}, {}),
    "a list of properties": (
        {"properties": [{"name": "a", "type": "boolean"}]},
        {"a": {"type": "boolean"}},
    ),
    "a reference by its place": (
        {"properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}},
        {"a": {"type": "integer"}, "b": {"type": "integer"}},
    ),
    "a choice of constants": (
        {"properties": {"a": {"oneOf": [{"const": "x", "title": "X"}, {"const": "y"}]}}},
        {"a": {"type": "string", "enum": ["x", "y"]}},
    ),
    "a choice of what is required": (
        {
            "properties": {
                "a": {
                    "properties": {"x": {"type": "string"}},
                    "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
                }
            }
        },
        {"a": {"type": "object", "properties": {"x": {"type": "string"}}}},
    ),
}


@pytest.mark.parametrize("case", NULLS.values(), ids=list(NULLS))
def test_what_is_malformed_is_repaired(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, properties = case
    found = normalize_schema({"type": "object", **schema})
    assert found["properties"] == properties
    assert violations(found) == []


def test_a_nullable_argument_is_an_optional_one() -> None:
    found = normalize_schema(
        {
            "properties": {
                "a": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
                "b": {"type": ["string", "null"]},
                "c": {"type": "string"},
            },
            "required": ["a", "b", "c", "gone"],
        }
    )
    assert found["required"] == ["c"]
    assert found["properties"]["a"] == {"type": "integer", "minimum": 1}


@pytest.mark.parametrize("kind", ["references", "depth", "breadth"])
def test_a_schema_that_explodes_is_bounded(kind: str) -> None:
    """One with self-references froze the process for 11 s and made 19 MB."""
    names = [f"D{at}" for at in range(30)]
    schema: dict[str, Any] = {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}
    schema["$defs"] = {name: {**schema} for name in names}
    if kind == "depth":
        schema = {"type": "string"}
        for _ in range(400):
            schema = {"type": "object", "properties": {"in": schema}}
    elif kind == "breadth":
        schema = {"properties": {f"p{at}": {"type": ["string", "null"]} for at in range(5_000)}}
    started = time.perf_counter()
    found = normalize_schema(schema)
    assert violations(found) == []
    assert len(msgspec.json.encode(found)) < 1_000_000
    assert time.perf_counter() - started < 2
