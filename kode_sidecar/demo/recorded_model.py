"""A recorded model: the raw bytes of its answers, in order, with their pace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_EVENT_END = b"\n\n"


@dataclass(frozen=True)
class Piece:
    """Bytes that are sent in one go, `delay_ms` after the piece before.

    With `hold` the server first waits until `ModelServer.release(hold)`.
    """

    data: bytes
    delay_ms: float = 0
    hold: str = ""


@dataclass(frozen=True)
class RecordedResponse:
    """One HTTP answer. `broken`: the connection is cut after the last piece, without an end."""

    pieces: tuple[Piece, ...]
    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    broken: bool = False

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(piece.data for piece in self.pieces)


@dataclass(frozen=True)
class Recording:
    """Answers in the order they are asked for; `models` are the ids the host serves."""

    responses: tuple[RecordedResponse, ...]
    models: tuple[str, ...] = ("kimi-k2.6",)


def load_recording(folder: Path, delay_ms: float) -> Recording:
    """The recording in `folder`: one file of SSE per answer, in name order.

    Each event is one piece. Raises OSError, and ValueError when there is no answer.
    """
    files = sorted(folder.glob("*.sse"))
    if not files:
        raise ValueError(f"no recorded answers in {folder}")
    return Recording(tuple(_response(file.read_bytes(), delay_ms) for file in files))


def _response(stream: bytes, delay_ms: float) -> RecordedResponse:
    events = [event + _EVENT_END for event in stream.split(_EVENT_END) if event.strip()]
    return RecordedResponse(tuple(Piece(event, delay_ms) for event in events))
