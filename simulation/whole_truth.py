"""What was acknowledged to the user of the whole world, and what must be true of it ever after."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.core.domain.agent_event import (
    AskRequested,
    AskResolved,
    ChangeSetUpdated,
    Event,
    Notice,
    TurnStarted,
)
from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.core.protocol.session import SessionAttachResult
from simulation.story import Violation
from tests.support.session_fold import SessionFold, attached


@dataclass
class Ledger:
    """`tried` is what the user said, `kept` what of it was acknowledged; `titles` may be in force,
    the first was acknowledged. `decided` are hunks by what the answer to the decision said.
    """

    tried: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])
    titles: list[str] = field(default_factory=list[str])
    states: dict[str, str] = field(default_factory=dict[str, str])
    set_of: dict[str, str] = field(default_factory=dict[str, str])
    decided: dict[str, str] = field(default_factory=dict[str, str])
    unsaved: bool = False
    asked: Counter[str] = field(default_factory=Counter[str])
    answered: Counter[str] = field(default_factory=Counter[str])

    def receive(self, event: Event) -> None:
        """An event was published."""
        match event:
            case ChangeSetUpdated():
                for file in event.files:
                    for hunk in file.hunks:
                        self.states[hunk.hunk_id] = hunk.state
                        self.set_of[hunk.hunk_id] = event.change_set_id
            case Notice(code="NotSaved"):
                self.unsaved = True  # the journal lacks something until the next turn
            case TurnStarted():
                self.unsaved = False
            case AskRequested() if event.seq:
                self.asked[event.request_id] += 1
            case AskResolved() if event.seq:
                self.answered[event.request_id] += 1
            case _:
                pass

    def hunks(self, known: Iterable[str]) -> Mapping[str, str]:
        """Return the states of these hunks."""
        return {key: self.states.get(key, "proposed") for key in known}

    def check_asked(self) -> None:
        """Each question was asked once and answered once."""
        twice = {**(self.asked - Counter(set(self.asked)))}
        if twice or any(count > 1 for count in self.answered.values()):
            raise Violation("a question is answered twice", f"{self.asked}, {self.answered}")

    def check_kept(self, session: Session, fold: SessionFold) -> None:
        """What was acknowledged is there, once; nothing is there that nobody said."""
        if fold.anomalies:
            raise Violation("the stream breaks its order", str(fold.anomalies))
        said = Counter(
            block.text
            for message in session.conversation.messages
            for block in message.content
            if message.role == "user"
            and isinstance(block, TextBlock)
            and message.meta.get("origin") != "reminder"
        )
        lost = set(self.kept) - set(said)
        if lost and session.active_turn_id is None:
            raise Violation("what was acknowledged is gone", f"{lost} not in {said}")
        if set(said) - set(self.tried) or any(count > 1 for count in said.values()):
            raise Violation("somebody said it twice or never", f"{said}")
        if self.titles and session.meta.title not in self.titles:
            raise Violation("an acknowledged title is gone", f"{session.meta.title}: {self.titles}")
        self._check_decided(session)

    def _check_decided(self, session: Session) -> None:
        """A decision that was answered is known, and neither open again nor turned round."""
        self.states = {}
        for view in session.change_sets.all_views():
            for hunk in (hunk for file in view.files for hunk in file.hunks):
                self.states[hunk.hunk_id] = hunk.state
                self.set_of[hunk.hunk_id] = view.change_set_id
        for key, was in self.decided.items():
            state = self.states.get(key, "proposed")
            if was != "proposed" and (state == "proposed" or was == "rejected" != state):
                raise Violation("a decision is forgotten", f"{was}, now {state}")

    def check_same(
        self, session_id: str, reported: SessionAttachResult, shown: SessionAttachResult
    ) -> None:
        """Who folds all events has what the snapshot says; nothing runs, so nothing asks."""
        if shown.asks or shown.pending:
            raise Violation("a question stays open", f"{shown.asks} {shown.pending}")
        folded = _state(attached(session_id, msgspec.to_builtins(reported)))
        snapshot = _state(attached(session_id, msgspec.to_builtins(shown)))
        for name, value in snapshot.items():
            if folded[name] != value:
                raise Violation("events and snapshot differ", f"{name}: {folded[name]} / {value}")


def _state(fold: SessionFold) -> dict[str, Any]:
    """What two readers of one session must agree on while nothing runs."""
    return {
        "seq": fold.seq,
        "anomalies": fold.anomalies,
        "messages": [
            (view.id, view.role, view.parent_id, [block.block for block in view.blocks])
            for view in fold.messages.values()
        ],
        "hunks": {
            change_set.id: {hunk.id: hunk.state for hunk in change_set.hunks()}
            for change_set in fold.change_sets.values()
        },
    }
