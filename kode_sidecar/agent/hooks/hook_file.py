"""Read hooks in the format that many agents share: events, each with matchers and commands.

PreToolUse:
  - matcher: "Bash|Edit"
    hooks:
      - command: [python, ~/policy.py]    # or one text, which is split into words
        timeout: 10
        fail: closed
"""

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import msgspec
from msgspec import Meta, Struct

from kode_sidecar.errors import KodeError

HookEvent = Literal[
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop"
]
EVENTS = cast("tuple[HookEvent, ...]", get_args(HookEvent))
ELSEWHERE = (
    *("Notification", "PermissionRequest", "PostToolUseFailure"),
    *("SessionEnd", "SubagentStart", "SubagentStop"),
)
"""Events that other agents have and this one has not: their hooks are left out."""
PROJECT_VARIABLES = ("KODE_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
"""What a command and its script know the project's folder by."""
_SECONDS = 60.0
_MOST_HOOKS = 200


class _Command(Struct, frozen=True):
    command: str | list[str]
    type: str = "command"
    timeout: Annotated[float, Meta(gt=0, le=600)] = _SECONDS
    fail: Literal["open", "closed"] = "open"


class _Group(Struct, frozen=True):
    hooks: list[_Command]
    matcher: Annotated[str, Meta(max_length=1_000)] | None = None


@dataclass(frozen=True)
class Hook:
    """One command at an event. `fails_closed`: a hook that gives no verdict forbids.

    `folder` is the project that names it, None for the user's own.
    """

    event: HookEvent
    matcher: re.Pattern[str] | None
    argv: tuple[str, ...]
    seconds: float = _SECONDS
    fails_closed: bool = False
    folder: Path | None = None

    @property
    def entry(self) -> tuple[object, ...]:
        """All that its entry says."""
        pattern = self.matcher and self.matcher.pattern
        return self.event, pattern, self.argv, self.seconds, self.fails_closed

    @property
    def about(self) -> str:
        """Its event and command, for people."""
        return f"{self.event} {shlex.join(self.argv)}"

    def matches(self, names: Collection[str]) -> bool:
        """Return whether it is for one of these names; without a matcher it is for all."""
        return self.matcher is None or any(map(self.matcher.fullmatch, names))


def read_hooks(written: Mapping[str, Any], where: str) -> tuple[Hook, ...]:
    """Return the hooks of a file or setting. Raises KodeError `ConfigInvalid`: none may be lost."""
    found: list[Hook] = []
    for event, raw in written.items():
        if event in ELSEWHERE:
            continue
        if event not in EVENTS:
            known = ", ".join(EVENTS)
            raise KodeError("ConfigInvalid", f"{where}: no event is named {event!r}; use {known}.")
        try:
            groups = msgspec.convert(raw, list[_Group])
        except msgspec.ValidationError as error:
            raise KodeError("ConfigInvalid", f"{where}, {event}: {error}.") from None
        for group in groups:
            found += [_hook(event, group, one, f"{where}, {event}") for one in group.hooks]
    if len(found) > _MOST_HOOKS:
        raise KodeError("ConfigInvalid", f"{where}: more than {_MOST_HOOKS} hooks.")
    return tuple(found)


def placed_words(argv: Sequence[str], folder: str) -> Sequence[str]:
    """Return a command with the project's folder filled in, and `~` at the beginning of words."""
    placed: list[str] = []
    for word in argv:
        for name in PROJECT_VARIABLES:
            word = word.replace(f"${{{name}}}", folder).replace(f"${name}", folder)
        placed.append(os.path.expanduser(word))
    return placed


def _hook(event: HookEvent, group: _Group, command: _Command, where: str) -> Hook:
    if command.type != "command":
        text = f"{where}: a hook of the type {command.type!r} does not run here; use `command`."
        raise KodeError("ConfigInvalid", text)
    matcher = None
    if group.matcher and group.matcher != "*":
        try:
            matcher = re.compile(group.matcher)
        except re.error as error:
            text = f"{where}: the matcher {group.matcher!r} is no pattern: {error}."
            raise KodeError("ConfigInvalid", text) from None
    argv = _words(command.command, where)
    return Hook(event, matcher, argv, command.timeout, command.fail == "closed")


def _words(command: str | list[str], where: str) -> tuple[str, ...]:
    """Return the words of a command: there is no shell, unless the user names one."""
    if isinstance(command, str):
        reader = shlex.shlex(command, posix=True, punctuation_chars=False)
        reader.whitespace_split, reader.commenters = True, ""
        if os.name == "nt":
            reader.escape = ""  # a path holds backslashes
        try:
            command = list(reader)
        except ValueError as error:
            raise KodeError("ConfigInvalid", f"{where}: {command!r}: {error}.") from None
    if not command or not command[0] or any("\0" in word for word in command):
        raise KodeError("ConfigInvalid", f"{where}: a command begins with a program.")
    return tuple(command)
