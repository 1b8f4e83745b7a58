"""What really happened to the user's text, told by characters that occur once.

Every key of the user, most lines of the file and every line of the model have a mark: a character
of its own. So whether a hunk stands in the text, and whether something of the user's is gone, is
seen without knowing how the room under test works.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kode_sidecar.core.domain.change_set import FileView
from kode_sidecar.core.domain.hunk_state import UNSETTLED
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.infrastructure.workspace.document import text_rev
from simulation.edit_desk import Done
from simulation.story import Violation

FIRST_KEY = 0x4E00  # what the user types: Chinese
FIRST_LINE = 0x0410  # lines that are there at the beginning: Cyrillic
LAST_LINE = 0x04FF
FIRST_MARK = 0xAC00  # what the model writes: Korean
FIRST_OWN = 0x3041  # what the user puts in a hunk's place: Hiragana
LAST_OWN = 0x3096

_MARKS = re.compile("[\u0410-\u04ff\u3041-\u3096\u4e00-\u9fff\uac00-\ud7a3]")
_VERDICTS = {
    "accepted and applied": "applied",
    "accepted and sent": "applied",
    "put back by": "applied",
    "the user replaced": "replaced",
    "rejected by": "rejected",
    "undone by": "undone",
    "not applied": "failed",
    "not done": "failed",
    "sent, but": "failed",
    "replaced by": "superseded",
}


@lru_cache(4_096)
def marks(text: str) -> Counter[str]:
    """Return the marks in a text, each as often as it is there. To be read only."""
    return Counter(_MARKS.findall(text))


def is_of_a_line(mark: str) -> bool:
    """Return whether a mark is one of a line that was there at the beginning."""
    return FIRST_LINE <= ord(mark) <= LAST_LINE


def letters(text: str) -> Counter[str]:
    """Return all characters of a text but its line ends."""
    return Counter(text.replace("\r", "").replace("\n", ""))


@dataclass
class Fate:
    """A hunk as it was announced, and what the user wants of it.

    `keys` is how often the user had changed the text that it was made of, undos too, None where
    they had changed it again by then; `sent` are the texts that may be on their way to its place,
    `recorded` the user's own that an event told.
    """

    id: str
    old: str
    new: str
    merge_of: str | None
    given: bool = False
    taken_back: bool = False
    put: str | None = None
    keys: int | None = None
    sent: list[str] = field(default_factory=list[str])
    recorded: list[str | None] = field(default_factory=list[str | None])

    @property
    def wanted(self) -> str:
        """What shall stand there."""
        return self.new if self.put is None else self.put

    @property
    def adds(self) -> Counter[str]:
        """The marks that are in the text only once it is applied, with any text that was sent."""
        found = Counter[str]()
        for text in (self.new, self.wanted, *self.sent):
            found |= marks(text)
        return found - marks(self.old)

    @property
    def told_adds(self) -> Counter[str]:
        """Those of the text that was told last: the user's own for it, or its new one."""
        put = self.recorded[-1] if self.recorded else None
        return marks(self.new if put is None else put) - marks(self.old)

    def give(self, put: str | None) -> None:
        """The user agrees to the hunk, or to a text of their own in its place."""
        self.given, self.put = True, put
        if self.wanted not in self.sent:
            self.sent.append(self.wanted)

    def changes(self) -> list[Counter[str]]:
        """Return what a text gains or loses, letter by letter, when this is done or taken back.

        What is taken back may be its new text that stood there anyway, before an own one was sent.
        """
        sent = self.sent or [self.wanted]
        pairs = [(self.old, text) for text in sent if self.given]
        for text in (*sent, self.new) if self.taken_back else ():
            pairs += [(text, self.old), (self.old, text)]
        found = [_change(old, new) for old, new in dict.fromkeys(pairs)]
        return [change for change in found if change]


