"""What applied edits have newly broken, by the editor's language servers (F6)."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from kode_sidecar.agent.tools.editor_lookup import diagnostic_text
from kode_sidecar.core.protocol.language import EditorDiagnostic
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.language_servers import LanguageServers

MAX_SHOWN = 20
SETTLE_SECONDS = 8.0
"""How long a call whose edits were applied waits for what they broke."""

_WARNING = 2
_HEAD = (
    "Since your edits were applied the editor's language servers report new problems in those "
    "files. Mend what you caused:\n"
)
_Kind = tuple[int, str, str, str]


class DiagnosticNews:
    """The news of one session. `place(uri, line)` names a place, from line 0 of the editor's text.

    What was there before a proposal is no news; what is new is reported once. Nothing is asked of
    an editor that does not serve diagnostics, and a failing one says nothing.
    """

    def __init__(self, servers: LanguageServers, place: Callable[[str, int], str]) -> None:
        self._servers = servers
        self._place = place
        self._known: dict[str, Counter[_Kind]] = {}
        self._news: dict[str, list[EditorDiagnostic]] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._reported: dict[str, list[EditorDiagnostic]] = {}

    def expect(self, uri: str) -> None:
        """An edit of a file is proposed: what is wrong there now is known."""
        key = canonical_key(uri)
        if self._servers.serves("diagnostics") and key not in self._looks:
            self._looks[key] = asyncio.create_task(self._look(uri, key, after_edit=False))

    def edited(self, uri: str) -> None:
        """An edit of a file was applied."""
        key = canonical_key(uri)
        if not self._servers.serves("diagnostics"):
            return
        before = self._looks.get(key)
        self._looks[key] = asyncio.create_task(self._look(uri, key, after_edit=True, first=before))

    async def settled(self) -> None:
        """Wait until the servers have looked at what was applied, but not for long."""
        if self._looks:
            await asyncio.wait(self._looks.values(), timeout=SETTLE_SECONDS)

    def unreported(self) -> str | None:
        """The reminder; it stays unreported until `reported`."""
        self._reported = {uri: list(found) for uri, found in self._news.items() if found}
        if not self._reported:
            return None
        lines = [
            f"- {self._place(uri, one.range.start.line)}: {diagnostic_text(one)}"
            for uri, found in self._reported.items()
            for one in found
        ]
        if len(lines) > MAX_SHOWN:
            lines[MAX_SHOWN:] = [f"- and {len(lines) - MAX_SHOWN} more; ask `diagnostics`."]
        return _HEAD + "\n".join(lines)

    def reported(self) -> None:
        """Note that the model got what `unreported` said last."""
        for uri, found in self._reported.items():
            self._news[uri] = [one for one in self._news.get(uri, ()) if one not in found]
        self._reported = {}

    def close(self) -> None:
        """Ask nothing more."""
        for look in self._looks.values():
            look.cancel()

    async def _look(
        self, uri: str, key: str, *, after_edit: bool, first: asyncio.Task[None] | None = None
    ) -> None:
        if first is not None:
            await asyncio.wait((first,))
        try:
            with suppress(KodeError):
                answer = await self._servers.diagnostics(uri, after_edit=after_edit)
                found = [
                    one
                    for file in answer.files
                    if canonical_key(file.uri) == key
                    for one in file.diagnostics
                    if one.severity <= _WARNING
                ]
                self._compare(uri, key, found, after_edit=after_edit)
        finally:
            if self._looks.get(key) is asyncio.current_task():
                del self._looks[key]

    def _compare(
        self, uri: str, key: str, found: list[EditorDiagnostic], *, after_edit: bool
    ) -> None:
        """What is gone meanwhile is no news any more; without a look before, nothing is new."""
        known = self._known.get(key)
        self._known[key] = Counter(map(_kind, found))
        if not after_edit or known is None:
            return
        waiting = Counter(map(_kind, self._news.get(uri, ())))
        left = known - waiting
        fresh: list[EditorDiagnostic] = []
        for one in found:
            if left[_kind(one)] > 0:
                left[_kind(one)] -= 1
            else:
                fresh.append(one)
        self._news[uri] = fresh


def _kind(found: EditorDiagnostic) -> _Kind:
    """What makes two diagnostics the same, wherever the lines have gone."""
    return found.severity, found.source, found.code, found.message
