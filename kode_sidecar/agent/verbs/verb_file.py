"""Read the file of a verb: Markdown with front matter, or a TOML file of Gemini CLI.

    ---
    title: Explain
    description: Explain the selected code.
    arguments: "[what to look at]"
    context: [selection, symbol, file]
    ---
    The prompt, with `$ARGUMENTS`, `$1` to `$9` and `@file`.

The name of the file is the verb's name. Without front matter the first line is the description.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from kode_sidecar.agent.context.skill_front_matter import (
    MAX_DESCRIPTION_CHARS,
    Fields,
    read_fields,
    split_skill,
    utf8,
    with_quoted_hint,
)
from kode_sidecar.core.domain.event_parts import APPLYING_MODES, EFFORTS, Effort, Mode
from kode_sidecar.core.protocol.process import VerbContext, VerbSource
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import clipped, one_line, without_controls, without_hidden
from kode_sidecar.errors import KodeError

MAX_VERB_BYTES = 100_000
MAX_NAME_CHARS = 64
_MAX_TEXT = 200
_MODES = cast("tuple[Mode, ...]", get_args(Mode))
_CONTEXTS = cast("tuple[VerbContext, ...]", get_args(VerbContext))
_NAME = re.compile(rf"\w[\w.:-]{{0,{MAX_NAME_CHARS - 1}}}")

T = TypeVar("T", bound=str)


@dataclass(frozen=True)
class VerbPlace:
    """Where the file of a verb is. `file` names it in messages, `path` is None for built-in ones.

    `foreign`: another tool's file, whose agents, models and modes mean nothing here.
    """

    name: str
    source: VerbSource
    file: str
    path: Path | None = None
    foreign: bool = False


@dataclass(frozen=True)
class Verb:
    """A named prompt. All but `body` is shown to users: one line each, nothing hidden.

    `context` is what of the editor's state goes with it. `agent`, `mode`, `model` and `effort`
    hold for the turn that it starts.
    """

    place: VerbPlace
    title: str
    description: str
    body: str
    arguments: str = ""
    context: tuple[VerbContext, ...] = ()
    agent: str | None = None
    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None

    @property
    def name(self) -> str:
        """The word that users type after the slash."""
        return self.place.name


def is_verb_name(name: str) -> bool:
    """Return whether users can type a name: letters and digits of any script, `_`, `-`, `.`, `:`"""
    return _NAME.fullmatch(name) is not None


def read_verb(data: bytes, place: VerbPlace) -> Verb:
    """Read a verb. Raises KodeError `SkillInvalid` with file and line, or `Denied` for secrets."""
    if place.file.endswith(".toml"):
        return _read_toml(data, place)
    if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
        return _without_fields(utf8(data, place.file), place)
    front, rest = split_skill(data, place.file)
    body = _body(utf8(rest, place.file, first_line=3 + front.count(b"\n")), place)
    fields = read_fields(with_quoted_hint(front) or b"{}", place.file)
    read = _FieldsOfVerb(fields)
    known = {} if place.foreign else read.choices(loosens=place.source != "project")
    return Verb(
        place,
        title=read.text("title") or place.name,
        description=read.text("description", MAX_DESCRIPTION_CHARS) or _first_line(body, place),
        body=body,
        arguments=read.text("arguments") or read.text("argument-hint"),
        context=read.context(),
        **known,
    )


def _without_fields(text: str, place: VerbPlace) -> Verb:
    body = _body(text, place)
    return Verb(place, place.name, _first_line(body, place), body)


def _read_toml(data: bytes, place: VerbPlace) -> Verb:
    import tomllib  # noqa: PLC0415

    try:
        values = tomllib.loads(utf8(data, place.file))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        text = f"{place.file}: no TOML: {error}."
        raise KodeError("SkillInvalid", text, details={"file": place.file}) from None
    prompt, about = values.get("prompt"), values.get("description")
    if not isinstance(prompt, str):
        text = f"{place.file}: `prompt` is missing: add the text of the prompt."
        details: dict[str, object] = {"file": place.file, "field": "prompt"}
        raise KodeError("SkillInvalid", text, details=details)
    body = _body(prompt, place)
    shown = clipped(one_line(about), MAX_DESCRIPTION_CHARS) if isinstance(about, str) else ""
    return Verb(place, place.name, shown or _first_line(body, place), body)


def _body(text: str, place: VerbPlace) -> str:
    if what := find_secret(text):
        raise KodeError("Denied", f"{place.file} is not read: it holds {what}.")
    body = without_hidden(without_controls(text.replace("\r\n", "\n"))).strip()
    if not body:
        text = f"{place.file}: it holds no prompt: write what the model is to do."
        raise KodeError("SkillInvalid", text, details={"file": place.file})
    return body


def _first_line(body: str, place: VerbPlace) -> str:
    first = next((line for line in body.splitlines() if line.strip("#-*= ")), place.name)
    return clipped(one_line(first).lstrip("# "), _MAX_TEXT)


class _FieldsOfVerb:
    """The fields of a verb; each raises KodeError `SkillInvalid` with its line."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def text(self, field: str, limit: int = _MAX_TEXT) -> str:
        return self._fields.text(field, limit) if self._fields.has(field) else ""

    def context(self) -> tuple[VerbContext, ...]:
        return tuple(
            self._one_of("context", part, _CONTEXTS) for part in self._fields.texts("context")
        )

    def choices(self, *, loosens: bool) -> dict[str, Any]:
        """Return agent, mode, model and effort; only the user's own verb may apply edits."""
        mode = self._choice("mode", _MODES)
        if mode in APPLYING_MODES and not loosens:
            text = "a project's verb cannot apply edits by itself: use review, ask or plan"
            raise self._fields.wrong("mode", text)
        agent, model = self.text("agent"), self.text("model")
        effort = self._choice("effort", EFFORTS)
        return {"agent": agent or None, "mode": mode, "model": model or None, "effort": effort}

    def _choice(self, field: str, known: Iterable[T]) -> T | None:
        given = self.text(field)
        return self._one_of(field, given, known) if given else None

    def _one_of(self, field: str, given: str, known: Iterable[T]) -> T:
        for one in known:
            if one == given:
                return one
        raise self._fields.wrong(field, f"{given!r} is not known; use {', '.join(known)}")
