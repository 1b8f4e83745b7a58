"""What a recording says is to be heard, held against what is heard."""

from collections import Counter, defaultdict
from typing import Any

from kode_sidecar.recording.comparison import (
    Difference,
    Ids,
    first_difference,
    shown,
    shown_texts,
    without_number,
)
from kode_sidecar.recording.places import Places
from kode_sidecar.recording.strands import Part, Strands, as_object, read_frame
from kode_sidecar.recording.transcript import DrawnId, FrameIn, FrameOut, InputEnded, Transcript


class Score:
    """Strand by strand: everything that was said is to be said again, in order, and nothing else.

    `difference` is the first thing that was not. What comes after the end of a recording that was
    cut off is not looked at.
    """

    def __init__(self, transcript: Transcript, places: Places) -> None:
        self._places = places
        self._whole = transcript.whole
        self._was = Strands()
        self._now = Strands()
        self.ids = Ids(line.id for line in transcript.lines if isinstance(line, DrawnId))
        self._expected: defaultdict[str, list[tuple[int, Part]]] = defaultdict(list)
        self._texts: defaultdict[str, str] = defaultdict(str)
        self._text_lines: dict[str, int] = {}
        self._heard: Counter[str] = Counter()
        self._grown: defaultdict[str, str] = defaultdict(str)
        self._seqs: dict[str, int] = {}
        self._asked_by_server: dict[str, str] = {}
        self.difference: Difference | None = None
        self._dues: list[Counter[str]] = []
        self._learn(transcript)

    def _learn(self, transcript: Transcript) -> None:
        due: Counter[str] = Counter()
        for number, line in enumerate(transcript.lines, 1):
            if isinstance(line, FrameIn):
                self._was.heard(bytes(line.frame))
                self._dues.append(due.copy())
            elif isinstance(line, InputEnded):
                self._dues.append(due.copy())
            elif isinstance(line, FrameOut):
                for part in self._was.said(bytes(line.frame)):
                    due[part.strand] += part.grown or 1
                    if part.strand.startswith("block "):
                        self._texts[part.strand] += part.message["add"]
                        self._text_lines.setdefault(part.strand, number)
                    else:
                        self._expected[part.strand].append((number, part))
        self._dues.append(due)

    def sent(self, body: bytes) -> None:
        """The process was told this."""
        self._now.heard(body)

    def is_due(self, frame: int) -> bool:
        """Was all said that came before the `frame`th message to the process, from 0?"""
        return not self._missing(frame)

    def heard(self, body: bytes) -> None:
        """The process said this."""
        self._check_numbers(body)
        for part in self._now.said(body):
            if self.difference is None:
                self._hear(part._replace(strand=self.ids.recorded(part.strand)))

    def missing(self, frame: int) -> Difference | None:
        """What should have been said before a message to the process; the earliest of it."""
        found: list[Difference] = []
        for strand in self._missing(frame):
            if strand in self._texts:
                was, now = shown_texts(self._texts[strand], self._grown[strand])
                found.append(Difference(strand, self._text_lines[strand], "$.add", was, now))
            else:
                number, part = self._expected[strand][self._heard[strand]]
                found.append(Difference(strand, number, "$", shown(part.message), "nothing"))
        return min(found, key=lambda difference: difference.line, default=None)

    def _missing(self, frame: int) -> list[str]:
        due = self._dues[min(frame, len(self._dues) - 1)]
        return [strand for strand, count in due.items() if self._heard[strand] < count]

    def _hear(self, part: Part) -> None:
        strand = part.strand
        self._heard[strand] += part.grown or 1
        if strand.startswith("block "):
            self._hear_text(part)
            return
        place = self._heard[strand] - 1
        if place >= len(self._expected[strand]):
            if self._whole:
                now = shown(part.message)
                self.difference = Difference(strand, 0, "$", "nothing more", now)
            return
        number, expected = self._expected[strand][place]
        was = self._places.name_recorded(without_number(expected.message))
        now = self._places.name_live(without_number(part.message))
        self._bind_request(was, now)
        method = self._was.method_of(was.get("id")) if "method" not in was else ""
        if found := first_difference(was, now, self.ids, method):
            at, one, other = found
            was_text, now_text = _both(one, other)
            message = shown(part.message)
            self.difference = Difference(strand, number, at, was_text, now_text, message)

    def _hear_text(self, part: Part) -> None:
        strand = part.strand
        grown = self._grown[strand]
        if part.message["at"] != len(grown):
            self._text_differs(strand, f"text at {len(grown)}", f"text at {part.message['at']}")
            return
        self._grown[strand] = grown = grown + part.message["add"]
        was = self._texts[strand]
        if not was.startswith(grown) and (self._whole or not grown.startswith(was)):
            self._text_differs(strand, *shown_texts(was, grown))

    def _text_differs(self, strand: str, was: str, now: str) -> None:
        line = self._text_lines.get(strand, 0)
        self.difference = Difference(strand, line, "$.add", was, now)

    def _bind_request(self, was: dict[str, Any], now: dict[str, Any]) -> None:
        """A request to the client has an id that the client's answer repeats."""
        if "method" in was and isinstance(was.get("id"), str) and isinstance(now.get("id"), str):
            self.ids.bind(was["id"], now["id"])

    def _check_numbers(self, body: bytes) -> None:
        """Events of a session are numbered without gaps (O3)."""
        params = as_object(read_frame(body).get("params"))
        for event in params.get("events", ()):
            seq = int(event.get("seq", 0))
            if not seq:
                continue
            session = str(params.get("sessionId"))
            due = self._seqs.get(session, seq - 1) + 1
            self._seqs[session] = seq
            if seq != due and self.difference is None:
                lane = f"session {session}"
                self.difference = Difference(lane, 0, "$.seq", str(due), str(seq))


def _both(was: Any, now: Any) -> tuple[str, str]:
    if isinstance(was, str) and isinstance(now, str):
        return shown_texts(was, now)
    return shown(was), shown(now)
