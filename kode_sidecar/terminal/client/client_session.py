"""One session as the client follows it: its fold, and what a screen asks of that."""

from kode_sidecar.terminal.client.fold import Fold, Json

_NEVER_STORED = ("tool.progress", "model.waiting", "changeSet.forming")


class ClientSession(Fold):
    """The fold of a session, in which no event is new twice.

    While the disk cannot be written, events come without a number. They come again with one, in
    order, before anything new: of those only the number is taken, so that no line is shown twice.
    """

    def __init__(self, session_id: str = "", seq: int = 0) -> None:
        super().__init__()
        self.session_id, self.seq = session_id, seq
        self._unsaved: list[Json] = []

    def event(self, event: Json) -> bool:
        """Fold one event; False if it has come before."""
        seq = event.get("seq")
        if seq is None:
            if _is_stored_later(event):
                self._unsaved.append(event)
        elif seq > self.seq and self._came_unsaved(event):
            self.seq = seq
            return False
        return super().event(event)

    def turn_end(self, turn_id: str) -> Json | None:
        """Return the `turn.completed` of the newest turn, if that is the turn and it is over."""
        last = self.last_turn
        return last if last is not None and last["turnId"] == turn_id else None

    def tool_use(self, tool_use_id: str) -> Json:
        """Return the newest call with that id, empty without one: models use ids again."""
        for block in reversed(self.blocks.values()):
            if block["type"] == "tool_use" and block.get("toolUseId") == tool_use_id:
                return block
        return {}

    def hunks_of(self, change_set_id: str, state: str | None = None) -> list[Json]:
        """Return the hunks of a change set file by file, all or those in one state."""
        hunks = [one for one in self.hunks.values() if one["changeSetId"] == change_set_id]
        uris = list(dict.fromkeys(hunk["uri"] for hunk in hunks))
        hunks.sort(key=lambda hunk: uris.index(hunk["uri"]))
        return [hunk for hunk in hunks if state in (None, hunk["state"])]

    def _came_unsaved(self, event: Json) -> bool:
        """Return whether it came without a number; what stands before it is never stored."""
        early, self._unsaved = self._unsaved, []
        for index, one in enumerate(early):
            if _bare(one) == _bare(event):
                self._unsaved = early[index + 1 :]
                return True
        return False


def _is_stored_later(event: Json) -> bool:
    """Return whether an event without a number gets one once the disk can be written again."""
    return event["type"] not in _NEVER_STORED and event.get("state") not in ("running", "within")


def _bare(event: Json) -> Json:
    return {name: value for name, value in event.items() if name not in ("seq", "ts")}
