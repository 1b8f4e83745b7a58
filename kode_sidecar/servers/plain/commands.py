"""The commands of clients without a plugin: what a code action, a code lens or the user runs."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from kode_sidecar.core.domain.change_set import Range
from kode_sidecar.core.domain.message import PromptBlock
from kode_sidecar.core.protocol.handshake import PLAIN_COMMANDS, as_object
from kode_sidecar.core.protocol.process import ModelsListResult
from kode_sidecar.core.protocol.review import ReviewAskParams, UserState
from kode_sidecar.core.protocol.session import SessionListParams, SessionUpdateParams
from kode_sidecar.core.text.shown_text import cut_line, one_line
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.lsp import Log
from kode_sidecar.servers.plain.actions import Place
from kode_sidecar.servers.plain.chats import Chats
from kode_sidecar.servers.plain.editor import PlainEditor
from kode_sidecar.servers.plain.messages import Messages
from kode_sidecar.servers.plain.pending_hunks import PendingHunk, PendingHunks
from kode_sidecar.servers.plain.selections import selection, text_block
from kode_sidecar.servers.plain.texts import Texts

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.verbs.verb_file import Verb

_MOST_SESSIONS = 8
_TITLE_CHARS = 60
_ID_CHARS = 8
_PAUSE_SECONDS = 0.1
"""Emacs 28 leaves unread what comes in one piece with the answer to its request."""

Arguments = Sequence[Any]
Verbs = Callable[[], Awaitable[Sequence["Verb"]]]


class PlainCommands:
    """Runs `kode.*`. Each is answered at once, and what follows comes as edits and messages: some
    editors are blocked until a command is answered.

    An argument is text that a user can type, or an object of ours from a code action. A list in
    place of several arguments is taken as those, for editors that pass only one.
    """

    def __init__(
        self,
        chats: Chats,
        hunks: PendingHunks,
        editor: PlainEditor,
        messages: Messages,
        texts: Texts,
        documents: Documents,
        models: Callable[[], Awaitable[ModelsListResult]],
        verbs: Verbs,
        log: Log,
    ) -> None:
        self._chats = chats
        self._hunks = hunks
        self._editor = editor
        self._messages = messages
        self._texts = texts
        self._documents = documents
        self._models = models
        self._verbs = verbs
        self._log = log
        self._running: set[asyncio.Task[None]] = set()
        runs: tuple[Callable[[Arguments], Coroutine[Any, Any, None]], ...] = (
            *(self._ask, self._verb, self._send, self._accept, self._reject, self._show),
            *(self._undo, self._stop, self._chat, self._sessions, self._model, self._finding),
        )
        self.by_name: Mapping[str, Callable[[Arguments], Awaitable[None]]] = {
            name: self._answering(run) for name, run in zip(PLAIN_COMMANDS, runs, strict=True)
        }

    def _answering(
        self, run: Callable[[Arguments], Coroutine[Any, Any, None]]
    ) -> Callable[[Arguments], Awaitable[None]]:
        async def answer(arguments: Arguments) -> None:
            first: object = arguments[0] if len(arguments) == 1 else None
            reported = cast(list[object], first) if isinstance(first, list) else arguments
            task = asyncio.create_task(self._reported(run, reported))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

        return answer

    async def _reported(
        self, run: Callable[[Arguments], Coroutine[Any, Any, None]], arguments: Arguments
    ) -> None:
        """Run a command to its end; what goes wrong is shown to the user, or logged as a bug."""
        try:
            await asyncio.sleep(_PAUSE_SECONDS)
            await run(arguments)
        except (KodeError, OSError) as error:
            reason = error.message if isinstance(error, KodeError) else str(error)
            self._messages.error(self._texts("failed", reason=reason))
        except Exception as error:
            self._log("a command failed", error)
            self._messages.error(self._texts("failed", reason="internal error, see the log"))

    async def _ask(self, arguments: Arguments) -> None:
        text, place = _words(arguments), _place(arguments)
        if not text:
            await self._chats.show_current()
            return
        await self._chats.prompt([text_block(text), *self._selected(place)], text)

    async def _verb(self, arguments: Arguments) -> None:
        name, _, more = _words(arguments).partition(" ")
        verbs = await self._verbs()
        if name not in [one.name for one in verbs]:
            names = ", ".join(one.name for one in verbs)
            raise KodeError("InvalidParams", f"There is no verb {name!r}; there are {names}.")
        more = "\n\n".join(filter(None, [more, *map(_problem, arguments)]))
        place = _place(arguments)
        where = f"({_where(place)})" if place else ""
        shown = " ".join(filter(None, [f"/{name}", where, more]))
        called = text_block(f"/{name} {more}".rstrip())
        await self._chats.prompt([called, *self._selected(place)], shown)

    async def _send(self, arguments: Arguments) -> None:
        await self._chats.send(_words(arguments) or None)

    async def _accept(self, arguments: Arguments) -> None:
        hunks = self._named(arguments)
        wanted = [one for one in hunks if not one.is_sensitive or await self._agreed(one)]
        if not wanted:
            return
        results = await self._hunks.decide(wanted, "accept")
        lost = sum(len(one.conflicts) + len(one.stale) for one in results)
        if lost:
            reason = self._texts("text_changed")
            self._messages.warn(self._texts("not_applied", count=lost, reason=reason))

    async def _agreed(self, one: PendingHunk) -> bool:
        """Ask about a sensitive edit, the safe answer first."""
        reason = ", ".join(one.hunk.flags)
        question = self._texts("sensitive", path=one.file.path, reason=reason)
        yes = self._texts("yes")
        return await self._editor.choose(question, (self._texts("no"), yes)) == yes

    async def _reject(self, arguments: Arguments) -> None:
        await self._hunks.decide(self._named(arguments), "reject")

    async def _show(self, arguments: Arguments) -> None:
        for one in self._named(arguments)[:1]:
            await self._chats.show_hunk(one)

    async def _undo(self, _: Arguments) -> None:
        result = await self._hunks.undo_last()
        self._hunks.schedule()
        if result is None:
            self._messages.info(self._texts("nothing_applied"))
            return
        if result.undone:
            self._messages.info(self._texts("undone", count=len(result.undone)))
        if result.conflicts:
            reason = self._texts("text_changed")
            self._messages.warn(
                self._texts("not_applied", count=len(result.conflicts), reason=reason)
            )

    async def _stop(self, _: Arguments) -> None:
        if not self._chats.stop():
            self._messages.info(self._texts("not_running"))

    async def _chat(self, arguments: Arguments) -> None:
        if _words(arguments) == "new":
            await self._chats.begin_new()
        await self._chats.show_current()

    async def _sessions(self, _: Arguments) -> None:
        params = SessionListParams(limit=_MOST_SESSIONS)
        page = await self._chats.catalog.list(params)
        views = [one for one in page.sessions if one.kind is None]
        titles = {
            f"{cut_line(one_line(one.title), _TITLE_CHARS)} ({one.session_id[-_ID_CHARS:]})": one
            for one in views
        }
        chosen = await self._editor.choose(self._texts("which_session"), tuple(titles))
        if chosen in titles:
            await self._chats.open(titles[chosen].session_id)
            await self._chats.show_current()

    async def _model(self, arguments: Arguments) -> None:
        session = await self._chats.session()
        name = _words(arguments)
        if not name:
            models = await self._models()
            now = self._chats.catalog.view(session.meta).model
            names = [one.name for one in models.logical]
            names += [one.name for host in models.providers for one in host.models]
            question = self._texts("which_model", name=now)
            name = await self._editor.choose(question, tuple(dict.fromkeys(names))) or ""
        if name:
            params = SessionUpdateParams(session_id=session.id, model=name)
            (await self._chats.catalog.update(params) or _nothing)()
            self._messages.info(self._texts("model_now", name=name))

    async def _finding(self, arguments: Arguments) -> None:
        """Fix, explain, dismiss, resolve or reopen a finding of a code review."""
        word, _, more = _words(arguments).partition(" ")
        reported: Mapping[str, object] = {}
        for one in arguments:
            reported = as_object(one) or reported
        if not reported:
            name, _, more = more.partition(" ")
            session = await self._chats.session()
        else:
            name = str(reported.get("findingId", ""))
            session = await self._chats.session_of(str(reported.get("sessionId", "")))
        if word in ("fix", "explain"):
            prompt = more or self._texts(f"ask_{word}")
            asked = ReviewAskParams(session_id=session.id, finding_ids=(name,), prompt=prompt)
            params, call = session.findings.question(asked)
            await self._chats.prompt(params.input, f"{prompt} ({name})", call)
            return
        states: dict[str, UserState] = {
            "dismiss": "dismissed",
            "resolve": "resolved",
            "open": "open",
        }
        if word not in states:
            text = f"{word!r} is none of fix, explain, {', '.join(states)}."
            raise KodeError("InvalidParams", text)
        if word == "dismiss" and not more:
            reasons = tuple(self._texts(key) for key in ("on_purpose", "is_wrong", "not_now"))
            more = await self._editor.choose(self._texts("why_dismiss", name=name), reasons) or ""
            if not more:
                return
        async with session.stream.saving():
            session.findings.decide(name, states[word], more)
        session.stream.release()

    def _selected(self, place: Place | None) -> list[PromptBlock]:
        document = self._documents.get(place.uri) if place is not None else None
        if place is None or document is None or not document.synced:
            return []
        return [selection(document, place.range)]

    def _named(self, arguments: Arguments) -> list[PendingHunk]:
        """Return the hunks of an id, a file or a place; all of them without an argument."""
        self._hunks.refresh()
        name = _words(arguments)
        if name:
            found = self._hunks.named(name)
        elif arguments and isinstance(arguments[0], dict):
            reported = cast(dict[str, object], arguments[0])
            uri, place = str(reported.get("uri", "")), _place(arguments)
            lines = (place.range.start.line, place.range.end.line) if place else None
            here = self._hunks
            found = here.at(uri, *lines) if lines else list(here.of_file(uri))
        else:
            found = self._hunks.all()
        if not found:
            self._messages.info(self._texts("nothing_pending"))
        return found


def _nothing() -> None:
    """Do nothing: no event is held back."""


def _words(arguments: Arguments) -> str:
    """Return the text of the arguments: some editors split it at blanks, some do not."""
    return " ".join(one for one in arguments if isinstance(one, str)).strip()


def _place(arguments: Arguments) -> Place | None:
    """Return the place among the arguments. Raises KodeError `InvalidParams`."""
    for at, one in enumerate(arguments):
        if isinstance(one, dict) and "range" in one:
            try:
                return msgspec.convert(one, Place)
            except msgspec.ValidationError as error:
                raise invalid_at(f"$.arguments[{at}]", str(error)) from None
    return None


def _problem(argument: object) -> str:
    """Return the message of the diagnostic that a code action was about, if this names one."""
    found = as_object(as_object(argument).get("diagnostic"))
    source = f" ({found['source']})" if found.get("source") else ""
    return f"{found.get('message', '')}{source}"


def _where(place: Place) -> str:
    span: Range = place.range
    return f"{place.uri.rpartition('/')[2]}:{span.start.line + 1}-{span.end.line + 1}"
