"""`update_plan`: the model's own list of steps, which the user sees."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.core.domain.agent_event import Event, PlanItem, PlanState, PlanUpdated
from kode_sidecar.core.kernel.contracts import CallCard, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.shown_text import one_line, without_hidden
from kode_sidecar.errors import KodeError

MAX_ITEMS = 50

_MARKS: dict[PlanState, str] = {"done": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class PlanStep(Struct, forbid_unknown_fields=True):
    """One step."""

    text: Annotated[str, Meta(min_length=1, max_length=300, description="In the user's language")]
    state: PlanState = "pending"


class UpdatePlanParams(Struct, forbid_unknown_fields=True):
    """Keep the list of steps that the user follows; each call replaces the whole list.

    Write it down before you begin and tick off each step as it is done, beside other calls. One
    step is `in_progress` at a time.
    """

    items: Annotated[list[PlanStep], Meta(max_length=MAX_ITEMS, description="All steps, in order")]


def update_plan_tool(emit: Callable[[Event], int]) -> Tool:
    """Make the tool of one session."""

    async def run(params: UpdatePlanParams, call: ToolCall) -> ToolOutcome:
        items = tuple(PlanItem(text=_shown(step.text), state=step.state) for step in params.items)
        if sum(item.state == "in_progress" for item in items) > 1:
            raise KodeError("InvalidArguments", "At most one step is `in_progress` at a time.")
        emit(
            PlanUpdated(
                turn_id=call.turn_id,
                message_id=call.message_id,
                block_id=call.block_id,
                items=items,
            )
        )
        reported = "\n".join(f"{_MARKS[item.state]} {item.text}" for item in items)
        return ToolOutcome(
            ok=True, summary=_title(params), content=reported or "The plan is empty."
        )

    return Tool("update_plan", UpdatePlanParams, run, kind="think", card=_card)


def _shown(text: str) -> str:
    return one_line(without_hidden(text))


def _card(params: UpdatePlanParams) -> CallCard:
    return CallCard(_title(params))


def _title(params: UpdatePlanParams) -> str:
    if not params.items:
        return "Plan: empty"
    done = sum(step.state == "done" for step in params.items)
    now = next((step.text for step in params.items if step.state == "in_progress"), "")
    return f"Plan: {done} of {len(params.items)} done" + (f" · {_shown(now)}" if now else "")
