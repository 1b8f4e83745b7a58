"""Findings of code reviews in the chat: a list by file; `f 3` fixes, explains or decides one."""

from collections.abc import Mapping
from dataclasses import dataclass

from kode_sidecar.core.text.shown_text import one_line, visible
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal

_STYLES: Mapping[str, str] = {"error": "red", "warning": "yellow"}
_STATES: Mapping[str, str] = {"dismiss": "dismissed", "done": "resolved", "open": "open"}


@dataclass
class ChatFindings:
    """Shows the findings of a session, and carries out `f`."""

    client: Client
    terminal: Terminal
    words: Words

    def show(self, event: Json) -> None:
        """List what an event or an answer says is open, the files in their order."""
        shown = [one for one in event["findings"] if one["state"] == "open" and "range" in one]
        self.terminal.line()
        for path in dict.fromkeys(one["path"] for one in shown):
            self.terminal.line(one_line(path), "bold")
            for one in (one for one in shown if one["path"] == path):
                place = f"{one['range']['start']['line'] + 1}: {one['severity']}"
                line = one_line(f"{one['findingId']} · {place} · {one['title']}")
                self.terminal.line(f"  {line}", _STYLES.get(one["severity"], ""))
                for part in one["explanation"].splitlines():
                    self.terminal.line(f"      {visible(part)}", "dim")
        if event.get("toolUseId"):  # a decision leaves the words of the review as they were
            self.terminal.line(one_line(event["summary"]))
        if not shown:
            self.terminal.line(self.words.no_findings)
        else:
            self.terminal.line(self.words.findings_how, "dim")

    async def list(self, session: ClientSession) -> None:
        """List the findings where they are now. Raises RpcError."""
        named = {"sessionId": session.session_id}
        self.show(await self.client.request("kode/review/list", named))

    def question(self, argument: str) -> Json | None:
        """Return what `kode/review/ask` is asked by `f 3` or `f 3 explain`; None for the others."""
        name, _, word = argument.partition(" ")
        if not name or word not in ("", "fix", "explain"):
            return None
        prompt = self.words.explain_finding if word == "explain" else self.words.fix_finding
        return {"findingIds": [_id(name)], "prompt": prompt}

    async def obey(self, session: ClientSession, argument: str) -> None:
        """Carry out `f`, `f 3 dismiss REASON`, `f 3 done` or `f 3 open`. Raises RpcError."""
        if not argument:
            await self.list(session)
            return
        name, _, rest = argument.partition(" ")
        word, _, reason = rest.strip().partition(" ")
        if word not in _STATES:
            self.terminal.line(self.words.findings_how, "yellow")
            return
        decision = {"findingId": _id(name), "state": _STATES[word], "reason": reason.strip()}
        params = {"sessionId": session.session_id, **decision}
        await self.client.request("kode/review/decide", params)
        await self.list(session)


def _id(name: str) -> str:
    return f"f{name}" if name.isdecimal() else name
