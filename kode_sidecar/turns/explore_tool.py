"""`explore`: questions handed out to scouts, answered side by side."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.domain.error_info import failure
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome, tool_failure
from kode_sidecar.scouts import Dispatch, as_json
from kode_sidecar.scouts.contracts import MAX_TASKS, ExploreReport, ExploreRequest, ExploreTask
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.turns.tool_scope import ToolScope

_STATES = {"done": "reported", "timed_out": "timed out", "failed": "failed", "refused": "refused"}


class ExploreParams(Struct, forbid_unknown_fields=True):
    """Send out scouts that read the project for you, side by side, one for each task.

    A scout has tools to read and nothing else, up to ten minutes and 100 calls. It knows nothing
    of this conversation and only its report comes back, so ask for what you would otherwise have
    to read a lot for: where something is done, how a part works, what depends on it. Each finding
    cites path and lines; `unverified` ones are not backed by the text there. A report that is not
    `done` is partial. At most five scouts are out at once.
    """

    tasks: Annotated[
        list[ExploreTask],
        Meta(min_length=1, max_length=MAX_TASKS, description="Questions that stand on their own"),
    ]


def explore_tool(
    dispatch: Dispatch,
    scope: ToolScope,
    reading: Sequence[Tool],
    text_of: Callable[[str], str],
) -> Tool:
    """The tool for one turn. Scouts get `reading`; `text_of` a path is what they see of it."""

    async def run(params: ExploreParams, call: ToolCall) -> ToolOutcome:
        request = ExploreRequest(
            call=call,
            model=scope.context.model,
            tools=reading,
            text_of=text_of,
            emit=scope.emit,
            spend=scope.context.totals.add_message,
            open_log=scope.records.open_scout_log,
            save_artifact=scope.records.save_artifact,
        )
        return _outcome(await dispatch.explore(params.tasks, request))

    return Tool("explore", ExploreParams, run, read_only=True)


def _outcome(reports: Sequence[ExploreReport]) -> ToolOutcome:
    if all(report.state == "refused" for report in reports):
        return tool_failure(failure("Overloaded", reports[0].note))
    counted = Counter(_STATES[report.state] for report in reports)
    told = ", ".join(f"{count} {word}" for word, count in counted.items())
    calls = sum(report.tool_calls for report in reports)
    return ToolOutcome(
        ok=True,
        summary=f"{len(reports)} scout{'' if len(reports) == 1 else 's'}: {told}; {calls} calls",
        content=without_controls(as_json(reports)),
    )
