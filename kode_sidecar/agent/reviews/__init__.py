"""Code review: readers side by side, a second pass that refutes, findings on record. See README."""

from kode_sidecar.agent.reviews.record import ReviewRecord, read_review
from kode_sidecar.agent.reviews.review_tools import (
    decide_finding_tool,
    review_changes_tool,
    review_request,
)
from kode_sidecar.agent.reviews.session_findings import SessionFindings

__all__ = [
    "ReviewRecord",
    "SessionFindings",
    "decide_finding_tool",
    "read_review",
    "review_changes_tool",
    "review_request",
]
