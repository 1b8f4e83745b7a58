"""`/undo` and `/redo`: reverts applied change sets by edits, one at a time."""

from dataclasses import dataclass, field

from kode_sidecar.core.text.uris import file_path
from kode_sidecar.terminal.chat.files import ChatFiles
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal


@dataclass
class Undo:
    """Steps back through the change sets of a session, and forward again.

    Both raise RpcError and ConnectionLost.
    """

    client: Client
    files: ChatFiles
    terminal: Terminal
    words: Words
    _taken: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])
    _left: set[str] = field(default_factory=set[str])

    async def undo(self, session: ClientSession, *, skip: bool) -> None:
        """Undo the newest applied change set; `skip` leaves out hunks in conflict."""
        for set_id in reversed(session.change_sets):
            if not _ids(session.hunks_of(set_id, "applied")) <= self._left:
                break
        else:
            self.terminal.line(self.words.nothing_applied)
            return
        result = await self._send(set_id, changeSetId=set_id, skipConflicts=skip)
        conflicts: list[Json] = result["conflicts"]
        self._show(conflicts)
        if result["undone"]:
            self._taken.append((set_id, result["undone"]))
        if conflicts and not skip:
            self.terminal.line(self.words.undo_conflicts.format(count=len(conflicts)), "yellow")
            return
        self._left |= {conflict["hunkId"] for conflict in conflicts}
        self._report(self.words.undone, result["undone"], session.hunks_of(set_id))

    async def redo(self, session: ClientSession) -> None:
        """Restore the change set that was undone last."""
        while self._taken:
            set_id, hunk_ids = self._taken.pop()
            undone = _ids(session.hunks_of(set_id, "undone"))
            if wanted := [hunk_id for hunk_id in hunk_ids if hunk_id in undone]:
                break
        else:
            self.terminal.line(self.words.nothing_undone)
            return
        # If some hunks are applied, naming the change set would undo it instead.
        whole = not session.hunks_of(set_id, "applied")
        scopes = [{"changeSetId": set_id}] if whole else [{"hunkId": h} for h in wanted]
        results = [await self._send(set_id, **scope) for scope in scopes]
        restored = [hunk for result in results for hunk in result["restored"]]
        conflicts = [each for result in results for each in result["conflicts"]]
        self._show(conflicts)
        self._report(self.words.redone, restored, session.hunks_of(set_id))

    def _show(self, conflicts: list[Json]) -> None:
        for conflict in conflicts:
            for line in conflict["diff"].splitlines():
                self.terminal.line(line, "dim")

    def _report(self, sentence: str, hunk_ids: list[str], hunks: list[Json]) -> None:
        files = dict.fromkeys(hunk["path"] for hunk in hunks if hunk["hunkId"] in hunk_ids)
        self.terminal.line(sentence.format(count=len(hunk_ids), files=", ".join(files) or "—"))

    async def _send(self, change_set_id: str, **scope: object) -> Json:
        """Send the undo request with the files open, so that its edits are verified."""
        self.files.refresh()
        now = await self.client.request("kode/changeSet/get", {"changeSetId": change_set_id})
        for file in now["files"]:
            self.files.learn(file)
            if file_path(file["uri"]).is_file():
                self.files.open(file["uri"])
        return await self.client.request("kode/changeSet/undo", scope)


def _ids(hunks: list[Json]) -> set[str]:
    return {hunk["hunkId"] for hunk in hunks}
