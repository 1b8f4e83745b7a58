"""One turn from prompt to end. See README.md; `toolset` is the second door, loaded late."""

from kode_sidecar.agent.turns.compactor import answer_of, compact_result
from kode_sidecar.agent.turns.context import (
    LearnedRates,
    TurnContext,
    report_message,
    write_incoming,
)
from kode_sidecar.agent.turns.prompt import check_is_seen, prompt_blocks, title_of, with_choices
from kode_sidecar.agent.turns.services import (
    Budgets,
    FindHooks,
    Hooks,
    HookScope,
    NoHooks,
    OfferTools,
    RequestBody,
    SessionServices,
    ToolScope,
)
from kode_sidecar.agent.turns.setup import TurnSetup
from kode_sidecar.agent.turns.turn import (
    RunningTurn,
    TurnKeys,
    report_end,
    report_usage,
    run_to_end,
    turn_active,
    turn_to_steer,
    write_opening,
)

__all__ = [
    "Budgets",
    "FindHooks",
    "HookScope",
    "Hooks",
    "LearnedRates",
    "NoHooks",
    "OfferTools",
    "RequestBody",
    "RunningTurn",
    "SessionServices",
    "ToolScope",
    "TurnContext",
    "TurnKeys",
    "TurnSetup",
    "answer_of",
    "check_is_seen",
    "compact_result",
    "prompt_blocks",
    "report_end",
    "report_message",
    "report_usage",
    "run_to_end",
    "title_of",
    "turn_active",
    "turn_to_steer",
    "with_choices",
    "write_incoming",
    "write_opening",
]
