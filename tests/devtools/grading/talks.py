"""Recordings that are written by hand, for the rules of the grader."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, json

from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording import FrameIn, FrameOut, SessionRecording
from kode_sidecar.devtools.recording.recorded_lines import AnyLine, RecordingHead

Json = dict[str, Any]
Said = tuple[bool, Json]
URI = "file:///tea/a.txt"


def lines(*frames: Said) -> Sequence[FrameIn | FrameOut]:
    """The lines of a recording of these messages; True for those of the client."""
    return [
        (FrameIn if by_client else FrameOut)(frame=Raw(json.encode({"jsonrpc": "2.0", **frame})))
        for by_client, frame in frames
    ]


def recording(
    found: Sequence[AnyLine], *, whole: bool = True, early: tuple[str, ...] = ()
) -> SessionRecording:
    """A recording with these lines after its head."""
    head = RecordingHead(format=2, version="0", started="", platform="Linux", early=early)
    return SessionRecording(head, found, whole=whole)


def talk(*frames: Said, whole: bool = True, early: tuple[str, ...] = ()) -> Talk:
    """A recording of these messages; True for those of the client."""
    return Talk(recording(lines(*frames), whole=whole, early=early))


def opened(text: str) -> Said:
    """The client opens the document."""
    document = {"uri": URI, "version": 1, "text": text}
    return True, {"method": "textDocument/didOpen", "params": {"textDocument": document}}


def changed(version: int, text: str, **place: Any) -> Said:
    """The client reports a change: of the whole text, or of a `range`."""
    document = {"uri": URI, "version": version}
    params = {"textDocument": document, "contentChanges": [{"text": text, **place}]}
    return True, {"method": "textDocument/didChange", "params": params}


def places(line: int, character: int, end_line: int, end: int) -> dict[str, Any]:
    """A range."""
    start = {"line": line, "character": character}
    return {"start": start, "end": {"line": end_line, "character": end}}


def edit(number: str, version: int, *new_lines: tuple[int, str]) -> Said:
    """The sidecar puts lines in the place of others."""
    edits = [{"range": places(line, 0, line + 1, 0), "newText": text} for line, text in new_lines]
    document = {"textDocument": {"uri": URI, "version": version}, "edits": edits}
    params = {"edit": {"documentChanges": [document]}}
    return False, {"id": number, "method": "workspace/applyEdit", "params": params}


def applied(number: str, *, yes: bool = True) -> Said:
    """The client answers an edit."""
    return True, {"id": number, "result": {"applied": yes}}


def verdict(state: str, uri: str = URI) -> Said:
    """The sidecar says what became of a hunk."""
    file = {"uri": uri, "hunks": [{"hunkId": "h", "state": state}]}
    return events({"type": "changeSet.updated", "files": [file]})


def events(*reported: dict[str, Any]) -> Said:
    """The sidecar sends events."""
    params = {"sessionId": "s", "events": list(reported)}
    return False, {"method": "kode/event", "params": params}


def shows(block_id: str, text: str) -> Said:
    """The client reports what it shows of a block."""
    params = {"blockId": block_id, "text": text}
    return True, {"method": "kode/editor/didShow", "params": params}
