"""Matches what a process says with what the recorded one said, lane by lane."""

from collections import Counter, defaultdict
from typing import Any

from kode_sidecar.devtools.recording.comparison import (
    Difference,
    Ids,
    first_difference,
    shown,
    shown_both,
    shown_texts,
    without_number,
)
from kode_sidecar.devtools.recording.folders import FolderNames
from kode_sidecar.devtools.recording.lanes import (
    Lane,
    LanePart,
    Lanes,
    as_object,
    read_frame,
    session_lane,
)
from kode_sidecar.devtools.recording.recorded_lines import DrawnId, FrameIn, FrameOut, InputEnded
from kode_sidecar.devtools.recording.recording_file import SessionRecording


class Matcher:
    """Expects every recorded message again, in the order of its lane, and no other.

    An event that is not kept, of a type that the recording never has, is one of newer programs: it
    is passed over. `difference` is the first one found. After the end of a recording that was cut
    off nothing is compared.
    """

    def __init__(self, recording: SessionRecording, names: FolderNames) -> None:
        self._names = names
        self._whole = recording.whole
        self._was = Lanes()
        self._now = Lanes()
        self.ids = Ids(line.id for line in recording.lines if isinstance(line, DrawnId))
        self._expected: defaultdict[Lane, list[tuple[int, LanePart]]] = defaultdict(list)
        self._texts: defaultdict[Lane, str] = defaultdict(str)
        self._text_lines: dict[Lane, int] = {}
        self._received: Counter[Lane] = Counter()
        self._grown: defaultdict[Lane, str] = defaultdict(str)
        self._seqs: dict[str, int] = {}
        self.difference: Difference | None = None
        self._dues: list[Counter[Lane]] = []
        self._types: set[object] = set()
        self._expect(recording)

    def _expect(self, recording: SessionRecording) -> None:
        due: Counter[Lane] = Counter()
        for number, line in enumerate(recording.lines, 1):
            if isinstance(line, FrameIn):
                self._was.received(bytes(line.frame))
                self._dues.append(due.copy())
            elif isinstance(line, InputEnded):
                self._dues.append(due.copy())
            elif isinstance(line, FrameOut):
                for part in self._was.said(bytes(line.frame)):
                    due[part.lane] += part.size
                    if part.lane.kind == "block":
                        self._texts[part.lane] += part.message["add"]
                        self._text_lines.setdefault(part.lane, number)
                    else:
                        self._expected[part.lane].append((number, part))
                        self._types.add(part.message.get("type"))
        self._dues.append(due)

    def sent(self, body: bytes) -> None:
        """Note a message of the client."""
        self._now.received(body)

    def is_due(self, frame: int) -> bool:
        """Return whether all was said that came before client message `frame`, counted from 0."""
        return not self._missing(frame)

    def received(self, body: bytes) -> None:
        """Compare a message of the process with the recorded one."""
        self._check_numbers(body)
        for part in self._now.said(body):
            if self.difference is None and not self._is_newer(part):
                lane = Lane(part.lane.kind, self.ids.recorded(part.lane.of))
                self._receive(part._replace(lane=lane))

    def _is_newer(self, part: LanePart) -> bool:
        reported = part.message
        unkept = part.lane.kind == "session" and "type" in reported and not reported.get("seq")
        return unkept and reported["type"] not in self._types

    def missing(self, frame: int) -> Difference | None:
        """Return the earliest message that should have come before client message `frame`."""
        found: list[Difference] = []
        for lane in self._missing(frame):
            if lane in self._texts:
                was, now = shown_texts(self._texts[lane], self._grown[lane])
                found.append(Difference(str(lane), self._text_lines[lane], "$.add", was, now))
            else:
                number, part = self._expected[lane][self._received[lane]]
                found.append(Difference(str(lane), number, "$", shown(part.message), "nothing"))
        return min(found, key=lambda difference: difference.line, default=None)

    def _missing(self, frame: int) -> list[Lane]:
        due = self._dues[min(frame, len(self._dues) - 1)]
        return [lane for lane, count in due.items() if self._received[lane] < count]

    def _receive(self, part: LanePart) -> None:
        lane = part.lane
        self._received[lane] += part.size
        if lane.kind == "block":
            self._receive_text(part)
            return
        place = self._received[lane] - 1
        if place >= len(self._expected[lane]):
            if self._whole:
                now = shown(part.message)
                self.difference = Difference(str(lane), 0, "$", "nothing more", now)
            return
        number, expected = self._expected[lane][place]
        was = self._names.name_recorded(without_number(expected.message))
        now = self._names.name_live(without_number(part.message))
        self._bind_request(was, now)
        method = self._was.method_of(was.get("id")) if "method" not in was else ""
        if found := first_difference(was, now, self.ids, method):
            at, one, other = found
            reported = shown_both(one, other)
            self.difference = Difference(str(lane), number, at, *reported, shown(part.message))

    def _receive_text(self, part: LanePart) -> None:
        lane = part.lane
        grown = self._grown[lane]
        if part.message["at"] != len(grown):
            self._text_differs(lane, f"text at {len(grown)}", f"text at {part.message['at']}")
            return
        self._grown[lane] = grown = grown + part.message["add"]
        was = self._texts[lane]
        if not was.startswith(grown) and (self._whole or not grown.startswith(was)):
            self._text_differs(lane, *shown_texts(was, grown))

    def _text_differs(self, lane: Lane, was: str, now: str) -> None:
        line = self._text_lines.get(lane, 0)
        self.difference = Difference(str(lane), line, "$.add", was, now)

    def _bind_request(self, was: dict[str, Any], now: dict[str, Any]) -> None:
        """Equate the ids of a request to the client: the client's answer repeats its id."""
        if "method" in was and isinstance(was.get("id"), str) and isinstance(now.get("id"), str):
            self.ids.bind(was["id"], now["id"])

    def _check_numbers(self, body: bytes) -> None:
        """Events of a session are numbered without gaps (O3), from where it was attached to."""
        frame = read_frame(body)
        params, result = as_object(frame.get("params")), as_object(frame.get("result"))
        if self._now.method_of(frame.get("id")) == "kode/session/attach" and "seq" in result:
            session = str(self._now.params_of(frame["id"]).get("sessionId"))
            self._seqs[session] = int(result["seq"])
        for event in params.get("events", ()):
            seq = int(event.get("seq", 0))
            if not seq:
                continue
            session = str(params.get("sessionId"))
            due = self._seqs.get(session, seq - 1) + 1
            self._seqs[session] = seq
            if seq != due and self.difference is None:
                lane = session_lane(session)
                self.difference = Difference(str(lane), 0, "$.seq", str(due), str(seq))
