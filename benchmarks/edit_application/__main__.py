"""How often an edit that a model writes ends as it is meant: right, refused, or wrong.

Edits of the history of a repository, in six dialects, undamaged and with two damages each in turn.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.edit_application.damages import DAMAGES, Case, Lines, undamaged
from benchmarks.edit_application.desk import Desk, Refused
from benchmarks.edit_application.dialects import DIALECTS, Call, applies, meaning, whole, written
from benchmarks.edit_application.mined import Edit, mined
from benchmarks.edit_application.others import Apply, appliers
from kode_sidecar.core.text.secret_text import find_secret

_HERE = Path(__file__).resolve().parents[2]
_TRUE_REASONS = {
    "elisions": {"placeholder"},
    "stale base": {"stale", "not_found", "unread"},
    "moved lines": {"stale", "unread"},
    "repeated blocks": {"ambiguous"},
    "cut ends": {"unreadable", "cut", "identical"},
    "doubled lines": {"not_found"},
}
OURS = "kode-sidecar"
OUTCOMES = ("right", "needless", "wrong", "refused", "untrue", "guessed")
"""Of edits with one meaning the first three; of those with none: refused, with another reason than
the true one, or applied all the same."""


@dataclass
class Tally:
    """Outcomes by applier, dialect and damage.

    `odd` are those that nobody wants, `missing` are appliers that are not installed.
    """

    outcomes: Counter[tuple[str, str, str, str]] = field(
        default_factory=Counter[tuple[str, str, str, str]]
    )
    odd: list[str] = field(default_factory=list[str])
    missing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, who: str, dialect: str, damage: str, outcome: str) -> None:
        """Count one outcome."""
        self.outcomes[who, dialect, damage, outcome] += 1

    def count(self, who: str, dialect: str, outcome: str, damage: str = "") -> int:
        """Return how often a dialect ended so, with one damage or with any."""
        return sum(
            times
            for (by, of, how, ended), times in self.outcomes.items()
            if (by, of, ended) == (who, dialect, outcome) and damage in ("", how)
        )


def main() -> int:
    """Run, and print the tables; 1 if an outcome was wrong or a reason untrue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, default=_HERE)
    parser.add_argument("--count", type=int, default=2_100, help="edits to take from the history")
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--odd", type=int, default=0, metavar="N", help="show N odd outcomes")
    options = parser.parse_args()
    rng = Random(options.seed)
    edits = [edit for edit in mined(options.repository, options.count, rng) if _is_read(edit)]
    tally = Tally()
    with TemporaryDirectory(prefix="kode-bench-") as folder:
        asyncio.run(_run(edits, rng, Path(folder), tally))
    _print(tally, len(edits))
    for line in tally.odd[: options.odd]:
        print(line, file=sys.stderr)
    ours = [
        key for key in tally.outcomes if key[0] == OURS and key[3] in ("wrong", "untrue", "guessed")
    ]
    return 1 if ours else 0


def _is_read(edit: Edit) -> bool:
    """Return whether the file is shown to a model before and after: it holds no credentials."""
    return not any(find_secret(whole(lines)) for lines in (edit.before, edit.after))


async def _run(edits: list[Edit], rng: Random, folder: Path, tally: Tally) -> None:
    others: dict[str, dict[str, Apply]] = {}
    for dialect in DIALECTS:
        known = appliers(dialect, folder)
        others[dialect] = {name: apply for name, apply in known.items() if apply is not None}
        tally.missing += [(name, dialect) for name in known if name not in others[dialect]]
    for number, edit in enumerate(edits):
        if number % 200 == 0:
            print(f"{number} of {len(edits)}", file=sys.stderr, flush=True)
        desks: dict[str, Desk] = {}
        for dialect in DIALECTS:
            for damage, case in _cases(edit, dialect, number, rng):
                desk = _desk(folder, case, desks)
                await _try(desk, tally, others[dialect], dialect, damage, case)


def _desk(folder: Path, case: Case, desks: dict[str, Desk]) -> Desk:
    """Return a desk with the text that is read; one whose text will not change is used again."""
    text = _text(case, case.read)
    desk = desks.pop(text, None) or Desk(folder, f"src/page{Path(case.edit.path).suffix}", text)
    if case.now == case.read:
        desks[text] = desk
    return desk


