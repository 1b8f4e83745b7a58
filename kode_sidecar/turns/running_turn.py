"""The turn that occupies a session, and the keys under which clients started turns."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import CutOff
from kode_sidecar.protocol.session import Mode
from kode_sidecar.protocol.turn import TurnStartResult
from kode_sidecar.turns.context import TurnContext

REMEMBERED_TURN_KEYS = 1_000

_TURN_KEY = "clientTurnKey"


@dataclass
class RunningTurn:
    """The turn that occupies the session until its last event is out."""

    id: str
    context: TurnContext
    mode: Mode
    key: str | None
    saved: asyncio.Event
    started: float
    cut_off: CutOff
    running: bool = False
    ending: bool = False

    def name(self) -> dict[str, object] | None:
        """Its id for an error's details, once the client has got it (O1)."""
        return {"turnId": self.id} if self.saved.is_set() else None


def turn_active(turn: RunningTurn) -> KodeError:
    """Why nothing else can be done in the session now."""
    text = (
        "A turn is running in this session; wait for turn.completed or cancel it with "
        "kode/turn/cancel."
    )
    return KodeError("TurnActive", text, details=turn.name())


def turn_to_steer(turn: RunningTurn | None, turn_id: str) -> RunningTurn:
    """The turn that was meant. Raises KodeError `NoActiveTurn`, `TurnMismatch`."""
    if turn is None or turn.ending:
        text = "No turn is running in this session; start one with kode/turn/start."
        raise KodeError("NoActiveTurn", text)
    if turn.id != turn_id:
        text = "Another turn is running; steer that one or cancel it with kode/turn/cancel."
        raise KodeError("TurnMismatch", text, details=turn.name())
    return turn


class TurnKeys:
    """What became of the newest turns that were started with a key of the client's own.

    A key is kept with its prompt: whoever sends a prompt again after a crash gets the same turn.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._results: dict[str, TurnStartResult] = {}
        for message in messages:
            key, turn_id = message.meta.get(_TURN_KEY), str(message.meta.get("turnId", ""))
            if isinstance(key, str):
                self.remember(key, TurnStartResult(turn_id=turn_id, message_id=message.id))

    def get(self, key: str) -> TurnStartResult | None:
        """The turn that was started with this key."""
        return self._results.get(key)

    def remember(self, key: str | None, result: TurnStartResult) -> None:
        """A turn was started."""
        if key is None:
            return
        self._results[key] = result
        if len(self._results) > REMEMBERED_TURN_KEYS:
            del self._results[next(iter(self._results))]

    def forget(self, key: str | None) -> None:
        """It did not start after all."""
        self._results.pop(key or "", None)


def with_turn_key(meta: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """A prompt's meta that says with which key it was sent."""
    return {**meta} if key is None else {**meta, _TURN_KEY: key}
