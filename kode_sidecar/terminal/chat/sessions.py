"""Chooses the session of the chat: `/session` and `/fork`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import dropwhile, islice
from pathlib import Path

from kode_sidecar.core.text.shown_text import clipped, one_line
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.terminal import Terminal
from kode_sidecar.terminal.client.watch import Watch

_LISTED = 20
_PROMPT_COLUMNS = 72
_SHOWN_TURNS = 3


@dataclass
class Sessions:
    """`now` is the session of the next turn. `records` is the folder of all sessions.

    Methods that ask the sidecar raise RpcError and ConnectionLost.
    """

    client: Client
    watch: Watch[ClientSession]
    terminal: Terminal
    words: Words
    now: ClientSession = field(default_factory=ClientSession)
    records: Path = field(default_factory=Path)

    async def begin(self) -> None:
        """Begin a new session."""
        new = await self.client.request("kode/session/new", {})
        self.now = self.watch.session(new["sessionId"], new["seq"])

    async def obey(self, argument: str) -> None:
        """Show this session, list those of the folder, begin one or continue an earlier one."""
        match argument:
            case "":
                await self._show()
            case "list":
                for session in await self._kept(_LISTED):
                    self._line(session)
            case "new":
                await self.begin()
                text = self.words.session_new.format(id=self.now.session_id)
                self.terminal.line(text)
            case beginning:
                await self.resume(beginning)

    async def fork(self, number: str) -> None:
        """Continue in a copy of this session, whole or up to before one of its prompts."""
        params: Json = {"sessionId": self.now.session_id}
        if number:
            prompts = dict(enumerate(await self._prompts(), 1))
            prompt = prompts.get(int(number)) if number.isdecimal() else None
            if prompt is None:
                text = self.words.fork_wrong.format(number=number)
                self.terminal.line(text, "yellow")
                return
            params["messageId"] = prompt.get("parentId")
            if params["messageId"] is None:  # nothing is before it
                await self.obey("new")
                return
        forked = await self.client.request("kode/session/fork", params)
        self.now = await self.watch.attach(forked["sessionId"])
        self.terminal.line(self.words.forked.format(id=self.now.session_id))

    async def resume(self, beginning: str) -> bool:
        """Continue the session whose id begins so, the latest one for ""; False if none does."""
        found = [s for s in await self._kept(500) if s["sessionId"].startswith(beginning)]
        if not beginning:  # a job's session cannot be continued
            found = [s for s in found if "kind" not in s][:1]
        if len(found) != 1:
            words = self.words
            unknown = words.session_unknown if beginning else words.session_none
            wrong = words.session_many if found else unknown
            self.terminal.line(wrong.format(id=beginning), "yellow")
            return False
        session_id = found[0]["sessionId"]
        known = self.watch.sessions.get(session_id)  # it has streamed since the user left it
        self.now = known or await self.watch.attach(session_id)
        await self._show(answers=True)
        return True

    async def _kept(self, limit: int) -> list[Json]:
        """Return the sessions of the open folder, the most recently written first."""
        return (await self.client.request("kode/session/list", {"limit": limit}))["sessions"]

    async def _show(self, *, answers: bool = False) -> None:
        """List the prompts, the last ones with their `answers`."""
        text = self.words.session.format(
            id=self.now.session_id,
            title=self.now.title or "—",
            folder=self.records / self.now.session_id,
        )
        self.terminal.line(text)
        prompts = await self._prompts()
        for number, prompt in enumerate(prompts, 1):
            shown = clipped(one_line(prompt.get("text", "")), _PROMPT_COLUMNS)
            recent = answers and number > len(prompts) - _SHOWN_TURNS
            self.terminal.line(f"{number:3}  {shown}", "bold" if recent else "dim")
            for text in self._answers(prompt["messageId"]) if recent else ():
                self.terminal.markdown(text)

    def _answers(self, prompt_id: str) -> Iterator[str]:
        """Yield the texts of the answers to a prompt."""
        messages = dropwhile(lambda one: one["id"] != prompt_id, self.now.messages.values())
        for message in islice(messages, 1, None):
            if message["role"] == "user" and not message.get("meta", {}).get("origin"):
                return
            blocks = [self.now.blocks[block_id] for block_id in message["blocks"]]
            if message["role"] == "assistant":
                yield from (block["text"] for block in blocks if block["type"] == "text")

    def _line(self, session: Json) -> None:
        mark = "›" if session["sessionId"] == self.now.session_id else " "
        kind = f"[{session['kind']}] " if "kind" in session else ""
        title = clipped(one_line(f"{kind}{session['title']}"), _PROMPT_COLUMNS)
        self.terminal.line(f"{mark} {session['sessionId']}  {session['updatedAt'][:16]}  {title}")

    async def _prompts(self) -> list[Json]:
        """Return the user's prompts on the path to the head, oldest first."""
        nodes: dict[str, Json] = {}
        params: Json = {"sessionId": self.now.session_id}
        while True:
            page = await self.client.request("kode/tree/get", params)
            nodes |= {node["messageId"]: node for node in page["nodes"]}
            if "nextCursor" not in page:
                break
            params["cursor"] = page["nextCursor"]
        path: list[Json] = []
        at = page.get("headId")
        while at is not None:
            path.append(nodes[at])
            at = nodes[at].get("parentId")
        return [n for n in reversed(path) if n["role"] == "user" and not n.get("origin")]
