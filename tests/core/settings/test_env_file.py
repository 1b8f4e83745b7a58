"""The user's `.env`."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.settings.files import parse_env, read_env_file


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("NAME=value", "value"),
        ("export NAME=value", "value"),
        ("  NAME = value  ", "value"),
        ("NAME=", ""),
        ("NAME=''", ""),
        ("NAME=a b  # why", "a b"),
        ("NAME=a#b", "a#b"),
        ("NAME=# nothing", ""),
        ("NAME='a # \\n b' # why", "a # \\n b"),
        ('NAME="a # \\"b\\" \\\\ \\t"#why', 'a # "b" \\ \t'),
        ("NAME='C:\\new\\table'", "C:\\new\\table"),
        ("NAME=$HOME ${X}", "$HOME ${X}"),
        ("NAME=it's", "it's"),
        ("NAME=a=b==", "a=b=="),
        ("NAME=a\u2028b", "a\u2028b"),
        ("NAME=1\nNAME=2", "2"),
        ("\ufeff# head\r\n\r\nNAME=value\r\n", "value"),
    ],
)
def test_what_is_understood(line: str, value: str) -> None:
    assert parse_env(line) == ({"NAME": value}, [])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("sk-secret", "line 1: expected NAME=value"),
        ("1NAME=secret", "line 1: expected NAME=value"),
        ("=secret", "line 1: expected NAME=value"),
        ("A=1\nNAME='secret", "line 2: NAME has an opening quote but no closing one"),
        ('NAME="secret" more', "line 1: NAME has an opening quote but no closing one"),
        ('NAME="secret\\"', "line 1: NAME has an opening quote but no closing one"),
    ],
)
def test_what_is_not(line: str, problem: str) -> None:
    values, problems = parse_env(line)
    assert problems == [problem]
    assert "secret" not in repr(problems)
    assert "NAME" not in values


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), st.text()))
def test_double_quotes_carry_any_text(values: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        return text.replace("\n", "\\n").replace("\r", "")

    text = "\r\n".join(f'{name}="{quoted(value)}"' for name, value in values.items())
    expected = {name: value.replace("\r", "") for name, value in values.items()}
    assert parse_env(text) == (expected, [])


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    values, problems = parse_env(text)
    assert len(values) + len(problems) <= text.count("\n") + text.count("\r") + 1


def test_problems_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(b"\xef\xbb\xbfA=1\r\nB\r\n")
    assert read_env_file(path) == ({"A": "1"}, [".env, line 2: expected NAME=value"])
