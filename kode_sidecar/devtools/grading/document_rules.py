"""Rules about documents: how a client syncs its texts and applies edits to them."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from kode_sidecar.core.domain.hunk_state import DONE
from kode_sidecar.devtools.grading.talk import (
    Json,
    RequestExchange,
    Talk,
    TalkFrame,
    TalkText,
    with_edits,
)
from kode_sidecar.devtools.recording import as_object

SHOWN_SECONDS = 2.0
"""How long the sidecar waits for the text to show an edit before it counts it as lost."""


class Fault(NamedTuple):
    """What a client did wrong, and the line of the recording that shows it."""

    line: int
    text: str


Faults = Iterator[Fault]


class SentDocumentEdit(NamedTuple):
    """The part of a `workspace/applyEdit` that changes one open document."""

    exchange: RequestExchange
    uri: str
    version: object
    edits: list[Json]

    @property
    def applied(self) -> bool:
        return as_object(self.exchange.result).get("applied") is True


def versions_kept(talk: Talk) -> Faults:
    """Every `didOpen`, `didChange` and `didClose` is valid, and versions only grow."""
    for uri, texts in talk.documents.items():
        yield from (
            Fault(text.frame.line, f"{text.frame.method} of {uri}: {text.wrong}")
            for text in texts
            if text.wrong
        )


def applied_shown(talk: Talk) -> Faults:
    """An edit answered `applied: true` is in the text, and `didChange` shows it within two seconds.

    The answer and `didChange` may come in any order.
    """
    for sent in sent_edits(talk):
        if sent.applied and not _shown(talk, sent):
            text = "was answered `applied: true`, and no `didChange` shows it within two seconds"
            yield Fault(sent.exchange.request.line, f"the edit of {sent.uri} {text}")


def refused_untouched(talk: Talk) -> Faults:
    """An edit answered `applied: false` is not in the text, unless it is sent again and applied."""
    every = list(sent_edits(talk))
    for sent in every:
        place, answers = sent.exchange.request.place, sent.exchange.answers
        if not answers or sent.applied or _wanted(talk, sent) is None:
            continue
        later = (one.exchange.request.place for one in every if one.uri == sent.uri)
        until = next((one for one in later if one > place), len(talk.frames))
        if _shown(talk, sent, until):
            text = "was answered `applied: false`, and the text shows it all the same"
            yield Fault(sent.exchange.request.line, f"the edit of {sent.uri} {text}")


def stale_refused(talk: Talk) -> Faults:
    """An edit for an old version of the document is not applied."""
    for sent in sent_edits(talk):
        answer = sent.exchange.answers[0] if sent.exchange.answers else None
        if answer is None or not sent.applied or sent.version is None:
            continue
        versions = [
            text.version
            for text in talk.documents[sent.uri]
            if text.frame.place < sent.exchange.request.place
        ]
        if versions and isinstance(sent.version, int) and versions[-1] != sent.version:
            text = f"for version {sent.version} was applied to version {versions[-1]}"
            yield Fault(answer.line, f"the edit of {sent.uri} {text}")


def sent_edits(talk: Talk) -> Iterator[SentDocumentEdit]:
    """Yield the edits of open documents; created and deleted files are left out."""
    for exchange in talk.questions:
        if exchange.request.method != "workspace/applyEdit":
            continue
        edit = as_object(exchange.request.params.get("edit"))
        for change in edit.get("documentChanges", ()):
            document = as_object(change.get("textDocument"))
            if document and _open_at(talk, str(document["uri"]), exchange.request):
                yield SentDocumentEdit(
                    exchange, document["uri"], document.get("version"), list(change["edits"])
                )
        for uri, edits in as_object(edit.get("changes")).items():
            if _open_at(talk, uri, exchange.request):
                yield SentDocumentEdit(exchange, uri, None, list(edits))


def _open_at(talk: Talk, uri: str, frame: TalkFrame) -> bool:
    before = _before(talk, uri, frame)
    return before is not None and before.text is not None


def _before(talk: Talk, uri: str, frame: TalkFrame) -> TalkText | None:
    texts = talk.documents.get(uri, ())
    return next((text for text in reversed(texts) if text.frame.place < frame.place), None)


def _wanted(talk: Talk, sent: SentDocumentEdit) -> str | None:
    """Return the text with the edit; None if the document was not open or already had it."""
    before = _before(talk, sent.uri, sent.exchange.request)
    if before is None or before.text is None:
        return None
    wanted = with_edits(before.text, sent.edits, talk.encoding)
    return wanted if wanted != before.text else None


def _shown(talk: Talk, sent: SentDocumentEdit, before: float = math.inf) -> bool:
    """True if a text from the request until two seconds after its answer is the text with the edit.

    Frames from the place `before` on do not count. If the user typed in the meantime, the sidecar's
    own verdict counts.
    """
    wanted, request = _wanted(talk, sent), sent.exchange.request
    if wanted is None:
        return True
    until = sent.exchange.answers[0].at + SHOWN_SECONDS if sent.exchange.answers else request.at
    if not talk.whole and talk.frames[-1].at < until:
        return True  # what came after the cut is unknown
    seen = [
        text.text
        for text in talk.documents[sent.uri]
        if request.place < text.frame.place < before and text.frame.at <= until
    ]
    if _lf(wanted) in map(_lf, seen):
        return True
    news = [str(edit.get("newText", "")) for edit in sent.edits]
    typed_too = any(all(new in text for new in news) for text in seen if text is not None)
    return typed_too and _verified(talk, sent)


def _verified(talk: Talk, sent: SentDocumentEdit) -> bool:
    """True if the sidecar's next `changeSet.updated` for the document has its hunks as applied."""
    answer = sent.exchange.answers[0] if sent.exchange.answers else None
    if answer is None:
        return False
    reported = (
        [hunk.get("state") for hunk in file.get("hunks", ())]
        for frame, event in talk.events()
        if frame.place > answer.place and event.get("type") == "changeSet.updated"
        for file in event.get("files", ())
        if file.get("uri") == sent.uri and frame.at <= answer.at + 2 * SHOWN_SECONDS
    )
    return all(state in DONE for state in next(reported, ["lost"]))


def _lf(text: str | None) -> str | None:
    """Return the text with LF line ends, because some editors report their text so."""
    return None if text is None else text.replace("\r\n", "\n")
