"""Load a skill for the model: its body and a list of its files, within a budget of bytes (B8).

References and templates are files in the skill's folders of these names. The list shows each one
by its first heading or line. The whole text, as UTF-8, never exceeds the budget.
"""

import os
from dataclasses import dataclass

from kode_sidecar.agent.context.skill_front_matter import split_skill, utf8
from kode_sidecar.agent.context.skills import SKILL_FILE, Skill
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import (
    invisible_characters,
    is_text,
    one_line,
    without_controls,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import read_beginning, read_regular
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, locate, make_roots

SKILL_BYTES = 50_000
"""The default budget, in bytes: as much as a tool result holds."""

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 200
_FOLDERS = ("references", "templates")
_SUMMARY_BYTES = 4_096
_SUMMARY_CHARS = 160


@dataclass(frozen=True)
class LoadedSkill:
    """The text for the model. It lists `files`, and leaves out `left_out` more."""

    skill: Skill
    text: str
    files: tuple[str, ...] = ()
    left_out: int = 0


def load_skill(skill: Skill, budget: int = SKILL_BYTES) -> LoadedSkill:
    """Read a skill and the summaries of its files; blocks.

    Raises KodeError `TooLarge` if the body alone exceeds the budget, `SkillInvalid` if it is not
    UTF-8, `Denied` if it holds credentials, and the errors of reading.
    """
    located = _locate(skill, SKILL_FILE)
    body = _body(skill, located)
    files, more = _files(skill)
    heading = f"\n\n[Files of this skill; read one with load_skill, id `{skill.id}` and `file`:]"
    text = f"{_head(skill, body)}\n{body}"
    room = budget - len(text.encode())
    if files:
        room -= len((heading + _left_out(len(files) + more)).encode())
    if room < 0:
        raise KodeError(
            "TooLarge",
            f"{skill.file} and what goes with it has {budget - room:,} bytes; the limit is "
            f"{budget:,}. Move parts of it into files in its folder {_FOLDERS[0]}.",
        )
    lines: list[str] = []
    for file in files:
        line = f"\n- {file}: {_summary(skill, file)}"
        room -= len(line.encode())
        if room < 0:
            break
        lines.append(line)
    left_out = len(files) - len(lines) + more
    if files:
        text += heading + "".join(lines) + (_left_out(left_out) if left_out else "")
    return LoadedSkill(skill, text, tuple(files[: len(lines)]), left_out)


def read_skill_file(skill: Skill, path: str, start: int = 1, budget: int = SKILL_BYTES) -> str:
    """Return a file of the skill's folder from line `start` on, cut at the budget. Blocks.

    Raises KodeError as `load_skill` does, `PathOutsideRoots` for a path that leads out of the
    skill's folder, and `InvalidArguments` if line `start` does not exist.
    """
    located = _locate(skill, path)
    text = _text(skill, located)
    lines = split_lines(text) or [""]
    if start > len(lines):
        message = f"{located.display} has {len(lines)} lines, so there is no line {start}."
        raise KodeError("InvalidArguments", message)
    whole = "".join(lines[start - 1 :])
    head = f"[{located.display} of the skill `{skill.id}`, from line {start} of {len(lines)}]\n"
    if len((head + whole).encode()) <= budget:
        return head + whole
    return head + _cut(lines, start, budget - len(head.encode()))


def _cut(lines: list[str], start: int, room: int) -> str:
    room -= len(_next(len(lines)).encode())
    last = start - 1
    while last < len(lines) and (room := room - len(lines[last].encode())) >= 0:
        last += 1
    if last < start:
        # One line exceeds the budget: return its beginning.
        kept = lines[start - 1].encode()[: room + len(lines[start - 1].encode())]
        return kept.decode(errors="ignore") + _next(start + 1)
    return "".join(lines[start - 1 : last]) + _next(last + 1)


def _next(line: int) -> str:
    return f"\n[cut here; next: start={line}]"


def _left_out(count: int) -> str:
    return f"\n- [{count} more are not listed]"


def _head(skill: Skill, body: str) -> str:
    about = skill.about
    parts = [f"Skill `{skill.id}`: {about.name}"]
    if about.permissions:
        wanted = ", ".join(about.permissions)
        parts.append(f"it says it needs {wanted}, which grants nothing")
    if hidden := invisible_characters(body):
        parts.append(f"it holds invisible characters ({', '.join(hidden[:8])}): tell the user")
    return f"[{'; '.join(parts)}]"


def _body(skill: Skill, located: Location) -> str:
    data = _read(skill, located)
    front, body = split_skill(data, skill.file)
    # Both `---` lines come before the body.
    text = utf8(body, skill.file, first_line=3 + front.count(b"\n"))
    return _checked(skill.file, text).strip("\n")


def _text(skill: Skill, located: Location) -> str:
    name = f"{skill.file.removesuffix(SKILL_FILE)}{located.display}"
    data = _read(skill, located).removeprefix(b"\xef\xbb\xbf")
    text = utf8(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), name)
    return _checked(name, text)


def _checked(name: str, text: str) -> str:
    if what := find_secret(text):
        raise KodeError("Denied", f"{name} is not read: it holds {what}.")
    return without_controls(text)


def _read(skill: Skill, located: Location) -> bytes:
    if located.is_secret:
        text = f"{located.display} is not read: by its name it holds credentials."
        raise KodeError("Denied", text)
    try:
        return read_regular(located, MAX_FILE_BYTES)
    except KodeError as error:
        if error.code != "TooLarge":
            raise
        text = (
            f"{located.display} of the skill `{skill.id}` is larger than {MAX_FILE_BYTES:,} bytes."
        )
        raise KodeError("TooLarge", text) from None


def _locate(skill: Skill, path: str) -> Location:
    try:
        return locate(path, make_roots([skill.folder]), os.path.exists)
    except KodeError as error:
        text = error.message.replace("open folder", "folder of the skill")
        raise KodeError(error.code, text) from None


def _files(skill: Skill) -> tuple[list[str], int]:
    """Return references, then templates, by name, and the number of the rest. Skips links."""
    found: list[str] = []
    for folder in _FOLDERS:
        start = _locate(skill, folder)
        listing = list_tree(start, lambda _: True, MAX_FILES, lambda: False)
        found += ["/".join(file.parts) for file in listing.files if not file.is_link]
    named = filter(is_text, found)
    kept = [name for name in named if not _locate(skill, name).is_secret]
    return kept[:MAX_FILES], max(0, len(kept) - MAX_FILES)


def _summary(skill: Skill, file: str) -> str:
    """Return the first heading of a file, else its first line; reads only the beginning."""
    try:
        data, status = read_beginning(_locate(skill, file), _SUMMARY_BYTES)
    except KodeError as error:
        return f"[{one_line(error.message)}]"
    text = data.decode("utf-8-sig", errors="ignore")
    if b"\0" in data:
        return f"[not a text; {status.size:,} bytes]"
    lines = [line for line in map(one_line, text.splitlines()) if line.strip("-=*#")]
    heading = next((line for line in lines if line.startswith("#")), None)
    first = (heading or (lines[0] if lines else "[empty]")).lstrip("# ")
    short = first if len(first) <= _SUMMARY_CHARS else f"{first[:_SUMMARY_CHARS]}…"
    if find_secret(text):
        short = "[it holds credentials]"
    return f"{short} ({status.size:,} bytes)"
