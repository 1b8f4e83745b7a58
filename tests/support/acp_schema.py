"""Holds messages of ACP against the published schema, method by method, in both directions."""

import json
from functools import cache
from typing import Any

from kode_sidecar.devtools.grading.acp_talk import AcpSchema
from tests.support.program import ROOT

SCHEMA = ROOT / "protocol" / "acp.schema.json"
# Ours, or unstable: known to no published schema of version 1.
UNSTABLE = frozenset({"session/fork"})


@cache
def schema() -> AcpSchema:
    """The published schema."""
    return AcpSchema(SCHEMA.read_bytes())


def check(method: str, kind: str, value: Any) -> None:
    """Fail for params (`params`) or a result (`result`) that the schema does not allow."""
    if method in UNSTABLE or method.startswith("_"):
        return
    assert (method, kind) in schema().by_method
    wrong = schema().problems(method, kind, value)
    assert not wrong, f"{method} {kind}: {wrong}\n{json.dumps(value)[:2000]}"


def check_error(error: Any) -> None:
    """Fail for an error object that the schema does not allow."""
    assert schema().problems("", "error", error) == [], error
