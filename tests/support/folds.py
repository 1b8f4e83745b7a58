"""What two folds of one session must agree on, however each of them came about."""

from typing import Any

from tests.support.session_fold import SessionFold


def final_state(fold: SessionFold) -> dict[str, Any]:
    """Everything of a session in which nothing runs."""
    assert fold.anomalies == []
    assert fold.gaps == []
    return {
        "seq": fold.seq,
        "title": fold.title or "",
        "usage": fold.usage.get("usage"),
        "cost": round(fold.usage.get("cost", {}).get("amount", 0.0), 9),
        "active": fold.active_turn and fold.active_turn.id,
        "questions": fold.questions,
        "messages": [
            (view.id, view.role, view.parent_id, view.completed, [b.block for b in view.blocks])
            for view in fold.messages.values()
        ],
        "hunks": {
            change_set.id: (change_set.state, {hunk.id: hunk.state for hunk in change_set.hunks()})
            for change_set in fold.change_sets.values()
        },
    }
