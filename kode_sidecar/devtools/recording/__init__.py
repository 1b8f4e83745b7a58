"""Recording this process, and playing a recording to it."""

from pathlib import Path

from kode_sidecar.devtools.recording.grease import Grease
from kode_sidecar.devtools.recording.isolation import isolate
from kode_sidecar.devtools.recording.lanes import as_object, read_frame
from kode_sidecar.devtools.recording.playback import Playback
from kode_sidecar.devtools.recording.recorded_lines import (
    FilesLeftOut,
    FrameIn,
    FrameOut,
    RecordedFile,
)
from kode_sidecar.devtools.recording.recorder import Recorder
from kode_sidecar.devtools.recording.recording_file import SessionRecording, read_recording
from kode_sidecar.infrastructure.workspace.ripgrep import find_ripgrep

__all__ = [
    "FilesLeftOut",
    "FrameIn",
    "FrameOut",
    "Playback",
    "RecordedFile",
    "Recorder",
    "SessionRecording",
    "as_object",
    "isolate",
    "open_recording",
    "read_frame",
    "read_recording",
]


def open_recording(
    record: str | None, tape: str | None, requests: str | None, *, grease: bool = False
) -> Recorder | Playback:
    """Return what records to a file, or what plays one. Raises KodeError `Storage`.

    A process that plays is isolated from here on.
    """
    if tape is not None:
        isolate(find_ripgrep())
        return Playback(read_recording(Path(tape)), None if requests is None else Path(requests))
    assert record is not None
    return Recorder(Path(record).absolute(), Grease() if grease else None)
