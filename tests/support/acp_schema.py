"""Holds messages of ACP against the published schema, method by method, in both directions."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tests.support.program import ROOT

SCHEMA = ROOT / "protocol" / "acp" / "schema.json"
# Ours, or unstable: known to no published schema of version 1.
UNSTABLE = frozenset({"session/fork"})
_TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


@cache
def definitions() -> Mapping[str, Any]:
    """All definitions by name."""
    return json.loads(SCHEMA.read_bytes())["$defs"]


@cache
def by_method() -> Mapping[tuple[str, str], str]:
    """`(method, kind)` to the definition of its params (`params`) or its result (`result`)."""
    found: dict[tuple[str, str], str] = {}
    for name, schema in definitions().items():
        if "x-method" in schema:
            kind = "result" if name.endswith("Response") else "params"
            found[schema["x-method"], kind] = name
    return found


def problems(value: Any, schema: Mapping[str, Any], path: str = "$") -> Iterator[str]:
    """What is wrong with a value, by the words of JSON Schema that the schema of ACP uses."""
    if "$ref" in schema:
        yield from problems(value, definitions()[schema["$ref"].rpartition("/")[2]], path)
    kinds = schema.get("type")
    if kinds is not None and not _is(value, [kinds] if isinstance(kinds, str) else kinds):
        yield f"{path}: {value!r:.80} is not {kinds}"
        return
    yield from _scalars(value, schema, path)
    if isinstance(value, dict):
        yield from _members(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        for at, item in enumerate(value):
            yield from problems(item, schema["items"], f"{path}[{at}]")
    yield from _forms(value, schema, path)


def _scalars(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r:.80} is not {schema['const']!r}"
    if "minLength" in schema and isinstance(value, str) and len(value) < schema["minLength"]:
        yield f"{path}: too short"
    if "minimum" in schema and _is(value, ["number"]) and value < schema["minimum"]:
        yield f"{path}: {value} is too small"


def _forms(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for part in schema.get("allOf", ()):
        yield from problems(value, part, path)
    for word in ("anyOf", "oneOf"):
        wrong = [list(problems(value, one, path)) for one in schema.get(word, ())]
        if wrong and all(wrong):
            yield f"{path}: none of {word} fits: {min(wrong, key=len)}"
        if word == "oneOf" and sum(not one for one in wrong) > 1:
            yield f"{path}: more than one of oneOf fits"
    if "not" in schema and not list(problems(value, schema["not"], path)):
        yield f"{path}: fits what it must not"


def _members(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: {name} is missing"
    more = schema.get("additionalProperties")
    for name, member in value.items():
        if name in known:
            yield from problems(member, known[name], f"{path}.{name}")
        elif isinstance(more, dict):
            yield from problems(member, more, f"{path}.{name}")


def _is(value: Any, kinds: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _TYPES[kind]) for kind in kinds)


def check(method: str, kind: str, value: Any) -> None:
    """Fail for params (`params`) or a result (`result`) that the schema does not allow."""
    if method in UNSTABLE or method.startswith("_"):
        return
    name = by_method()[method, kind]
    if kind == "result" and value is None:
        value = {}
    wrong = list(problems(value, definitions()[name]))
    assert not wrong, f"{method} {kind}: {wrong}\n{json.dumps(value)[:2000]}"


def check_error(error: Any) -> None:
    """Fail for an error object that the schema does not allow."""
    assert not list(problems(error, definitions()["Error"])), error
