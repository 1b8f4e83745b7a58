"""Which hunks a decision means, and what has become of them."""

from collections.abc import Iterable

from kode_sidecar.domain.change_set import ChangeSet, ProposedHunk
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.change_set import DecideParams, DecideResult, HunkDecision


def choose(change_set: ChangeSet, params: DecideParams) -> dict[str, HunkDecision]:
    """Return by hunk id what was decided, `rest` spelled out, in the order of the announcements.

    `rest` means hunks that still wait and were announced at or before `seen_seq`; to accept a
    sensitive one it must be named.

    Raises KodeError `ChangeSetClosed`, `InvalidParams`.
    """
    if change_set.state == "decided":
        raise KodeError(
            "ChangeSetClosed",
            f"Every hunk of change set {change_set.id} is decided already; "
            "kode/changeSet/get shows how.",
        )
    named = _named(change_set, params)
    if params.rest != "keep":
        if params.seen_seq < 1:
            raise KodeError(
                "InvalidParams",
                f"$.seenSeq: `rest: {params.rest}` needs the last `seq` that you have seen; "
                "hunks announced after it are left alone.",
            )
        for hunk in change_set.hunks.values():
            waits = hunk.state == "proposed" and hunk.announced <= params.seen_seq
            left = params.rest == "accept" and "sensitive" in hunk.flags
            if waits and not left and hunk.id not in named:
                named[hunk.id] = HunkDecision(hunk_id=hunk.id, action=params.rest)
    return {hunk_id: named[hunk_id] for hunk_id in change_set.hunks if hunk_id in named}


def _named(change_set: ChangeSet, params: DecideParams) -> dict[str, HunkDecision]:
    named: dict[str, HunkDecision] = {}
    for at, decision in enumerate(params.decisions):
        where = f"$.decisions[{at}]"
        if decision.hunk_id not in change_set.hunks:
            raise KodeError(
                "InvalidParams",
                f"{where}.hunkId: {decision.hunk_id!r} is no hunk of {change_set.id}.",
            )
        if decision.hunk_id in named:
            raise KodeError(
                "InvalidParams", f"{where}.hunkId: {decision.hunk_id!r} is decided twice."
            )
        if decision.action == "replace" and decision.new_text is None:
            raise KodeError("InvalidParams", f"{where}.newText: `replace` needs the text to put.")
        kind = change_set.hunks[decision.hunk_id].kind
        if decision.action == "replace" and kind in ("rename", "delete"):
            raise KodeError(
                "InvalidParams", f"{where}.action: a {kind} has no text that could be replaced."
            )
        named[decision.hunk_id] = decision
    return named


def result(change_set: ChangeSet, hunks: Iterable[ProposedHunk]) -> DecideResult:
    """Return what has become of the hunks that a decision named."""
    ids: dict[str, list[str]] = {"applied": [], "rejected": [], "stale": [], "conflicts": []}
    verified: bool | None = True
    for hunk in hunks:
        match hunk.state:
            case "applied" | "replaced":
                ids["applied"].append(hunk.id)
                verified = None if hunk.unconfirmed and verified else verified
            case "rejected" | "stale":
                ids[hunk.state].append(hunk.id)
            case "proposed":
                pass
            case _:
                ids["conflicts"].append(hunk.id)
                verified = False if hunk.state == "diverged" else verified
    return DecideResult(
        state=change_set.state,
        applied=tuple(ids["applied"]),
        rejected=tuple(ids["rejected"]),
        stale=tuple(ids["stale"]),
        conflicts=tuple(ids["conflicts"]),
        verified=verified,
    )
