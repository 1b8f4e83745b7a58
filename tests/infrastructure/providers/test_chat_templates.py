"""What a local model reads of our tools, behind the chat templates of public models.

A template is a program that loops over `parameters.properties` and prints what it finds there; what
it does not look at, the model never sees. The shapes below are those loops, one of each kind. The
templates themselves come with the source of llama-cpp-python, without any weights:

    pip download llama-cpp-python --no-deps --no-binary llama-cpp-python
    KODE_CHAT_TEMPLATES=llama_cpp_python-0.3.36.tar.gz pytest THIS_FILE
"""

import importlib
import json
import os
import pkgutil
import tarfile
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jinja2 import ext, nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

import kode_sidecar.agent.tools
from kode_sidecar.core.kernel.contracts import ToolSpec
from kode_sidecar.infrastructure.providers.offered_tools import offered

SDIST = os.environ.get("KODE_CHAT_TEMPLATES", "")
FOREIGN = {
    "type": "object",
    "properties": {
        "limit": {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "default": None,
            "description": "How many.",
        },
        "state": {"$ref": "#/$defs/State", "description": "Which ones."},
        "labels": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "With which labels.",
        },
    },
    "required": ["state"],
    "$defs": {"State": {"enum": ["open", "closed"]}},
}
SHAPES = {
    "all of it as JSON": "{{ tool | tojson }}",
    "a line for each": (
        "{% for name, p in tool.function.parameters.properties.items() %}"
        "{{ name }}: {{ p.type | upper }} {{ p.description }}\n{% endfor %}"
    ),
    "a tag for each": (
        "{% for name, p in tool.function.parameters.properties | items %}<parameter>\n<name>"
        "{{ name }}</name><type>{{ p.type | string }}</type></parameter>{% endfor %}"
    ),
    "a type of TypeScript for each": (
        "type {{ tool.function.name }} = (_: { "
        "{% for name, p in tool.function.parameters.properties.items() %}{{ name }}"
        "{{ '' if name in tool.function.parameters.required else '?' }}: "
        "{% if p.type == 'string' %}string{% elif p.type in ['number', 'integer'] %}number"
        "{% elif p.type == 'boolean' %}boolean{% elif p.type == 'array' %}"
        "{{ p['items'].type }}[]{% elif p.type == 'object' %}object"
        "{% else %}{{ raise_exception('a type that it does not know') }}{% endif %}; "
        "{% endfor %} }) => any;"
    ),
    "a Python signature": (
        "def {{ tool.function.name }}({% for name, p in tool.function.parameters.properties"
        "| dictsort %}{{ name }}: {{ {'string': 'str', 'integer': 'int', 'number': 'float', "
        "'boolean': 'bool', 'array': 'list', 'object': 'dict'}[p.type] }}{% endfor %})"
    ),
    "the required ones apart": (
        "{% for name in tool.function.parameters.required %}{{ name }}!{% endfor %}"
        "{% for name in tool.function.parameters.properties if name not in "
        "tool.function.parameters.required %}{{ name }}?{% endfor %}"
    ),
}


class Generation(ext.Extension):
    """The tag of trainers around what the assistant says."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def templates() -> Iterator[tuple[str, str]]:
    if SDIST:
        with tarfile.open(SDIST) as packed:
            for member in packed:
                folder, _, name = member.name.rpartition("/")
                if folder.endswith("models/templates") and name.endswith(".jinja"):
                    file = packed.extractfile(member)
                    assert file is not None
                    yield name, file.read().decode()


REAL = dict(templates())


def environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", Generation],
    )

    def refuse(text: str) -> str:
        raise ValueError(text)

    def to_json(value: object, indent: int | None = None, **_: object) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=list)

    made.filters["tojson"] = to_json
    more: dict[str, Any] = {
        "raise_exception": refuse,
        "strftime_now": lambda _form: "2026-11-26",  # pyright: ignore[reportUnknownLambdaType]
    }
    made.globals.update(more)
    return made


def params() -> Iterator[type[msgspec.Struct]]:
    """Yield the params of every tool of ours."""
    package = kode_sidecar.agent.tools
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, one in vars(importlib.import_module(module.name)).items():
            if name.endswith("Params") and one.__module__ == module.name:
                yield one


def tools() -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tools as they are sent, and the names of all parameters, made unmistakable."""
    specs = [ToolSpec(one.__name__, "", msgspec.json.schema(one)) for one in params()]
    found: list[dict[str, Any]] = []
    marks: list[str] = []
    for spec in [*specs, ToolSpec("mcp__issues__list", "Lists.", FOREIGN)]:
        schema = offered(spec).schema
        new = {name: f"{name}_of_{spec.name}" for name in schema["properties"]}
        marks += new.values()
        schema = {
            **schema,
            "properties": {new[name]: one for name, one in schema["properties"].items()},
            "required": [new[name] for name in schema.get("required", ())],
        }
        function = {"name": spec.name, "description": "What it does.", "parameters": schema}
        found.append({"type": "function", "function": function})
    return found, marks


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_a_loop_of_each_kind_shows_every_parameter(shape: str) -> None:
    offers, marks = tools()
    template = environment().from_string(shape)
    text = "".join(template.render(tool=one) for one in offers)
    assert [mark for mark in marks if mark not in text] == []
    assert "None" not in text


@pytest.mark.skipif(not SDIST, reason="NOT RUN: KODE_CHAT_TEMPLATES names no source of templates")
@pytest.mark.parametrize("name", REAL or ["none"])
def test_a_template_of_the_wild_shows_every_parameter_or_none(name: str) -> None:
    offers, marks = tools()
    said = [{"role": "user", "content": "Hi"}]
    known = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
    known |= {"functions": json.dumps(offers), "datetime": "2026-11-26"}
    text = environment().from_string(REAL[name]).render(messages=said, tools=offers, **known)
    missing = [mark for mark in marks if mark not in text]
    assert missing in ([], marks)


@pytest.mark.skipif(not SDIST, reason="NOT RUN: KODE_CHAT_TEMPLATES names no source of templates")
def test_there_are_forty_of_them() -> None:
    assert len(REAL) >= 40
