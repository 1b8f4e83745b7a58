"""What the tools of one turn act on."""

from dataclasses import dataclass

from kode_sidecar.edits import ChangeSets
from kode_sidecar.event_log import SessionRecords
from kode_sidecar.kernel.contracts import Emit
from kode_sidecar.turns.context import TurnContext


@dataclass(frozen=True)
class ToolScope:
    """A turn, and the session it is in."""

    context: TurnContext
    change_sets: ChangeSets
    emit: Emit
    records: SessionRecords
