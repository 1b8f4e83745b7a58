"""Rules about files that are not open: what a client does to them, nobody sees in a document."""

from collections.abc import Iterator
from urllib.parse import unquote

from kode_sidecar.core.domain.hunk_state import UNSETTLED
from kode_sidecar.devtools.grading.document_rules import (
    VERDICT,
    Fault,
    Faults,
    open_at,
    reported_states,
)
from kode_sidecar.devtools.grading.talk import Json, RequestExchange, Talk
from kode_sidecar.devtools.recording import as_object

_LISTS_FILES = ("kode/turn/start", "textDocument/didSave", "")
"""Before the recorder notes such a message of the client it looks at the files; answers are ""."""


def files_changed(talk: Talk) -> Faults:
    """An edit of a file that is not open, answered `applied: true`, is done where it was asked for.

    What the sidecar found counts, and for a new file what was recorded of the folder.
    """
    for exchange in applied_edits(talk):
        for uri in sorted(_closed_files(talk, exchange)):
            if _is_failed(talk, exchange, uri):
                text = "was answered `applied: true`, and the sidecar found it not done"
                yield Fault(exchange.request.line, f"the edit of {uri} {text}")
        for uri in _created(exchange):
            if not _is_there(talk, exchange, uri):
                text = f"{uri} was answered `applied: true`, and was neither opened nor written"
                yield Fault(exchange.request.line, text, "a `didOpen` of it, or the file on disk")


def applied_edits(talk: Talk) -> Iterator[RequestExchange]:
    """Yield every `workspace/applyEdit` that was answered `applied: true`."""
    for exchange in talk.questions:
        is_edit = exchange.request.method == "workspace/applyEdit"
        if is_edit and as_object(exchange.result).get("applied") is True:
            yield exchange


def _changes(exchange: RequestExchange) -> list[Json]:
    edit = as_object(exchange.request.params.get("edit"))
    return [as_object(change) for change in edit.get("documentChanges", ())]


def _created(exchange: RequestExchange) -> list[str]:
    changes = _changes(exchange)
    return [str(one.get("uri")) for one in changes if one.get("kind") == "create"]


def _touched(exchange: RequestExchange) -> set[str]:
    edit = as_object(exchange.request.params.get("edit"))
    found = {str(uri) for uri in as_object(edit.get("changes"))}
    for change in _changes(exchange):
        uri = change.get("uri", as_object(change.get("textDocument")).get("uri"))
        found |= {str(one) for one in (uri, change.get("oldUri")) if one is not None}
    return found


def _closed_files(talk: Talk, exchange: RequestExchange) -> set[str]:
    """Return the files of an edit that were not open when it came, and not opened for it."""
    created = _created(exchange)
    return {
        uri
        for uri in _touched(exchange)
        if uri not in created and not open_at(talk, uri, exchange.request)
    }


def _is_failed(talk: Talk, exchange: RequestExchange, uri: str) -> bool:
    """True if the sidecar's first verdict on the file, before the next edit of it, is a failure."""
    place, until = exchange.request.place, exchange.answers[0].at + VERDICT
    later = (
        one.request.place
        for one in talk.questions
        if one.request.method == "workspace/applyEdit"
        and one.request.place > place
        and uri in _touched(one)
    )
    end = next(later, len(talk.frames))
    reported = (
        states
        for frame, of, states in reported_states(talk)
        if of == uri and place < frame.place < end and frame.at <= until
    )
    return bool(UNSETTLED.intersection(next(reported, ())))


def _is_there(talk: Talk, exchange: RequestExchange, uri: str) -> bool:
    """False if the file must have been seen by then, and was not."""
    request, answer = exchange.request, exchange.answers[0]
    looked = any(
        frame.by_client and frame.place > answer.place and frame.method in _LISTS_FILES
        for frame in talk.frames
    )
    opened = any(text.text is not None for text in talk.documents.get(uri, ()))
    left_out = any(line > request.line for line in talk.files_left_out)
    name = unquote(uri)
    written = any(name.endswith("/" + path) for path in talk.files)
    return opened or written or left_out or not looked or not talk.files
