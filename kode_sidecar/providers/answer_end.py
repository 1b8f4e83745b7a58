"""What makes the end of an answer no answer, whatever the dialect. Sans-IO."""

from kode_sidecar.domain.error_info import ErrorInfo, failure
from kode_sidecar.domain.model_event import FinishReason, ModelNotice

# With one of these an answer may well be empty, and its calls do not run.
_SAYS_ENOUGH: frozenset[FinishReason] = frozenset(
    {"incomplete", "length", "content_filter", "paused"}
)


def fault_of(
    reason: FinishReason, *, has_text: bool, has_calls: bool, has_nameless_call: bool
) -> ErrorInfo | None:
    """The failure that an answer with this end is; None when it is an answer."""
    if reason in _SAYS_ENOUGH:
        return None
    if has_nameless_call:
        return failure("IncompleteAnswer", "The model called a tool without naming it; ask again.")
    if not has_text and not has_calls:
        return failure(
            "EmptyAnswer", "The model ended its answer without saying anything; ask again."
        )
    return None


def bad_event_notice(host: str) -> ModelNotice:
    """Told when an event was passed over."""
    text = f"{host} sent a damaged piece of an answer; it was left out, so words may be missing."
    return ModelNotice("stream_damaged", text)


def no_end_mark_notice(host: str) -> ModelNotice:
    """Told when an answer ended with a reason, but without the mark that should follow."""
    text = f"{host} ends its answers without the usual end mark; they are taken as whole."
    return ModelNotice("stream_unmarked_end", text)