def _cases(edit: Edit, dialect: str, number: int, rng: Random) -> Iterator[tuple[str, Case]]:
    """Yield the edit undamaged, and damaged in the two ways whose turn it is."""
    yield "none", undamaged(edit)
    names = [name for name in DAMAGES if name != "none" and applies(dialect, name)]
    for at in (number, number + len(names) // 2):
        name = names[at % len(names)]
        case = DAMAGES[name](undamaged(edit), rng)
        if case is not None:
            yield name, case


async def _try(
    desk: Desk, tally: Tally, others: dict[str, Apply], dialect: str, damage: str, case: Case
) -> None:
    right = meaning(dialect, damage, case)
    refused = ""
    desk.enter()
    try:
        rev = await desk.read() if dialect in ("range", "whole file") else ""
        if case.now != case.read:
            desk.change(_text(case, case.now))
        call = written(dialect, case, desk.path, rev)
        try:
            result = await desk.result(call)
        except Refused as error:
            result, refused = None, str(error)
    finally:
        desk.leave()
    meant = None if right is None else whole(right) if dialect == "write" else _text(case, right)
    outcome = _outcome(meant, result)
    if outcome == "refused" and refused not in _TRUE_REASONS[damage]:
        outcome = "untrue"
    tally.add(OURS, dialect, damage, outcome)
    if outcome not in ("right", "refused"):
        tally.odd.append(_described(dialect, damage, case, call, result, refused))
    for name, apply in others.items():
        theirs = apply(_text(case, case.now), call.patch)
        tally.add(name, dialect, damage, _outcome(meant, theirs))


def _text(case: Case, lines: Lines) -> str:
    text = whole(lines)
    return text.replace("\n", "\r\n") if case.crlf else text


def _outcome(meant: str | None, result: str | None) -> str:
    if meant is None:
        return "refused" if result is None else "guessed"
    if result is None:
        return "needless"
    return "right" if result == meant else "wrong"


def _described(
    dialect: str, damage: str, case: Case, call: Call, result: str | None, refused: str
) -> str:
    head = f"== {dialect}, {damage}: {refused or 'wrong'} ({case.edit.path})"
    body = call.patch or call.arguments
    if result is None:
        return f"{head}\n{body[:1500]}"
    at = max(0, case.edit.first - 2)
    return f"{head}\n{body[:1500]}\n-- became\n" + "\n".join(result.split("\n")[at : at + 20])


def _print(tally: Tally, edits: int) -> None:
    print(f"{edits:,} edits\n")
    print("| damage | " + " | ".join(DIALECTS) + " |")
    print("|---" * (len(DIALECTS) + 1) + "|")
    for damage in DAMAGES:
        print(f"| {damage} | " + " | ".join(_cell(tally, one, damage) for one in DIALECTS) + " |")
    print(
        "\n| applier | dialect | one meaning: right | refused | wrong | none: refused | applied |"
    )
    print("|---|---|---|---|---|---|---|")
    names = dict.fromkeys((key[0], key[1]) for key in sorted(tally.outcomes))
    for who, dialect in sorted(names, key=lambda pair: (pair[1], pair[0] != OURS)):
        print(f"| {who} | {dialect} | {_sums(tally, who, dialect)} |")
    for who, dialect in tally.missing:
        print(f"| {who} | {dialect} | NOT RUN: it is not installed | - | - | - | - |")


def _cell(tally: Tally, dialect: str, damage: str) -> str:
    counts = {ended: tally.count(OURS, dialect, ended, damage) for ended in OUTCOMES}
    return ", ".join(f"{times} {ended}" for ended, times in counts.items() if times) or "-"


def _sums(tally: Tally, who: str, dialect: str) -> str:
    right, needless, wrong, refused, untrue, guessed = (
        tally.count(who, dialect, ended) for ended in OUTCOMES
    )
    share = right / max(1, right + needless + wrong)
    reasons = f" ({untrue} without a true reason)" if untrue else ""
    return f"{right} ({share:.1%}) | {needless} | {wrong} | {refused + untrue}{reasons} | {guessed}"


if __name__ == "__main__":
    sys.exit(main())
