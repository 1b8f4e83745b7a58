"""Holds messages of ACP against the published schema, method by method, in both directions."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.support.json_schema import Schema
from tests.support.program import ROOT

SCHEMA = ROOT / "protocol" / "acp" / "schema.json"
# Ours, or unstable: known to no published schema of version 1.
UNSTABLE = frozenset({"session/fork"})


@cache
def schema() -> Schema:
    """The published schema."""
    return Schema(SCHEMA)


@cache
def definitions() -> Mapping[str, Any]:
    """All definitions by name."""
    return schema().definitions


@cache
def by_method() -> Mapping[tuple[str, str], str]:
    """`(method, kind)` to the definition of its params (`params`) or its result (`result`)."""
    found: dict[tuple[str, str], str] = {}
    for name, schema in definitions().items():
        if "x-method" in schema:
            kind = "result" if name.endswith("Response") else "params"
            found[schema["x-method"], kind] = name
    return found


def check(method: str, kind: str, value: Any) -> None:
    """Fail for params (`params`) or a result (`result`) that the schema does not allow."""
    if method in UNSTABLE or method.startswith("_"):
        return
    name = by_method()[method, kind]
    if kind == "result" and value is None:
        value = {}
    wrong = list(schema().problems(value, definitions()[name]))
    assert not wrong, f"{method} {kind}: {wrong}\n{json.dumps(value)[:2000]}"


def check_error(error: Any) -> None:
    """Fail for an error object that the schema does not allow."""
    assert not list(schema().problems(error, definitions()["Error"])), error
