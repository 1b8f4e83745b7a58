"""Rules about documents: how a client syncs its texts and applies edits to them."""

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from kode_sidecar.core.domain.hunk_state import DONE, UNSETTLED
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

VERDICT = 2 * SHOWN_SECONDS
"""How long after the answer the sidecar has said what it found."""


class Fault(NamedTuple):
    """What a client did wrong, the line of the recording that shows it, and what was expected.

    Without `expected` it is what the rule says.
    """

    line: int
    text: str
    expected: str = ""


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
            Fault(text.frame.line, f"{text.frame.method} of {uri}: {text.wrong}", text.expected)
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
            line = sent.exchange.request.line
            yield Fault(line, f"the edit of {sent.uri} {text}", _first_difference(talk, sent))


def refused_untouched(talk: Talk) -> Faults:
    """An edit answered `applied: false` is not in the text, unless it is sent again and applied."""
    for sent in sent_edits(talk):
        answers = sent.exchange.answers
        if not answers or sent.applied or not _can_be_judged(talk, sent):
            continue
        if _wanted(talk, sent) is not None and _shown(talk, sent):
            text = "was answered `applied: false`, and the text shows it all the same"
            yield Fault(sent.exchange.request.line, f"the edit of {sent.uri} {text}")


def stale_refused(talk: Talk) -> Faults:
    """An edit for an old version of the document is not applied.

    The user's keys may be under way when the edit comes: then only the client knows of them.
    """
    for sent in sent_edits(talk):
        answer = sent.exchange.answers[0] if sent.exchange.answers else None
        if answer is None or not sent.applied or not isinstance(sent.version, int):
            continue
        before = _before(talk, sent.uri, sent.exchange.request)
        newer = _typed_before_it(talk, sent)
        if before is not None and before.version != sent.version:
            newer = before
        if newer is not None:
            text = f"for version {sent.version} was applied to version {newer.version}"
            yield Fault(answer.line, f"the edit of {sent.uri} {text}", "`applied: false`")


def _typed_before_it(talk: Talk, sent: SentDocumentEdit) -> TalkText | None:
    """Return the newer text to which an edit was applied at the places of the older one, or None.

    An editor may report one edit in several steps. So the newer text must hold what was typed.
    """
    before = _before(talk, sent.uri, sent.exchange.request)
    assert before is not None
    if before.text is None:
        return None
    previous, typed = before, False
    for text in _texts_after(talk, sent):
        if text.text is None or previous.text is None:
            return None
        if typed and text.text == with_edits(previous.text, sent.edits, talk.encoding):
            return previous if text.text != previous.text else None
        typed = typed or _is_typed(previous.text, text.text, sent, talk)
        previous = text
    return None


def _is_typed(before: str, after: str, sent: SentDocumentEdit, talk: Talk) -> bool:
    """True if a change puts in what is no part of the edit."""
    size = min(len(before), len(after))
    start = next((at for at in range(size) if before[at] != after[at]), size)
    ends = range(1, size - start + 1)
    kept = next((at - 1 for at in ends if before[-at] != after[-at]), size - start)
    put = after[start : len(after) - kept]
    parts = range(len(sent.edits))
    steps = (sent.edits[one:end] for one in parts for end in parts[one:])
    return (
        bool(put)
        and not any(put in str(edit.get("newText", "")) for edit in sent.edits)
        and after != with_edits(before, sent.edits, talk.encoding)
        and all(after != with_edits(before, step, talk.encoding) for step in steps)
    )


def sent_edits(talk: Talk) -> Iterator[SentDocumentEdit]:
    """Yield the edits of open documents; created and deleted files are left out."""
    for exchange in talk.questions:
        if exchange.request.method != "workspace/applyEdit":
            continue
        edit = as_object(exchange.request.params.get("edit"))
        for change in edit.get("documentChanges", ()):
            document = as_object(change.get("textDocument"))
            if document and open_at(talk, str(document["uri"]), exchange.request):
                yield SentDocumentEdit(
                    exchange, document["uri"], document.get("version"), list(change["edits"])
                )
        for uri, edits in as_object(edit.get("changes")).items():
            if open_at(talk, uri, exchange.request):
                yield SentDocumentEdit(exchange, uri, None, list(edits))


