"""The rules that end a turn. Pure: no asyncio, no clock."""

from kode_sidecar.domain.agent_event import StopReason
from kode_sidecar.domain.model_event import FinishReason


def must_sum_up(rounds: int, max_tool_rounds: int) -> bool:
    """Has the agent used up its tool rounds? Then the next answer is a summary without tools."""
    return rounds >= max_tool_rounds


def calls_may_run(finish: FinishReason | None, *, summing_up: bool) -> bool:
    """Tool calls of a cut answer may be cut themselves, and a summary has none."""
    return not summing_up and finish in ("stop", "tool_calls", "other", None)


def wants_to_go_on(finish: FinishReason | None, *, summing_up: bool) -> bool:
    """Did the host pause in the middle of an answer? It is asked to go on, within the rounds."""
    return finish == "paused" and not summing_up


def stop_reason(finish: FinishReason | None, *, summing_up: bool) -> StopReason:
    """Why a turn ended whose last answer called no tool."""
    if finish == "length":
        return "max_tokens"
    if finish == "content_filter":
        return "refusal"
    return "max_tool_rounds" if summing_up else "end_turn"
