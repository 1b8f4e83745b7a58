"""Shows the questions that a server asks during a call as choices (MCP, elicitation).

A field is a choice, a yes or no, or the server's own default. A field that would have to be typed
is left out if it is optional; otherwise the question counts as not answered. So does a question
that cannot be shown whole, or whose choices look the same.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from kode_sidecar.core.text.shown_text import one_line, visible
from kode_sidecar.core.text.uris import web_address
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.config import is_safe
from kode_sidecar.infrastructure.mcp.contracts import Json, as_object

Choose = Callable[[str, Sequence[str], bool], Awaitable[Sequence[str] | None]]
"""`(question, choices, several)`: returns the labels that the user chose, or None."""

_MOST_FIELDS, _MOST_CHOICES = 20, 50
_LABEL_CHARS, _QUESTION_CHARS = 200, 2_000
_LEFT_OUT = "(leave it out)"


def a_few(choose: Choose, most: int) -> Choose:
    """Return `choose` for one call: after `most` questions, or one unanswered, it asks no more."""
    left = most

    async def asked(question: str, choices: Sequence[str], several: bool) -> Sequence[str] | None:
        nonlocal left
        if left <= 0:
            return None
        left -= 1
        chosen = await choose(question, choices, several)
        left = left if chosen else 0
        return chosen

    return asked


async def elicited(server: str, choose: Choose, message: str, schema: Json) -> Json | None:
    """Return the user's answers by field; None if one is missing or would have to be typed."""
    fields = as_object(schema.get("properties"))
    if len(fields) > _MOST_FIELDS:
        return None
    required: Any = schema.get("required") or ()
    asks = f"The MCP server {server} asks: {_quoted_lines(message)}"
    if not fields:
        if len(asks) > _QUESTION_CHARS:
            return None
        agreed = await choose(asks, ("Yes", "No"), False)
        return {} if agreed and agreed[0] == "Yes" else None
    answers: Json = {}
    for name, raw in fields.items():
        field = as_object(raw)
        values = _values(field)
        if not values:
            if name in required:
                return None
            continue
        several = field.get("type") == "array"
        if name not in required and not several:
            values[_LEFT_OUT] = None
        about = f"{field.get('title') or name}: {field.get('description') or ''}"
        question = f"{asks}\n> {_quoted_lines(about)}"
        if len(question) > _QUESTION_CHARS or any(len(one) > _LABEL_CHARS for one in values):
            return None
        chosen = await choose(question, tuple(values), several)
        if not chosen:
            return None
        picked = [values[label] for label in chosen if label in values]
        if several:
            answers[name] = picked
        elif chosen[0] != _LEFT_OUT:
            answers[name] = picked[0]
    return answers


def address_to_open(params: Json) -> str:
    """Return the address that a server wants the user to open. Raises KodeError `InvalidParams`."""
    address = str(params.get("url") or "")
    if web_address(address) is None or not is_safe(address):
        text = "`url` must be a web address that begins with https:// and names no user."
        raise KodeError("InvalidParams", text)
    return address


def _values(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field's values by their labels; empty if the value has to be typed."""
    if field.get("type") == "array":
        return _values({**as_object(field.get("items")), "type": "string"})
    if field.get("type") == "boolean":
        return {"Yes": True, "No": False}
    options: Any = field.get("oneOf") or field.get("anyOf")
    if isinstance(options, list):
        named = [as_object(one) for one in cast(list[Any], options)]
        pairs = [(one.get("title"), one.get("const")) for one in named if "const" in one]
    elif isinstance(field.get("enum"), list):
        names: Any = field.get("enumNames") or field["enum"]
        pairs = list(zip(names, field["enum"], strict=False))
    elif "default" in field:
        pairs = [(field["default"], field["default"])]
    else:
        pairs = []
    labels = {_label(title, value): value for title, value in pairs[:_MOST_CHOICES]}
    return labels if len(labels) == len(pairs) else {}


def _label(title: object, value: object) -> str:
    return one_line(visible(str(value if title is None else title)))


def _quoted_lines(text: str) -> str:
    """Return a server's text so that no line of it looks like one of ours."""
    return "\n> ".join(visible(text).split("\n"))
