"""One turn from prompt to end. See README.md; `toolset` is the second door, loaded late."""

from kode_sidecar.turns.compactor import answer_of, compact_result
from kode_sidecar.turns.context import TurnContext
from kode_sidecar.turns.prompt_input import prompt_blocks, title_of
from kode_sidecar.turns.running_turn import (
    RunningTurn,
    TurnKeys,
    turn_active,
    turn_to_steer,
    with_turn_key,
)
from kode_sidecar.turns.services import EncodedRequest, SessionServices
from kode_sidecar.turns.setup import TurnSetup
from kode_sidecar.turns.token_meter import LearnedRates
from kode_sidecar.turns.totals import Totals
from kode_sidecar.turns.turn_log import log_turn
from kode_sidecar.turns.turn_run import report_end, report_usage, run_to_end
from kode_sidecar.turns.whole_message import report_message, write_incoming

__all__ = [
    "EncodedRequest",
    "LearnedRates",
    "RunningTurn",
    "SessionServices",
    "Totals",
    "TurnContext",
    "TurnKeys",
    "TurnSetup",
    "answer_of",
    "compact_result",
    "log_turn",
    "prompt_blocks",
    "report_end",
    "report_message",
    "report_usage",
    "run_to_end",
    "title_of",
    "turn_active",
    "turn_to_steer",
    "with_turn_key",
    "write_incoming",
]
