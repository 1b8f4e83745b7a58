"""Tool schemas for hosts that take JSON Schema as it is. Sans-IO."""

from collections.abc import Mapping
from typing import Any


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with a root that is an object, which every host insists on."""
    return {**schema, "type": "object", "properties": schema.get("properties", {})}
