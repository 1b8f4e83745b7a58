"""What the user's client asks of a sidecar in the whole world, and what it notes of the answers."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from kode_sidecar.agent.sessions import SessionAttachments
from kode_sidecar.agent.sessions.session import Session
from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.core.protocol.change_set import DecideParams
from kode_sidecar.core.protocol.session import SessionAttachParams, SessionUpdateParams
from kode_sidecar.core.protocol.turn import TurnStartParams, TurnSteerParams
from kode_sidecar.errors import KodeError
from simulation.sidecar import Sidecar
from simulation.story import Violation
from simulation.whole_truth import Ledger
from tests.support.session_fold import attached


@dataclass
class Requests:
    """`hears`: whether an answer reaches the user now; `starting` counts prompts on their way."""

    ledger: Ledger
    numbers: Iterator[int]
    hears: Callable[[], bool]
    starting: int = 0

    async def prompt(self, session: Session, *, again: bool) -> None:
        """`again`: sent twice with one key, as a client does that heard no answer."""
        text = f"prompt {next(self.numbers)}"
        self.ledger.tried.append(text)
        self.starting += 1
        key = f"key of {text}" if again else None
        params = TurnStartParams(
            session_id=session.id, input=(TextBlock(text=text),), client_turn_key=key
        )
        try:
            for _ in range(1 + again):
                _, release = await session.start_turn(params)
                if self.hears():
                    self.ledger.kept.append(text)
                release()
        finally:
            self.starting -= 1

    async def steer(self, session: Session, turn_id: str) -> None:
        """A word to the running turn."""
        text = f"steer {next(self.numbers)}"
        self.ledger.tried.append(text)
        block = (TextBlock(text=text),)
        release = await session.steer(
            TurnSteerParams(session_id=session.id, turn_id=turn_id, input=block)
        )
        if self.hears():
            self.ledger.kept.append(text)
        release()

    async def rename(self, session: Session, title: str) -> None:
        """Once it is answered, no older title may come back."""
        self.ledger.titles.append(title)
        params = SessionUpdateParams(session_id=session.id, title=title)
        release = await session.update(params)
        if self.hears():
            self.ledger.titles = self.ledger.titles[self.ledger.titles.index(title) :]
        release()

    async def decide(self, session: Session, params: DecideParams, key: str) -> None:
        """What the answer said of the hunk is a promise."""
        await session.change_sets.decide(params)
        if self.hears():
            self.ledger.decided[key] = self.ledger.states[key]

    async def compare(self, session: Session, attachments: SessionAttachments) -> None:
        """All events folded, a snapshot, and what the client has seen: one and the same."""
        replay = SessionAttachParams(session_id=session.id, after_seq=0)
        reported, release = await attachments.attach(replay)
        release()
        shown, release = await attachments.attach(SessionAttachParams(session_id=session.id))
        release()
        quiet = session.active_turn_id is None and not self.ledger.unsaved
        if quiet and reported.seq == shown.seq and self.hears():
            self.ledger.check_same(session.id, reported, shown)

    async def open_twice(self, session_id: str, other: Sidecar) -> None:
        """Another process may read the session, and must not write to it."""
        with suppress(KodeError):
            params = SessionAttachParams(session_id=session_id, access="read")
            result, _ = await other.attachments.attach(params)
            attached(session_id, msgspec.to_builtins(result))
        try:
            await other.sessions.open(session_id)
        except KodeError:
            return
        if self.hears():
            raise Violation("two write to one session", session_id)