@dataclass
class Truth:
    """`reworked` are marks that the user's own doing took or brought back, or that nobody can
    know of: no hunk is judged by those.

    `uncertain` are those of hunks that may stand in the text of a process that was killed: they
    are found as long as the user changes nothing else.
    """

    fates: dict[str, Fate] = field(default_factory=dict[str, Fate])
    reworked: set[str] = field(default_factory=set[str])
    reported: dict[str, str] = field(default_factory=dict[str, str])
    uncertain: set[str] = field(default_factory=set[str])
    keys: int = 0

    def announced(self, file: FileView, text: str, *, given: bool) -> None:
        """Hunks were told whole; `given`: they are agreed to as they come. `text` is the user's."""
        for view in file.hunks:
            if view.kind == "modify" and view.hunk_id not in self.fates:
                old, new = view.old_text or "", view.new_text or ""
                fate = Fate(view.hunk_id, old, new, view.merge_of)
                if file.base is not None and file.base.sha256 == text_rev(to_lf(text)):
                    fate.keys = self.keys
                if given and view.merge_of is None:  # what is left of a conflict always waits
                    fate.give(None)
                self.fates[view.hunk_id] = fate
            elif view.hunk_id in self.fates:
                self.fates[view.hunk_id].recorded.append(view.replacement)

    def user_changed(self, before: str, after: str) -> None:
        """The user did something to the text."""
        if before == after:
            return
        self.keys += 1
        self._rework(before, after)
        self.reworked |= self.uncertain

    def _rework(self, before: str, after: str) -> None:
        """No hunk is judged by the marks of lines that changed."""
        old, new = Counter(split_lines(before)), Counter(split_lines(after))
        for line in {**(old - new), **(new - old)}:
            self.reworked.update(marks(line))

    def discarded(self, reported: str, text: str) -> None:
        """The user threw away a text of which the sidecar was told another one last."""
        old, new = marks(reported), marks(text)
        self.reworked |= set(old - new) | set(new - old)

    def killed(self, states: Mapping[str, str]) -> None:
        """The process is gone: what was not done by then is agreed to no more."""
        self.unrecorded(key for key in self.fates if states[key] in ("proposed", *UNSETTLED))
        # An undo may have landed that nobody recorded. Or it was recorded and not saved: the file,
        # which is all that the next process may see, has the hunk, and the buffer does not.
        self.lose_undos()

    def lose_undos(self) -> None:
        """Nobody can know which of the undos under way have landed."""
        self.reworked.update(*(fate.adds for fate in self.fates.values() if fate.taken_back))

    def unrecorded(self, hunk_ids: Iterable[str]) -> None:
        """The next process cannot know that these were agreed to."""
        given = [self.fates[key] for key in hunk_ids if self.fates[key].given]
        # Hunks of several texts, sent together, prove nothing of one another.
        is_one_text = len({fate.keys for fate in given}) == 1
        for fate in given:
            certain = is_one_text and fate.keys == self.keys
            (self.uncertain if certain else self.reworked).update(fate.adds)
            unknown = {*fate.sent} - {fate.new, *fate.recorded}
            self.reworked.update(*map(marks, unknown))
            # What it was to take away may be gone as well.
            self.reworked.update(marks(fate.old))
            fate.given, fate.put = False, None

    def forget(self, hunk_id: str) -> None:
        """The sidecar does not know the hunk any more; what of it may stand there is no news."""
        self.reworked |= set(self.fates.pop(hunk_id).adds)

    # ---- the moment an edit is done ------------------------------------------------------------

    def edited(self, done: Done) -> None:
        """The editor did an edit of the sidecar's; judge it at once."""
        self.keys += done.undo
        before, after = marks(done.before), marks(done.after)
        if done.blind:
            self._rework(done.before, done.after)
            return
        allowed: set[str] = set()
        for fate in self.fates.values():
            allowed |= set(fate.old) if fate.given or fate.taken_back else set()
            allowed |= set("".join((*fate.sent, fate.new))) if fate.taken_back else set()
        lost = set(before - after) - allowed
        if lost:
            raise Violation(
                "the user's text is lost", f"{lost} in {done.before!r} → {done.after!r}"
            )
        doubled = {mark for mark in after - before if before[mark] and is_of_a_line(mark)}
        if doubled - self.reworked:
            raise Violation(
                "the user's text is doubled", f"{doubled} in {done.before!r} → {done.after!r}"
            )
        self._explain(done)

    def _explain(self, done: Done) -> None:
        """An edit does just what some of the agreed hunks say, each once."""
        change = letters(done.after)
        change.subtract(letters(done.before))
        steps = [step for fate in self.fates.values() for step in fate.changes()]
        if not _adds_up(change, steps):
            text = f"{done.before!r} → {done.after!r} is not what was agreed to"
            raise Violation("an edit does something else", text)

    # ---- states --------------------------------------------------------------------------------

    def check_states(self, states: Mapping[str, str], text: str, unseen: Iterable[str]) -> None:
        """Each hunk's state is true of the text. `unseen`: nobody can know of these."""
        there, skip = marks(text), set(unseen)
        for fate in self._judged():
            if fate.id in skip:
                continue
            state = states.get(fate.id, "proposed")
            adds = fate.told_adds
            stands = all(there[mark] == count for mark, count in adds.items())
            absent = not any(there[mark] for mark in fate.adds)
            if state in ("applied", "replaced") and not stands:
                raise Violation("a state is untrue", f"{state}: {fate} in {text!r}")
            if state not in ("applied", "replaced", "diverged") and not absent:
                if state in ("stale", "conflict") and self._shares_a_line(fate, text):
                    continue
                raise Violation("a state is untrue", f"{state}: {fate} in {text!r}")

    def _shares_a_line(self, fate: Fate, text: str) -> bool:
        """Return whether an editor put it into a line of another's: two edits of one version."""
        others = set[str]().union(*(one.adds for one in self.fates.values() if one is not fate))
        lines = (marks(line).keys() for line in text.splitlines())
        return any(line & fate.adds.keys() and line & others for line in lines)

    def _judged(self) -> list[Fate]:
        """The hunks whose marks are theirs alone, and that the user left as they were."""
        owners = Counter(
            mark for fate in self.fates.values() for mark in {*fate.adds, *marks(fate.new)}
        )
        merged = {fate.merge_of for fate in self.fates.values()}
        taken = set[str]().union(
            *(marks(one.old) for one in self.fates.values() if one.given or one.taken_back)
        )
        return [
            fate
            for fate in self.fates.values()
            if fate.adds
            and fate.id not in merged
            and not set(fate.adds) & (self.reworked | taken)
            and all(owners[mark] == 1 for mark in fate.adds)
        ]

    # ---- what the model is told ----------------------------------------------------------------

    def receive(self, text: str) -> None:
        """The model was told something about its edits."""
        lines = [line for line in text.split("\n") if line.startswith("- ") and ": " in line]
        for fate in self._named() if lines else ():
            name = name_of(fate)
            for line in lines:
                what, _, verdict = line.partition(": ")
                if what.endswith(f", {name}"):
                    known = (word for start, word in _VERDICTS.items() if verdict.startswith(start))
                    self.reported[fate.id] = next(known, verdict)

    def check_told(self, states: Mapping[str, str]) -> None:
        """What the model was told last of each hunk is how it stands."""
        for fate in self._named():
            state = states.get(fate.id, "proposed")
            if state in ("proposed", "superseded"):
                continue
            state = "failed" if state in ("stale", "conflict", "diverged") else state
            reported = self.reported.get(fate.id)
            if reported != state:
                raise Violation("the model believes an untruth", f"{reported}, not {state}: {fate}")

    def _named(self) -> list[Fate]:
        """The hunks whose name for the model is theirs alone."""
        names = Counter(map(name_of, self.fates.values()))
        return [fate for fate in self.fates.values() if names[name_of(fate)] == 1]


def _change(old: str, new: str) -> Counter[str]:
    change = letters(new)
    change.subtract(letters(old))
    return Counter({letter: count for letter, count in change.items() if count})


def name_of(fate: Fate) -> str:
    """Return a hunk by its first line, as the model is told of it."""
    old, new = _first_line(fate.old), _first_line(fate.new)
    if not fate.old:
        return f"the added lines from `{new}`"
    return f"the change at `{old}`" if fate.new else f"the deletion of `{old}`"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _adds_up(change: Counter[str], steps: Sequence[Counter[str]]) -> bool:
    """Return whether some of the steps, each once, make the change.

    It begins with the rarest letter, which mostly only one step can explain.
    """
    left = [letter for letter, count in change.items() if count]
    if not left:
        return True
    rarest = min(left, key=lambda letter: sum(letter in step for step in steps))
    tried: list[Counter[str]] = []
    for at, step in enumerate(steps):
        if step[rarest] and step not in tried:
            tried.append(step)
            rest = Counter(change)
            rest.subtract(step)
            if _adds_up(rest, [*steps[:at], *steps[at + 1 :]]):
                return True
    return False
