"""The rules of the protocol by id, and what a recording says of each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kode_sidecar.devtools.grading import document_rules, file_rules, message_rules, shown_rules
from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Talk

Spoken = TypeVar("Spoken")


def _always(_: object) -> bool:
    return True


class GradingRule(NamedTuple, Generic[Spoken]):
    """`check` finds the faults; `concerns` is true if the recording has anything to check."""

    check: Callable[[Spoken], Faults]
    concerns: Callable[[Spoken], bool] = _always

    @property
    def about(self) -> str:
        """What a client must do."""
        return " ".join((self.check.__doc__ or "").split("\n\n")[0].split())


def _takes_back(talk: Talk) -> bool:
    return any(exchange.cancelled is not None for exchange in talk.questions)


def _has_documents(talk: Talk) -> bool:
    return bool(talk.documents)


def _shows(talk: Talk) -> bool:
    return bool(shown_rules.shown(talk))


def _asks(talk: Talk) -> bool:
    return bool(talk.questions)


def _edits(talk: Talk) -> bool:
    return any(True for _ in document_rules.sent_edits(talk))


def _changes_files(talk: Talk) -> bool:
    return any(True for _ in file_rules.applied_edits(talk))


def _is_greased(talk: Talk) -> bool:
    return any(exchange.request.method == "kode/grease" for exchange in talk.questions)


RULES: Mapping[str, GradingRule[Talk]] = {
    "hands-shaken": GradingRule(message_rules.shaken_hands),
    "ended-in-order": GradingRule(message_rules.ended_in_order),
    "params-right": GradingRule(message_rules.params_right),
    "order-kept": GradingRule(message_rules.order_kept),
    "capabilities-true": GradingRule(message_rules.capabilities_true),
    "answered-once": GradingRule(message_rules.answered_once, _asks),
    "answers-shaped": GradingRule(message_rules.answers_shaped, _asks),
    "unknown-refused": GradingRule(message_rules.unknown_refused, _is_greased),
    "cancel-honoured": GradingRule(message_rules.cancel_honoured, _takes_back),
    "versions-kept": GradingRule(document_rules.versions_kept, _has_documents),
    "applied-shown": GradingRule(document_rules.applied_shown, _edits),
    "refused-untouched": GradingRule(document_rules.refused_untouched, _edits),
    "stale-refused": GradingRule(document_rules.stale_refused, _edits),
    "files-changed": GradingRule(file_rules.files_changed, _changes_files),
    "deltas-folded": GradingRule(shown_rules.deltas_folded, _shows),
    "growth-shown": GradingRule(shown_rules.growth_shown, _shows),
}
"""All rules by id. The first sentence of a check's docstring says what a client must do."""


class GradingVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one rule; `unseen`: the recording has nothing that the rule is about."""

    rule: str
    state: str
    faults: tuple[Fault, ...] = ()


def verdicts(
    talk: Spoken, rules: Mapping[str, GradingRule[Spoken]] | None = None
) -> Sequence[GradingVerdict]:
    """Return the verdict of every rule, of `RULES` unless others are given."""
    found: list[GradingVerdict] = []
    chosen: Mapping[str, GradingRule[Any]] = RULES if rules is None else rules
    for name, rule in chosen.items():
        faults = tuple(rule.check(talk)) if rule.concerns(talk) else ()
        state = "kept" if rule.concerns(talk) else "unseen"
        found.append(GradingVerdict(name, "broken" if faults else state, faults))
    return found
