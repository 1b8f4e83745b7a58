"""Read the head of a `SKILL.md`: the skill's metadata (B8). Sans-IO.

    ---
    id: release-notes
    name: Release notes
    description: How release notes are written here. Use it when a version is prepared.
    tags: [docs, release]
    permissions: [write_artifact]
    ---
    The body, which only `skill_text` reads.

Without an `id` the name is used, if it is a valid id. Other fields are ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.errors import KodeError

MAX_FRONT_MATTER_BYTES = 16_384
"""The most bytes that front matter may have, including its two `---` lines."""

MAX_DESCRIPTION_CHARS = 1_024
_MAX_NAME_CHARS = 100
_MAX_VALUES = 500
_MAX_ITEMS = 50
_MAX_ITEM_CHARS = 200

_BOM = b"\xef\xbb\xbf"
_FENCE = r"---[ \t]*"
_SPLIT = re.compile(rf"\A{_FENCE}\n(.*?)^{_FENCE}(?:\n|\Z)".encode(), re.DOTALL | re.MULTILINE)
_ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.)){0,63}")

_HINT = re.compile(rb"^(argument-hint:[ \t]*)([^\"'\s].*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class FrontMatter:
    """The metadata of a skill, each text on one line.

    `permissions` is what it says it needs: a declaration that grants nothing. `arguments` describes
    what may follow its name in a prompt. `for_models` and `for_users`: who may call it.
    """

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    arguments: str = ""
    for_models: bool = True
    for_users: bool = True


def split_skill(data: bytes, name: str) -> tuple[bytes, bytes]:
    """Return front matter and body of the file `name`, or of its beginning; LF line ends.

    Raises KodeError `SkillInvalid`.
    """
    data = data.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found = _SPLIT.match(data)
    if found:
        return found[1], data[found.end() :]
    if not re.match(rf"{_FENCE}(?:\n|\Z)".encode(), data):
        raise skill_invalid(
            name, 1, "", "begin the file with front matter between two lines of `---`"
        )
    if len(data) >= MAX_FRONT_MATTER_BYTES - 3:
        text = f"the front matter does not end within {MAX_FRONT_MATTER_BYTES:,} bytes"
        raise skill_invalid(name, 1, "", text)
    raise skill_invalid(name, 1, "", "the front matter does not end: close it with a line `---`")


def read_front_matter(data: bytes, name: str) -> FrontMatter:
    """Read the metadata from the beginning of the file `name`.

    `data` are its first `MAX_FRONT_MATTER_BYTES` at most.
    Raises KodeError `SkillInvalid` naming file, line and field; they are in its details, too.
    """
    front, _ = split_skill(data, name)
    fields = read_fields(with_quoted_hint(front), name)
    own_name = fields.text("name", _MAX_NAME_CHARS)
    return FrontMatter(
        id=fields.id(own_name),
        name=own_name,
        description=fields.text("description", MAX_DESCRIPTION_CHARS),
        tags=fields.texts("tags"),
        permissions=fields.texts("permissions"),
        arguments=fields.text("argument-hint", _MAX_ITEM_CHARS)
        if fields.has("argument-hint")
        else "",
        for_models=not fields.flag("disable-model-invocation", default=False),
        for_users=fields.flag("user-invocable", default=True),
    )


def with_quoted_hint(front: bytes) -> bytes:
    """Return front matter with its `argument-hint` as a text: `[file] [reason]` is no YAML."""
    return _HINT.sub(lambda found: found[1] + b"'" + found[2].replace(b"'", b"''") + b"'", front)


def read_fields(front: bytes, name: str) -> "Fields":
    """Read the front matter of the file `name`; raises as `read_front_matter` does."""
    # Imported late: PyYAML takes 10 ms, and most users have no files with front matter.
    from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml  # noqa: PLC0415

    try:
        document = read_yaml(utf8(front, name, first_line=2), only_text=True, max_nodes=_MAX_VALUES)
    except YamlProblem as error:
        # Add the line of the first `---`.
        raise skill_invalid(
            name, error.line + 1 if error.line else 1, "", f"no YAML: {error.problem}"
        ) from None
    value = document.value
    if not isinstance(value, dict):
        raise skill_invalid(name, 2, "", "expected lines such as `description: When to use it.`")
    return Fields(name, cast("dict[str, object]", value), document.lines)


def utf8(data: bytes, name: str, *, first_line: int = 1) -> str:
    """Return the text of a file, or of its lines from `first_line` on.

    Raises KodeError `SkillInvalid`.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise skill_invalid(name, line, "", "this is not UTF-8: save the file as UTF-8") from None


class Fields:
    """The fields of one front matter, checked as they are taken."""

    def __init__(self, file: str, values: Mapping[str, object], lines: Mapping[str, int]) -> None:
        self._file = file
        self._values = values
        self._lines = lines

    def id(self, name: str) -> str:
        """Return the field `id`, else the name if it can be one."""
        given = self._values.get("id")
        if given is None:
            if _ID.fullmatch(name):
                return name
            raise self.wrong("id", "is missing: add one such as `id: release-notes`")
        if not isinstance(given, str) or not _ID.fullmatch(given):
            raise self.wrong(
                "id", "use up to 64 of a-z, 0-9, `-`, `_` and `.`, such as release-notes"
            )
        return given

    def has(self, field: str) -> bool:
        """Return whether a field is there and says something."""
        return self._values.get(field) not in (None, "")

    def flag(self, field: str, *, default: bool) -> bool:
        """Return a field that is `true` or `false`."""
        given = self._values.get(field, "true" if default else "false")
        if given not in ("true", "false"):
            raise self.wrong(field, "expected true or false")
        return given == "true"

    def text(self, field: str, limit: int) -> str:
        """Return a field as one line of at most `limit` characters."""
        given = self._values.get(field)
        if given is None:
            raise self.wrong(field, "is missing")
        if not isinstance(given, str):
            raise self.wrong(field, "expected a text")
        text = one_line(given)
        if not text:
            raise self.wrong(field, "is empty")
        if len(text) > limit:
            raise self.wrong(field, f"has {len(text):,} characters; the limit is {limit:,}")
        return text

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of texts, each on one line; empty if the field is missing."""
        given = self._values.get(field, [])
        if given == "":
            return ()
        if not isinstance(given, list):
            raise self.wrong(field, "expected a list such as [one, two]")
        items = cast("list[object]", given)
        if len(items) > _MAX_ITEMS:
            raise self.wrong(field, f"has {len(items)} entries; the limit is {_MAX_ITEMS}")
        texts = [one_line(item) if isinstance(item, str) else "" for item in items]
        for number, text in enumerate(texts):
            if not text or len(text) > _MAX_ITEM_CHARS:
                text = f"expected a text of at most {_MAX_ITEM_CHARS} characters"
                raise self.wrong(f"{field}[{number}]", text)
        return tuple(texts)

    def wrong(self, field: str, problem: str) -> KodeError:
        """Return the error for a field, with its line."""
        line = self._lines.get(f"$.{field}", self._lines.get("$", 1))
        return skill_invalid(self._file, line + 1, field, problem)


def skill_invalid(file: str, line: int, field: str, problem: str) -> KodeError:
    """Return KodeError `SkillInvalid` with these values in its details; `field` may be empty."""
    what = f"`{field}`: {problem}" if field else problem
    details: dict[str, object] = {"file": file, "line": line}
    if field:
        details["field"] = field
    return KodeError("SkillInvalid", f"{file}, line {line}: {what}.", details=details)
