"""Which hunks a decision means, and what has become of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kode_sidecar.core.domain.change_set import ChangeSet, ProposedHunk
from kode_sidecar.core.domain.hunk_state import facts
from kode_sidecar.core.protocol.change_set import DecideParams, DecideResult, HunkDecision
from kode_sidecar.errors import KodeError, invalid_at


def choose(change_set: ChangeSet, params: DecideParams) -> dict[str, HunkDecision]:
    """Return by hunk id what was decided, `rest` spelled out, in the order of the announcements.

    `rest` means hunks that still wait and were announced at or before `seen_seq`; to accept a
    sensitive one, or a merge, it must be named. So must one be that is accepted again after it
    could not be applied.

    What is decided that way already is among them: who repeats a decision is answered.

    Raises KodeError `ChangeSetClosed`, `InvalidParams`.
    """
    again = any(
        decision.action != "reject"
        and decision.hunk_id in change_set.hunks
        and facts(change_set.hunks[decision.hunk_id].state).is_failed
        for decision in params.decisions
    )
    named = _named(change_set, params)
    if change_set.state == "decided" and not again:
        _check_decided_so(change_set, named, params)
    if params.rest != "keep":
        if params.seen_seq < 1:
            raise invalid_at(
                "$.seenSeq",
                f"`rest: {params.rest}` needs the last `seq` that you have seen; "
                "hunks announced after it are left alone.",
            )
        for hunk in change_set.hunks.values():
            meant = hunk.is_waiting or params.rest in facts(hunk.state).carries_out
            meant = meant and hunk.announced <= params.seen_seq
            if meant and not _is_left(hunk, params) and hunk.id not in named:
                named[hunk.id] = HunkDecision(hunk_id=hunk.id, action=params.rest)
    return {hunk_id: named[hunk_id] for hunk_id in change_set.hunks if hunk_id in named}


def left_out(change_set: ChangeSet, params: DecideParams) -> tuple[str, ...]:
    """Return the sensitive hunks that `rest` does not cover and nobody named."""
    named = {decision.hunk_id for decision in params.decisions}
    return tuple(
        hunk.id
        for hunk in change_set.hunks.values()
        if hunk.state == "proposed"
        and hunk.announced <= params.seen_seq
        and hunk.id not in named
        and _is_left(hunk, params)
    )


def _is_left(hunk: ProposedHunk, params: DecideParams) -> bool:
    careful = "sensitive" in hunk.flags or hunk.merge_of is not None
    return params.rest == "accept" and careful


def _check_decided_so(
    change_set: ChangeSet, named: Mapping[str, HunkDecision], params: DecideParams
) -> None:
    """Raise KodeError `ChangeSetClosed` unless all that is meant was decided that way."""
    others = [key for key, one in named.items() if not _is_so(change_set.hunks[key], one)]
    rest = (facts(one.state) for one in change_set.hunks.values() if one.id not in named)
    if not others and (named or any(params.rest in state.carries_out for state in rest)):
        return
    raise KodeError(
        "ChangeSetClosed",
        f"Every hunk of change set {change_set.id} is decided already; "
        "kode/changeSet/get shows how.",
        details={"hunkIds": others},
    )


def _is_so(hunk: ProposedHunk, decision: HunkDecision) -> bool:
    is_so = decision.action in facts(hunk.state).carries_out
    return is_so and decision.put in (None, hunk.replacement)


def _named(change_set: ChangeSet, params: DecideParams) -> dict[str, HunkDecision]:
    named: dict[str, HunkDecision] = {}
    for at, decision in enumerate(params.decisions):
        where = f"$.decisions[{at}]"
        if decision.hunk_id not in change_set.hunks:
            raise invalid_at(
                f"{where}.hunkId", f"{decision.hunk_id!r} is no hunk of {change_set.id}."
            )
        if decision.hunk_id in named:
            raise invalid_at(f"{where}.hunkId", f"{decision.hunk_id!r} is decided twice.")
        if decision.action == "replace" and decision.new_text is None:
            raise invalid_at(f"{where}.newText", "`replace` needs the text to put.")
        kind = change_set.hunks[decision.hunk_id].kind
        if decision.action == "replace" and change_set.hunks[decision.hunk_id].is_to_keep:
            raise invalid_at(
                f"{where}.action", "it is applied: edit it in the buffer, then accept."
            )
        if decision.action == "replace" and kind in ("rename", "delete"):
            raise invalid_at(f"{where}.action", f"a {kind} has no text that could be replaced.")
        named[decision.hunk_id] = decision
    return named


def result(
    change_set: ChangeSet,
    hunks: Iterable[ProposedHunk],
    choices: Mapping[str, HunkDecision],
    left: Sequence[str] = (),
) -> DecideResult:
    """Return what has become of the hunks that `choices` name; `left` they do not cover."""
    ids: dict[str, list[str]] = defaultdict(list)
    shown: set[bool | None] = set()
    for hunk in hunks:
        known = facts(hunk.state)
        stuck = hunk.is_to_keep and choices[hunk.id].action == "reject"
        ids["conflicts" if stuck else known.counted_as].append(hunk.id)
        if known.is_done:
            shown.add(None if hunk.unconfirmed else True)
        elif hunk.state == "diverged":
            shown.add(False)
    return DecideResult(
        state=change_set.state,
        applied=tuple(ids["applied"]),
        rejected=tuple(ids["rejected"]),
        stale=tuple(ids["stale"]),
        conflicts=tuple(ids["conflicts"]),
        left=tuple(left),
        verified=False if False in shown else None if None in shown or not shown else True,
    )
