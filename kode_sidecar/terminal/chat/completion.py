"""Completions for Tab: commands, models and modes after their command, files after an @."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, make_roots
from kode_sidecar.terminal.chat.commands import MODES
from kode_sidecar.terminal.chat.pastes import mention
from kode_sidecar.terminal.chat.servers import ChatServers
from kode_sidecar.terminal.chat.words import Words

MOST_FILES = 20_000
_MOST_OFFERED = 50
_FRESH_SECONDS = 10.0
_LISTING_SECONDS = 1.5
_AT = re.compile(r"(?:^|\s)@(\"?)(\S*)$")
_COMMAND = re.compile(r"^(/\w+)(?: +\S+)*? {2,}(.+)$", re.MULTILINE)


@dataclass
class FileNames:
    """The files of a folder except ignored ones; `recent` come first, the latest at the top."""

    root: Path
    recent: list[str] = field(default_factory=list[str])
    _listed: Sequence[str] = ()
    _at: float = float("-inf")

    def matching(self, part: str) -> list[str]:
        """Return files whose path holds all letters of `part` in order, the best matches first."""
        now = time.monotonic()
        if now - self._at > _FRESH_SECONDS:
            self._listed, self._at = self._list(now + _LISTING_SECONDS), now
        recent = {path: number for number, path in enumerate(reversed(self.recent))}
        wanted = part.lower()
        rated: list[tuple[int, int, int, str]] = []
        for path in dict.fromkeys((*recent, *self._listed)):
            rank = _rank(path.lower(), wanted)
            if rank is not None:
                rated.append((rank, recent.get(path, len(recent)), len(path), path))
        return [path for *_, path in sorted(rated)[:_MOST_OFFERED]]

    def _list(self, deadline: float) -> Sequence[str]:
        (root,) = make_roots([self.root])
        start = Location(root, root.path, root.real, (), "")
        listing = list_tree(start, lambda _: True, MOST_FILES, lambda: time.monotonic() > deadline)
        return ["/".join(file.parts) for file in listing.files]


def _rank(path: str, wanted: str) -> int | None:
    """Return how badly a path matches what was typed, 0 is best; None if it does not."""
    name = path.rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    if wanted in name:
        return 1
    if wanted in path:
        return 2
    letters = iter(path)
    return 3 if all(letter in letters for letter in wanted) else None


class PromptCompleter(Completer):
    """Completes commands, their arguments and mentions, but no other text.

    `models` returns the names known so far; `servers` are the MCP servers, `verbs` what `/name` can
    call, once known.
    """

    def __init__(self, root: Path, words: Words, models: Callable[[], Sequence[str]]) -> None:
        self.files = FileNames(root)
        self.servers: ChatServers | None = None
        self._models = models
        self.verbs: Mapping[str, str] = {}
        self._commands = dict(_COMMAND.findall(words.help.format(modes=", ".join(MODES))))

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """See `Completer.get_completions`."""
        del complete_event
        before = document.text_before_cursor
        command, blank, argument = before.partition(" ")
        if before.startswith("/") and not blank:
            more = self.servers.commands() if self.servers else {}
            for name, about in (more | {**self.verbs} | self._commands).items():
                if name.startswith(command):
                    yield Completion(name, -len(command), display_meta=about)
        elif blank and command in ("/model", "/mode") and " " not in argument:
            for name in MODES if command == "/mode" else self._models():
                if argument.lower() in name.lower():
                    yield Completion(name, -len(argument))
        elif at := _AT.search(before):
            quote, part = at.groups()
            for name in self.servers.resources() if self.servers and not quote else ():
                if part.lower() in name.lower():
                    yield Completion(f"@{name}", -len(part) - 1, display=name)
            for path in self.files.matching(part):
                yield Completion(mention(path), -len(quote + part) - 1, display=path)
