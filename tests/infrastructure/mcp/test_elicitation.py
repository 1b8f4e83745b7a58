"""What servers ask the user becomes choices, and choices become the values they stand for."""

from collections.abc import Sequence
from typing import Any

import pytest

from kode_sidecar.infrastructure.mcp.elicitation import elicited


async def ask(schema: dict[str, Any], *chosen: Sequence[str] | None) -> tuple[Any, list[Any]]:
    asked: list[Any] = []
    answers = iter(chosen)

    async def choose(question: str, choices: Sequence[str], several: bool) -> Sequence[str] | None:
        asked.append((question, list(choices), several))
        return next(answers)

    return await elicited("git", choose, "Go\x1b[2J on?", schema), asked


def fields(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("field", "chosen", "value"),
    [
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, ["B"], "b"),
        ({"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]}, ["two"], 2),
        ({"type": "boolean"}, ["No"], False),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, ["x", "y"], ["x", "y"]),
        ({"type": "number", "default": 4.5}, ["4.5"], 4.5),
    ],
)
async def test_each_kind_of_field(field: dict[str, Any], chosen: list[str], value: Any) -> None:
    found, _ = await ask(fields(["f"], f=field), chosen)
    assert found == {"f": value}


async def test_a_field_may_be_left_out_and_what_must_be_typed_is() -> None:
    schema = fields(name={"type": "string"}, colour={"type": "string", "enum": ["red"]})
    found, asked = await ask(schema, ["(leave it out)"])
    assert found == {}
    assert [choices for _, choices, _ in asked] == [["red", "(leave it out)"]]


async def test_a_word_that_has_to_be_typed_is_no_answer() -> None:
    assert await ask(fields(["name"], name={"type": "string"})) == (None, [])


@pytest.mark.parametrize("chosen", [None, []])
async def test_who_closes_the_question_gives_no_answer(chosen: list[str] | None) -> None:
    found, _ = await ask(fields(["f"], f={"type": "boolean"}), chosen)
    assert found is None


@pytest.mark.parametrize(("chosen", "found"), [(["Yes"], {}), (["No"], None)])
async def test_a_plain_question_is_a_yes_or_no(chosen: list[str], found: Any) -> None:
    answered, ((question, choices, _),) = await ask({}, chosen)
    assert (answered, choices) == (found, ["Yes", "No"])
    assert "\x1b" not in question


@pytest.mark.parametrize(
    "schema", [{"properties": 3}, {"properties": {"a": 3}}, fields(a={"enum": 3})]
)
async def test_a_schema_that_is_none_is_no_error(schema: dict[str, Any]) -> None:
    assert (await ask(schema, ["Yes"]))[0] in ({}, None)


async def test_no_line_of_a_server_looks_like_ours() -> None:
    asked: list[str] = []

    async def choose(question: str, _choices: Sequence[str], _several: bool) -> Sequence[str]:
        asked.append(question)
        return ["Yes"]

    schema = fields(["f"], f={"type": "boolean", "title": "a\u202e", "description": "b\n? c"})
    message = "Go\nThe MCP server other asks: on?\x9b"
    assert await elicited("git", choose, message, schema) == {"f": True}
    first, *more = asked[0].split("\n")
    assert first == "The MCP server git asks: Go"
    assert more == ["> The MCP server other asks: on?", "> a<U+202E>: b", "> ? c"]


@pytest.mark.parametrize(
    "schema",
    [
        fields(["f"], f={"enum": ["a", "a "]}),
        fields(["f"], f={"oneOf": [{"const": 1, "title": "no"}, {"const": 2, "title": "no"}]}),
        fields(["f"], f={"enum": ["x" * 201]}),
        fields(["f"], f={"enum": [str(number) for number in range(51)]}),
        fields(["f"], f={"type": "boolean", "description": "x" * 2_000}),
    ],
    ids=["equal", "equal titles", "long", "many", "long question"],
)
async def test_what_cannot_be_shown_whole_is_not_asked(schema: dict[str, Any]) -> None:
    assert await ask(schema, ["Yes"]) == (None, [])
