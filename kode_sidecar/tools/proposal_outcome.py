"""What the model reads about a proposal it made."""

from collections.abc import Sequence

from kode_sidecar.kernel.contracts import ToolOutcome
from kode_sidecar.text.edit_tiers import Tier
from kode_sidecar.text.line_diff import split_lines, unified_diff
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.tools.contracts import Proposed
from kode_sidecar.workspace.document import text_rev


def text_report(proposed: Proposed, notes: Sequence[str] = (), tiers: Sequence[Tier] = ()) -> str:
    """A changed text: what was done, the new revision, the diff with the new line numbers.

    `tiers` are the rungs of the ladder that the quotes needed.
    """
    before, after = split_lines(proposed.before), split_lines(proposed.after)
    diff = unified_diff(before, after, proposed.path).rstrip("\n")
    return "\n".join([proposed.message, head(proposed, tiers), *notes, diff])


def head(proposed: Proposed, tiers: Sequence[Tier] = ()) -> str:
    """The file and the revision that the model may name from now on."""
    facts = [proposed.path, f"base_rev {text_rev(proposed.text)[:12]}"]
    if tiers:
        facts.append("matched: " + ", ".join(dict.fromkeys(tiers)))
    return "[" + " · ".join(facts) + "]"


def outcome(proposed: Sequence[Proposed], content: str, repairs: Sequence[str]) -> ToolOutcome:
    """The outcome of a call that proposed something in one change set."""
    if repairs:
        content += f"\n[Your arguments were mended: {'; '.join(repairs)}.]"
    return ToolOutcome(
        ok=True,
        summary=without_controls("; ".join(one.summary for one in proposed)),
        content=without_controls(content),
        data={
            "changeSetId": proposed[0].change_set_id,
            "hunkIds": [hunk_id for one in proposed for hunk_id in one.hunk_ids],
        },
    )
