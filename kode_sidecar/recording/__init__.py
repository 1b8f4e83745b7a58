"""Recording this process, and playing a recording to it."""

from pathlib import Path

from kode_sidecar.recording.playback import Playback
from kode_sidecar.recording.recorder import Recorder
from kode_sidecar.recording.strands import Part, Strands, as_object, read_frame
from kode_sidecar.recording.transcript import read_transcript

__all__ = ["Part", "Playback", "Recorder", "Strands", "as_object", "open_tape", "read_frame"]


def open_tape(record: str | None, tape: str | None, requests: str | None) -> Recorder | Playback:
    """What records to a file, or plays one. Raises KodeError `Storage`."""
    if tape is not None:
        return Playback(read_transcript(Path(tape)), None if requests is None else Path(requests))
    assert record is not None
    return Recorder(Path(record).absolute())
