"""What the tools of one turn act on."""

from dataclasses import dataclass

from kode_sidecar.kernel.contracts import Emit
from kode_sidecar.main_session.change_sets import ChangeSets
from kode_sidecar.main_session.session_records import SessionRecords
from kode_sidecar.main_session.turn_context import TurnContext


@dataclass(frozen=True)
class ToolScope:
    """A turn, and the session it is in."""

    context: TurnContext
    change_sets: ChangeSets
    emit: Emit
    records: SessionRecords