def open_at(talk: Talk, uri: str, frame: TalkFrame) -> bool:
    """Return whether a document was open when a message came."""
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


def _next_edit(talk: Talk, sent: SentDocumentEdit) -> float:
    """Return the place of the next edit of the same document: what follows it is about that one."""
    later = (one.exchange.request.place for one in sent_edits(talk) if one.uri == sent.uri)
    return next((one for one in later if one > sent.exchange.request.place), math.inf)


def _texts_after(talk: Talk, sent: SentDocumentEdit) -> list[TalkText]:
    """Return the texts from the request until two seconds after its answer, or the next edit."""
    request, end = sent.exchange.request, _next_edit(talk, sent)
    until = sent.exchange.answers[0].at + SHOWN_SECONDS if sent.exchange.answers else request.at
    return [
        text
        for text in talk.documents[sent.uri]
        if request.place < text.frame.place < end and text.frame.at <= until
    ]


def _can_be_judged(talk: Talk, sent: SentDocumentEdit) -> bool:
    """False if the recording was cut before the text had to show the edit, or could not."""
    answers = sent.exchange.answers
    return talk.whole or not answers or talk.frames[-1].at >= answers[0].at + SHOWN_SECONDS


def _shown(talk: Talk, sent: SentDocumentEdit) -> bool:
    """True if a text from the request until two seconds after its answer is the text with the edit.

    If the user typed in the meantime, the sidecar's own verdict counts.
    """
    wanted = _wanted(talk, sent)
    if wanted is None or not _can_be_judged(talk, sent):
        return True
    seen = [text.text for text in _texts_after(talk, sent)]
    if _lf(wanted) in map(_lf, seen):
        return True
    news = [str(edit.get("newText", "")) for edit in sent.edits]
    typed_too = any(all(new in text for new in news) for text in seen if text is not None)
    return typed_too and _verified(talk, sent)


def _verified(talk: Talk, sent: SentDocumentEdit) -> bool:
    """True if the sidecar counts a hunk of the document as done, or undone, and none as failed.

    What comes after the next edit of the document is the verdict on that one.
    """
    answer = sent.exchange.answers[0] if sent.exchange.answers else None
    if answer is None:
        return False
    place, end, until = sent.exchange.request.place, _next_edit(talk, sent), answer.at + VERDICT
    states = {
        state
        for frame, uri, reported in reported_states(talk)
        if uri == sent.uri and place < frame.place < end and frame.at <= until
        for state in reported
    }
    return bool(states & {*DONE, "undone"}) and not states & UNSETTLED


def reported_states(talk: Talk) -> Iterator[tuple[TalkFrame, str, list[Any]]]:
    """Yield what each `changeSet.updated` says of the hunks of a file."""
    for frame, event in talk.events():
        if event.get("type") == "changeSet.updated":
            for file in event.get("files", ()):
                states = [hunk.get("state") for hunk in file.get("hunks", ())]
                yield frame, str(file.get("uri")), states


def _first_difference(talk: Talk, sent: SentDocumentEdit) -> str:
    """Return the first line that should be another one, as it was expected and as it came."""
    wanted = (_wanted(talk, sent) or "").splitlines()
    seen = [text.text for text in _texts_after(talk, sent) if text.text is not None]
    if not seen:
        return "a `didChange` with the edit; none came"
    came = seen[-1].splitlines()
    for number, (line, other) in enumerate(zip_longest(wanted, came), 1):
        if line != other:
            return f"line {number} as {line!r}; {other!r} came"
    return "the text with the edit"


def _lf(text: str | None) -> str | None:
    """Return the text with LF line ends, because some editors report their text so."""
    return None if text is None else text.replace("\r\n", "\n")
