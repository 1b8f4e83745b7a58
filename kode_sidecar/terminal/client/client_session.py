"""One session as the client follows it: its fold, and queries for a screen."""

from kode_sidecar.terminal.client.fold import Fold, Json

_NEVER_STORED = ("tool.progress", "model.waiting", "changeSet.forming")


class ClientSession(Fold):
    """The fold of a session that reports each event as new only once.

    While the disk cannot be written, events come without a number. Later they come again with one,
    in order, before new events: then only the number is used, so that no line is shown twice.
    """

    def __init__(self, session_id: str = "", seq: int = 0) -> None:
        super().__init__()
        self.session_id, self.seq = session_id, seq
        self._unsaved: list[Json] = []

    def event(self, event: Json) -> bool:
        """Fold one event; return False if it has come before."""
        seq = event.get("seq")
        if seq is None:
            if _is_stored_later(event):
                self._unsaved.append(event)
        elif seq > self.seq and self._came_unsaved(event):
            self.seq = seq
            return False
        return super().event(event)

    def turn_end(self, turn_id: str) -> Json | None:
        """Return the `turn.completed` of this turn, if it is the newest one and has ended."""
        last = self.last_turn
        return last if last is not None and last["turnId"] == turn_id else None

    def tool_use(self, tool_use_id: str) -> Json:
        """Return the newest call with this id, since models reuse ids; empty without one."""
        for block in reversed(self.blocks.values()):
            if block["type"] == "tool_use" and block.get("toolUseId") == tool_use_id:
                return block
        return {}

    def hunks_of(self, change_set_id: str, state: str | None = None) -> list[Json]:
        """Return the hunks of a change set, grouped by file; all, or only those in `state`."""
        hunks = [one for one in self.hunks.values() if one["changeSetId"] == change_set_id]
        uris = list(dict.fromkeys(hunk["uri"] for hunk in hunks))
        hunks.sort(key=lambda hunk: uris.index(hunk["uri"]))
        return [hunk for hunk in hunks if state in (None, hunk["state"])]

    def _came_unsaved(self, event: Json) -> bool:
        """Return whether the event came unnumbered; drop earlier ones, which are never stored."""
        early, self._unsaved = self._unsaved, []
        for index, one in enumerate(early):
            if _bare(one) == _bare(event):
                self._unsaved = early[index + 1 :]
                return True
        return False


def _is_stored_later(event: Json) -> bool:
    """Return whether an unnumbered event gets a number once the disk can be written again."""
    passing = event.get("running") or event.get("state") in ("running", "within")
    return event["type"] not in _NEVER_STORED and not passing


def _bare(event: Json) -> Json:
    return {name: value for name, value in event.items() if name not in ("seq", "ts")}
