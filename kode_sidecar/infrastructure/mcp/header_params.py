"""Copies arguments into the HTTP headers that a server asks for, so proxies can route. Pure.

Source: MCP 2026-07-28, "Transports", custom headers: a property of a tool's schema may carry
`x-mcp-header`. A tool whose `x-mcp-header` is invalid must not be called.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kode_sidecar.infrastructure.mcp.contracts import Json, as_object

_KEY = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_PRIMITIVE = ("string", "integer", "boolean")
_BEHIND_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_BEHIND_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_BEHIND_MAP = ("patternProperties", "dependentSchemas", "$defs", "definitions")
_MOST_POSITIONS = 10_000


def are_sound(schema: Json) -> bool:
    """Return whether every `x-mcp-header` in a tool's schema is valid in value and position."""
    seen: set[str] = set()
    for path, found in _positions(schema):
        if _KEY not in found:
            continue
        name = found[_KEY]
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name):
            return False
        if found.get("type") not in _PRIMITIVE or name.lower() in seen:
            return False
        seen.add(name.lower())
    return True


def param_headers(schema: Json, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of one call; an argument without a value has none."""
    headers: dict[str, str] = {}
    for path, found in _positions(schema):
        if not path or not isinstance(name := found.get(_KEY), str):
            continue
        value: Any = arguments
        for key in path:
            value = cast(Json, value).get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            headers[f"mcp-param-{name}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[f"mcp-param-{name}"] = header_value(str(value))
    return headers


def header_value(text: str) -> str:
    """Encode a text for a header: in marked base64 if a header would not carry it unchanged."""
    marked = text.startswith("=?base64?") and text.endswith("?=")
    if _PLAIN.fullmatch(text) and text == text.strip() and not marked:
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _positions(schema: Json) -> Iterator[tuple[tuple[str, ...] | None, Json]]:
    """Yield every schema in a schema, with the chain of property names to it.

    The chain is None if it leads through anything but `properties`. References are not followed.
    """
    todo: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    for _ in range(_MOST_POSITIONS):
        if not todo:
            return
        path, node = todo.pop(0)
        if not isinstance(node, dict):
            continue
        found = cast(Json, node)
        yield path, found
        properties = as_object(found.get("properties"))
        for name, below in properties.items():
            todo.append((None if path is None else (*path, name), below))
        todo += [(None, found[key]) for key in _BEHIND_ONE if key in found]
        for key in _BEHIND_LIST:
            several = found.get(key)
            if isinstance(several, list):
                todo += [(None, one) for one in cast(list[Any], several)]
        for key in _BEHIND_MAP:
            todo += [(None, one) for one in as_object(found.get(key)).values()]
