"""How an answer ends, whatever the dialect, and what makes its end no answer. Sans-IO."""

from kode_sidecar.domain.error_info import ErrorInfo, failure
from kode_sidecar.domain.model_event import (
    FinishReason,
    ModelNotice,
    ResponseFailed,
    ResponseFinished,
)
from kode_sidecar.providers.delta_runs import DeltaRuns

# With one of these an answer may well be empty, and its calls do not run.
_SAYS_ENOUGH: frozenset[FinishReason] = frozenset(
    {"incomplete", "length", "content_filter", "paused"}
)


def put_end(
    runs: DeltaRuns,
    reason: FinishReason,
    raw_reason: str | None,
    host: str,
    *,
    marked: bool,
    damaged: bool,
    has_calls: bool,
    has_nameless_call: bool,
) -> None:
    """The last events of an answer: notices of how it came, and its end or the failure it is.

    `marked`: the end mark came. `damaged`: an event was passed over.
    """
    fault = _fault(reason, runs, has_calls=has_calls, has_nameless_call=has_nameless_call)
    if fault is not None:
        runs.put(ResponseFailed(fault))
        return
    if reason != "incomplete" and damaged:
        runs.put(damage_notice(host))
    if reason != "incomplete" and not marked:
        text = f"{host} ends its answers without the usual end mark; they are taken as whole."
        runs.put(ModelNotice("stream_unmarked_end", text))
    runs.put(ResponseFinished(reason, raw_reason))


def damage_notice(host: str) -> ModelNotice:
    """Told when an event was passed over."""
    text = f"{host} sent a damaged piece of an answer; it was left out, so words may be missing."
    return ModelNotice("stream_damaged", text)


def _fault(
    reason: FinishReason, runs: DeltaRuns, *, has_calls: bool, has_nameless_call: bool
) -> ErrorInfo | None:
    if reason in _SAYS_ENOUGH:
        return None
    if has_nameless_call:
        return failure("IncompleteAnswer", "The model called a tool without naming it; ask again.")
    if not runs.has_text and not has_calls:
        return failure(
            "EmptyAnswer", "The model ended its answer without saying anything; ask again."
        )
    return None
