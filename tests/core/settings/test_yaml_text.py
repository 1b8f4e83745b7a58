"""YAML with lines: what is wrong is named where it stands, and nothing blows up."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text("aé语 \n#:'\"", max_size=9))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner),
    max_leaves=20,
)


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    steps: int = 1


class Job(Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    limits: Limits = Limits()
    skills: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("text", "line", "path", "reported"),
    [
        ("model: a\nlimits:\n  steps: many\n", 3, "limits.steps", "expected `int`, got `str`"),
        ("model: a\n\nskills:\n  - b\n  - 2\n", 5, "skills[1]", "expected `str`"),
        ("model: a\nlimits:\n  speed: 1\n", 3, "limits.speed", "unknown field `speed`"),
        ("limits:\n  steps: 2\n", 1, "", "missing required field `model`"),
        ("- a\n", 1, "", "expected `object`"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(
    text: str, line: int, path: str, reported: str
) -> None:
    with pytest.raises(YamlProblem, match=reported) as caught:
        read_yaml(text).convert(Job)
    assert (caught.value.line, caught.value.path) == (line, path)


@pytest.mark.parametrize(
    ("text", "line", "reported"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "the key `c` is there twice"),
        ("a: 1\nb: [1, 2\n", 3, "expected ',' or ']'"),
        ("a: 1\nb: \x01\n", 2, "a character"),
        ("a: !!python/object:os.system x\n", 1, "constructor"),
        ("a: 2026-99-99\n", 0, "a number or a date"),
        ("a: 1\n---\nb: 1\n", 2, "another document"),
        ("[" * 20_000, 0, "too deeply"),
        ("a: &a [*a]\n", 0, "too deeply"),
    ],
)
def test_what_is_no_sound_text_is_told_with_its_line(text: str, line: int, reported: str) -> None:
    with pytest.raises(YamlProblem, match=reported.replace("[", r"\[")) as caught:
        read_yaml(text)
    assert caught.value.line == line


def test_aliases_are_fine_and_those_that_multiply_are_not() -> None:  # W16
    assert read_yaml("a: &x [1]\nb: *x\n").value == {"a": [1], "b": [1]}
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]" for n in range(9)]
    with pytest.raises(YamlProblem, match="more than 100,000 values"):
        read_yaml("\n".join(lines))


def test_text_only_takes_scalars_as_they_are_written() -> None:
    text = "a: no\nb: 1.0\nc: 2026-01-02\nd:\ne: !!python/name:os.system x\n"
    assert read_yaml(text, only_text=True).value == {
        "a": "no",
        "b": "1.0",
        "c": "2026-01-02",
        "d": "",
        "e": "x",
    }


@given(VALUES)
def test_json_is_read_as_it_is(value: object) -> None:
    assert read_yaml(json.dumps(value)).value == value


@given(st.text(max_size=60) | st.text("abc:-[]{}&*!|>'\"#%@,? \n\t", max_size=60))
def test_any_text_is_a_value_or_a_problem(text: str) -> None:
    for only_text in (False, True):
        with suppress(YamlProblem):
            assert all(line >= 1 for line in read_yaml(text, only_text=only_text).lines.values())
