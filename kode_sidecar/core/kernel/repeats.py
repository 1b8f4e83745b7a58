"""Notices a model that makes the same call again and again, with the same result."""

import json

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import ToolUseBlock
from kode_sidecar.core.kernel.contracts import ToolOutcome

NOTE_AT = 3
STOP_AT = 8


class Repeats:
    """The calls of one turn. A call whose result differs, so that something changed, begins anew.

    Equal calls of one answer count once: the model had not seen the result.

    `stuck` is why the turn is to end, None while it may go on.
    """

    def __init__(self, *, counts: bool = True) -> None:
        self._counts = counts
        self._seen: dict[tuple[str, str], tuple[object, int, str]] = {}
        self.stuck: ErrorInfo | None = None

    def noted(self, call: ToolUseBlock, outcome: ToolOutcome, answer_id: str) -> ToolOutcome:
        """Count a call that ended; return its outcome, with a note where it is one too many."""
        key = call.name, json.dumps(call.input, sort_keys=True, default=str)
        result = outcome.ok, outcome.unchanging or outcome.content or outcome.summary
        before, count, last = self._seen.get(key, (result, 0, ""))
        count = count + (last != answer_id) if before == result else 1
        self._seen[key] = result, count, answer_id
        if count < NOTE_AT or outcome.polls or not self._counts:
            return outcome
        if count >= STOP_AT:
            text = (
                f"The model called {call.name} {count} times with the same arguments, and the "
                "result was the same each time. Tell it what to do differently, and go on."
            )
            self.stuck = failure("Repeating", text)
        note = (
            f"[This is the same call with the same result for the {count}th time. Another one will "
            "say the same: do something else, or say what is missing.]"
        )
        content = f"{outcome.content or outcome.summary}\n{note}"
        return msgspec.structs.replace(outcome, content=content)
