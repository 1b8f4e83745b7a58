"""What carries hunks to the editor and back, made once for a session."""

from dataclasses import dataclass

from kode_sidecar.edits.announcer import Announcer
from kode_sidecar.edits.edit_locks import EditLocks
from kode_sidecar.edits.edit_sender import EditSender
from kode_sidecar.edits.file_sender import FileSender
from kode_sidecar.edits.hunk_ledger import HunkLedger
from kode_sidecar.edits.session_files import SessionFiles
from kode_sidecar.workspace.overlay import Overlay


@dataclass(frozen=True)
class EditServices:
    """Decisions go one way with it, undo the other."""

    ledger: HunkLedger
    overlay: Overlay
    files: SessionFiles
    announcer: Announcer
    sender: EditSender
    file_sender: FileSender
    locks: EditLocks
