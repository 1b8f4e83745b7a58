"""The head of a `SKILL.md`: what it may say, and what is told where it is wrong (B8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.context.skill_front_matter import (
    MAX_FRONT_MATTER_BYTES,
    FrontMatter,
    read_front_matter,
    split_skill,
)
from kode_sidecar.errors import KodeError

WHOLE = """---
id: release-notes
name: Release notes
description: >
  How release notes
  are written here.
tags: [docs, "yes"]
permissions:
  - write_artifact
license: MIT
---
The body.
"""
READ = FrontMatter(
    "release-notes",
    "Release notes",
    "How release notes are written here.",
    ("docs", "yes"),
    ("write_artifact",),
)
PLAIN = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=40
)


def refusal(text: str | bytes) -> KodeError:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(KodeError) as caught:
        read_front_matter(data, "skills/x/SKILL.md")
    assert caught.value.code == "SkillInvalid"
    assert caught.value.category == "skill"
    return caught.value


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_all_fields_with_any_line_end_and_a_bom(end: str, bom: bytes) -> None:
    data = bom + WHOLE.replace("\n", end).encode()
    assert read_front_matter(data, "SKILL.md") == READ
    assert split_skill(data, "SKILL.md")[1] == b"The body.\n"


def test_texts_are_taken_as_they_are_written() -> None:
    text = "---\nname: no\ndescription: 1.0\ntags: [2026-01-02, on]\n---"
    assert read_front_matter(text.encode(), "x") == FrontMatter(
        "no", "no", "1.0", ("2026-01-02", "on")
    )


def test_a_name_that_looks_like_an_id_is_one() -> None:
    found = read_front_matter(b"---\nname: pdf-forms\ndescription: Fill forms.\n---\n", "x")
    assert found.id == "pdf-forms"


def test_a_text_cannot_write_lines_of_its_own_nor_hide_anything() -> None:  # W13
    text = 'name: "a\\nb"\nid: a\ndescription: "x\\u202e\\U000E0041\\u200b y\\x1b[0m"\n'
    found = read_front_matter(f"---\n{text}---\n".encode(), "x")
    assert (found.name, found.description) == ("a b", "x y [0m")


@pytest.mark.parametrize(
    ("text", "line", "field", "reported"),
    [
        ("", 1, None, "begin the file with front matter"),
        ("# Title\n", 1, None, "begin the file with front matter"),
        ("---x\n---\n", 1, None, "begin the file with front matter"),
        ("---\nid: a\n", 1, None, "close it with a line `---`"),
        ("---\n---\n", 2, None, "expected lines such as"),
        ("---\n- a\n---\n", 2, None, "expected lines such as"),
        ("---\nid: a\nname: [\n---\n", 4, None, "no YAML"),
        ("---\nid: a\nid: b\n---\n", 3, None, "the key `id` is there twice"),
        ("---\nid: a\n\nname: \x01\n---\n", 4, None, "a character that YAML"),
        ("---\nid: a\nname: A\n---\n", 2, "description", "is missing"),
        ("---\nname: A b\ndescription: c\n---\n", 2, "id", "is missing: add one"),
        ("---\nid: A B\nname: A\ndescription: c\n---\n", 2, "id", "use up to 64"),
        ("---\nid: ../x\nname: A\ndescription: c\n---\n", 2, "id", "use up to 64"),
        ("---\nid: a..b\nname: A\ndescription: c\n---\n", 2, "id", "use up to 64"),
        ("---\nid: a\nname:\ndescription: c\n---\n", 3, "name", "is empty"),
        ("---\nid: a\nname: {b: c}\ndescription: c\n---\n", 3, "name", "expected a text"),
        ("---\nid: a\nname: A\ndescription: [c]\n---\n", 4, "description", "expected a text"),
        ("---\nname: a\ndescription: c\ntags: docs\n---\n", 4, "tags", "expected a list"),
        ("---\nname: a\ndescription: c\ntags:\n- x\n- {}\n---\n", 6, "tags[1]", "expected a text"),
        ("---\nname: a\ndescription: c\npermissions: all\n---\n", 4, "permissions", "a list"),
        (f"---\nname: a\ndescription: {'c' * 1025}\n---\n", 3, "description", "1,025"),
        (f"---\nname: a\ndescription: c\ntags: {['t'] * 51}\n---\n", 4, "tags", "51 entries"),
    ],
)
def test_what_is_malformed_is_told_with_file_line_and_field(
    text: str, line: int, field: str | None, reported: str
) -> None:
    error = refusal(text)
    assert reported in error.message
    assert error.message.startswith(f"skills/x/SKILL.md, line {line}: ")
    expected = {"file": "skills/x/SKILL.md", "line": line}
    assert error.details == expected | ({"field": field} if field else {})


def test_what_is_not_utf8_is_told_with_its_line() -> None:
    error = refusal("---\nid: a\nname: 发布\n---\n".encode("gbk"))
    assert error.message == "skills/x/SKILL.md, line 3: this is not UTF-8: save the file as UTF-8."
    assert "begin the file" in refusal("---\nid: a\n---\n".encode("utf-16")).message


def test_a_head_without_an_end_is_not_looked_for_any_longer() -> None:  # W16
    beginning = ("---\n" + "# comment\n" * 9_999).encode()[:MAX_FRONT_MATTER_BYTES]
    assert f"does not end within {MAX_FRONT_MATTER_BYTES:,} bytes" in refusal(beginning).message


@given(PLAIN, PLAIN, st.lists(PLAIN, max_size=5), st.binary(max_size=50))
def test_what_is_written_is_read(name: str, about: str, tags: list[str], body: bytes) -> None:
    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    listed = ", ".join(map(quoted, tags))
    head = (
        f"---\nid: x\nname: {quoted(name)}\ndescription: {quoted(about)}\ntags: [{listed}]\n---\n"
    )
    found = read_front_matter(head.encode() + body, "x")
    assert found == FrontMatter("x", name, about, tuple(tags))


@given(st.binary(max_size=120) | st.text("-:ab \n\r[]{}'\"&*#|>", max_size=60).map(str.encode))
def test_any_bytes_are_front_matter_or_a_told_problem(noise: bytes) -> None:
    for data in (noise, b"---\n" + noise, b"---\n" + noise + b"\n---\n"):
        try:
            read_front_matter(data, "f")
        except KodeError as error:
            reported = error
        else:
            continue
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
        line = (reported.details or {}).get("line")
        assert reported.code == "SkillInvalid"
        assert isinstance(line, int)
        assert 1 <= line <= lines + data.count(b"\xc2\x85") + data.count(b"\xe2\x80") + 1
