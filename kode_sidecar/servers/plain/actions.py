"""Code actions and code lenses, answered from memory: clients ask at every move of the cursor."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.text.shown_text import cut_line, one_line
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.lsp import FindingDiagnostics, diagnostic
from kode_sidecar.servers.plain.pending_hunks import PendingHunk, PendingHunks
from kode_sidecar.servers.plain.texts import Texts

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.verbs.verb_file import Verb

Json = dict[str, Any]

QUICK_FIX, REWRITE, SOURCE = "quickfix", "refactor.rewrite", "source.kode"
_TITLE_CHARS = 70
_MOST_DIAGNOSTICS = 5
_MOST_LINES = 200
_MOST_FINDINGS = 3
_OURS = ("kode", "kode review")
_ABOUT_CODE = frozenset({"selection", "symbol", "file"})
_COMMENT = re.compile(r"(?:#|//|--|;|/\*|\*|<!--|%|\"|')\s*(?:\W\s*)?(.*)")


class Place(Struct, frozen=True):
    """A range of a document, as the arguments of our commands hold it."""

    uri: str
    range: Range


class ActionContext(Struct, frozen=True):
    """LSP `CodeActionContext`."""

    diagnostics: list[Json] = field(default_factory=list[Json])
    only: list[str] | None = None


class CodeActions:
    """Lists what kode offers at a place. Nothing is sent to a model before the user chooses.

    `verbs` are set before the first request is answered.
    """

    def __init__(
        self,
        hunks: PendingHunks,
        findings: FindingDiagnostics,
        documents: Documents,
        texts: Texts,
        comment_word: str,
    ) -> None:
        self._hunks = hunks
        self._findings = findings
        self._documents = documents
        self._texts = texts
        self.verbs: Sequence[Verb] = ()
        self._comment_word = comment_word

    def at(self, place: Place, context: ActionContext, chat: "ChatState") -> list[Json]:
        """Return the code actions at a place, the most specific ones first."""
        if chat.is_chat:
            found = list(self._of_chat(place, chat))
        else:
            found = [
                *self._of_hunks(place),
                *self._of_findings(place),
                *self._of_comment(place),
                *self._of_diagnostics(place, context),
                *self._of_verbs(place),
                *self._of_session(chat),
            ]
        only = context.only
        return found if only is None else [one for one in found if _wanted(one["kind"], only)]

    def lenses(self, uri: str, chat: "ChatState") -> list[Json]:
        """Return the code lenses of a document: at its hunks, or at the end of a chat."""
        if chat.is_chat:
            document = self._documents.get(uri)
            last = max(len(document.lines) - 1, 0) if document is not None else 0
            place = Place(uri, Range(Position(last, 0), Position(last, 0)))
            return [_lens(place.range, one["command"]) for one in self._of_chat(place, chat)]
        return [
            _lens(one.range, command)
            for one in self._hunks.of_file(uri)
            for command in self._commands_of(one)
        ]

    def comment_at(self, place: Place) -> str | None:
        """Return what a comment in these lines asks the agent to do."""
        document = self._documents.get(place.uri)
        if document is None or not document.synced or not self._comment_word:
            return None
        first = place.range.start.line
        for line in document.lines[first : min(place.range.end.line, first + _MOST_LINES) + 1]:
            comment = _COMMENT.search(line)
            at = line.find(self._comment_word, comment.start()) if comment else -1
            if at >= 0:
                asked = line[at + len(self._comment_word) :].strip()
                asked = asked.removesuffix("*/").removesuffix("-->").strip()
                if asked:
                    return asked
        return None

    def _of_hunks(self, place: Place) -> Iterator[Json]:
        here = self._hunks.at(place.uri, place.range.start.line, place.range.end.line)
        for one in here[:1]:
            for command in self._commands_of(one):
                preferred = {"isPreferred": True} if command["command"] == "kode.accept" else {}
                yield {**_action(command, QUICK_FIX), **preferred}
        in_file = self._hunks.of_file(place.uri)
        if in_file:
            title = self._texts("accept_file", count=len(in_file))
            yield _action(_command(title, "kode.accept", {"uri": place.uri}), QUICK_FIX)

    def _commands_of(self, one: PendingHunk) -> Iterator[Json]:
        for name in ("accept", "reject", "show"):
            yield _command(self._texts(name), f"kode.{name}", one.hunk.hunk_id)

    def _of_findings(self, place: Place) -> Iterator[Json]:
        first, last = place.range.start.line, place.range.end.line
        for session_id, one in self._findings.at(place.uri, first, last)[:_MOST_FINDINGS]:
            reported = {"sessionId": session_id, "findingId": one.finding_id}
            for word in ("fix", "explain", "dismiss"):
                title = self._texts(f"finding_{word}", name=_short(one.title))
                action = _action(_command(title, "kode.finding", word, reported), QUICK_FIX)
                yield {**action, "diagnostics": [diagnostic(session_id, one)]}

    def _of_comment(self, place: Place) -> Iterator[Json]:
        asked = self.comment_at(place)
        if asked is not None:
            title = self._texts("comment", name=_short(asked))
            yield _action(_command(title, "kode.ask", asked, _json(place)), QUICK_FIX)

    def _of_diagnostics(self, place: Place, context: ActionContext) -> Iterator[Json]:
        others = [one for one in context.diagnostics if one.get("source") not in _OURS]
        for one in others[:_MOST_DIAGNOSTICS]:
            message = str(one.get("message", ""))
            title = self._texts("fix", name=_short(message))
            reported = {**_json(place), "range": one.get("range"), "diagnostic": one}
            command = _command(title, "kode.verb", "fix", reported)
            yield {**_action(command, QUICK_FIX), "diagnostics": [one]}

    def _of_verbs(self, place: Place) -> Iterator[Json]:
        for verb in self.verbs:
            if not _ABOUT_CODE.isdisjoint(verb.context):
                title = self._texts("verb", name=verb.title)
                yield _action(_command(title, "kode.verb", verb.name, _json(place)), REWRITE)

    def _of_session(self, chat: "ChatState") -> Iterator[Json]:
        yield _action(_command(self._texts("chat"), "kode.chat"), SOURCE)
        if chat.is_running:
            yield _action(_command(self._texts("stop"), "kode.stop"), SOURCE)
        if self._findings.has_reviews:
            title = self._texts("review_again")
            yield _action(_command(title, "kode.verb", "review", "again"), SOURCE)
        count = len(self._hunks.all())
        if count:
            title = self._texts("accept_all", count=count)
            yield _action(_command(title, "kode.accept"), SOURCE)
        if self._hunks.has_applied():
            yield _action(_command(self._texts("undo"), "kode.undo"), SOURCE)

    def _of_chat(self, place: Place, chat: "ChatState") -> Iterator[Json]:
        yield _action(_command(self._texts("send"), "kode.send", place.uri), QUICK_FIX)
        if chat.is_running:
            yield _action(_command(self._texts("stop"), "kode.stop"), QUICK_FIX)


class ChatState(Struct, frozen=True):
    """What code actions need of the conversations."""

    is_chat: bool
    is_running: bool


def _wanted(kind: str, only: Sequence[str]) -> bool:
    """Return whether a kind is one of those asked for, or a part of one (LSP `CodeActionKind`)."""
    return any(not one or kind == one or kind.startswith(f"{one}.") for one in only)


def _command(title: str, command: str, *arguments: object) -> Json:
    return {"title": title, "command": command, "arguments": list(arguments)}


def _action(command: Json, kind: str) -> Json:
    return {"title": command["title"], "kind": kind, "command": command}


def _lens(span: Range, command: Json) -> Json:
    start = {"line": span.start.line, "character": 0}
    return {"range": {"start": start, "end": start}, "command": command}


def _json(place: Place) -> Json:
    start, end = place.range.start, place.range.end
    return {
        "uri": place.uri,
        "range": {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        },
    }


def _short(text: str) -> str:
    return cut_line(one_line(text), _TITLE_CHARS)
