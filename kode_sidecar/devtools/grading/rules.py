"""`kode-sidecar grade`: checks whether a client follows the protocol, rule by rule."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from kode_sidecar.devtools.grading import document_rules, message_rules, shown_rules
from kode_sidecar.devtools.grading.document_rules import Fault, Faults
from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording import isolate, read_recording
from kode_sidecar.errors import KodeError

RIGHT, FAULTY, UNKNOWN = 0, 1, 2


def _always(_: Talk) -> bool:
    return True


class GradingRule(NamedTuple):
    """`check` finds the faults; `concerns` is true if the recording has anything to check."""

    check: Callable[[Talk], Faults]
    concerns: Callable[[Talk], bool] = _always


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


def _is_greased(talk: Talk) -> bool:
    return any(exchange.request.method == "kode/grease" for exchange in talk.questions)


RULES: Mapping[str, GradingRule] = {
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
    "deltas-folded": GradingRule(shown_rules.deltas_folded, _shows),
    "growth-shown": GradingRule(shown_rules.growth_shown, _shows),
}
"""All rules by id. The first sentence of a check's docstring says what a client must do."""


class GradingVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one rule; `unseen`: the recording has nothing that the rule is about."""

    rule: str
    state: str
    faults: tuple[Fault, ...] = ()


def verdicts(talk: Talk) -> Sequence[GradingVerdict]:
    """Return the verdict of every rule."""
    found: list[GradingVerdict] = []
    for name, rule in RULES.items():
        faults = tuple(rule.check(talk)) if rule.concerns(talk) else ()
        state = "kept" if rule.concerns(talk) else "unseen"
        found.append(GradingVerdict(name, "broken" if faults else state, faults))
    return found


def grade(files: Sequence[Path], *, json: bool = False) -> int:
    """Print the verdicts and return the exit code: 0 right, 1 faulty, 2 unreadable."""
    isolate()
    code = RIGHT
    for file in files:
        try:
            found = verdicts(Talk(read_recording(file)))
        except KodeError as error:
            sys.stderr.write(f"kode-sidecar grade: {error.message}\n")
            return UNKNOWN
        if any(verdict.faults for verdict in found):
            code = FAULTY
        if json:
            report = {"recording": str(file), "verdicts": found}
            sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        else:
            sys.stdout.write(_report(file, found))
    return code


def _report(file: Path, found: Sequence[GradingVerdict]) -> str:
    width = max(map(len, RULES))
    marks = {"kept": "ok    ", "broken": "BROKEN", "unseen": "  -   "}
    lines = [str(file)]
    for verdict in found:
        about = " ".join((RULES[verdict.rule].check.__doc__ or "").split("\n\n")[0].split())
        lines.append(f"  {marks[verdict.state]} {verdict.rule:<{width}}  {about}")
        lines += [f"         line {fault.line}: {fault.text}" for fault in verdict.faults]
    counts = {state: sum(one.state == state for one in found) for state in marks}
    lines.append("  " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    return "\n".join(lines) + "\n"
