"""The text of a chat document, without IO: its prompt, and where an answer goes on.

An answer is found by what stands there, never by a position noted earlier: the user types in the
same document, and an editor may drop an edit, or send its changes late.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from kode_sidecar.core.text.text_edit import common_prefix

KODE = "## kode"
_TICKED = re.compile(r"^- \[[xX]\] ?(.*?)\r?$", re.MULTILINE)
_ANY_TICK = re.compile(r"^- \[[xX]\]", re.MULTILINE)


class Insertion(NamedTuple):
    """A text to insert at an offset."""

    at: int
    text: str


def prompt_of(document: str, headings: Sequence[str]) -> str:
    """Return what stands below the last heading if it is one of the user's; else nothing."""
    lines = document.splitlines()
    starts = [at for at, line in enumerate(lines) if line.rstrip() in headings]
    answers = [at for at, line in enumerate(lines) if line.startswith(KODE)]
    if not starts or (answers and answers[-1] > starts[-1]):
        return ""
    return "\n".join(lines[starts[-1] + 1 :]).strip()


def answers_in(document: str) -> int:
    """Return how many answers a document holds; the next one gets the following number."""
    return sum(line.startswith(KODE) for line in document.splitlines())


class AnswerText:
    """One answer as it should stand in the document, and how much of it was seen there.

    `opening` is written above it: the prompt, if the user did not write that into the document.
    `seen` is how much of `text` has been seen there.
    """

    def __init__(self, number: int, opening: str = "") -> None:
        self.heading = f"{KODE} · {number}"
        self.text = f"{self.heading}\n\n"
        self._opening = opening
        self._is_rest = False
        self.seen = 0

    def missing(self, document: str) -> Insertion | None:
        """Return what is to be inserted where; None if the user changed what was written."""
        ends = "\r\n" if "\r\n" in document else "\n"
        wanted = self.text.replace("\n", ends)
        at = document.rfind(self.heading + ends)
        if at < 0:
            if self.seen:
                return None
            if self._is_rest and self.text == f"{self.heading}\n\n":
                return Insertion(len(document), "")
            gap = "" if document.endswith(ends * 2) or not document.strip() else ends * 2
            above = f"{self._opening}\n\n".replace("\n", ends) if self._opening else ""
            return Insertion(len(document), gap + above + wanted)
        shown = common_prefix(_unticked(document[at:]), wanted)
        self.seen = max(self.seen, len(self.heading))
        if shown < self.seen:
            return None
        self.seen = shown
        return Insertion(at + shown, wanted[shown:])

    def begin_again(self, number: int) -> "AnswerText":
        """Return an answer with all that is not known to stand in the document."""
        rest = AnswerText(number)
        rest._is_rest = True
        rest.text += self.text[self.seen :].lstrip("\n")
        return rest

    def ticked(self, document: str, question: str, choices: Sequence[str]) -> str | None:
        """Return the choice that the user has ticked below a question."""
        asked = document.rfind(question.splitlines()[0])
        if asked < 0:
            return None
        ticks = (match.group(1).strip() for match in _TICKED.finditer(document, asked))
        return next((choice for choice in ticks if choice in choices), None)


def _unticked(text: str) -> str:
    """Return a text in which no line is ticked; no offset changes."""
    return _ANY_TICK.sub("- [ ]", text)
