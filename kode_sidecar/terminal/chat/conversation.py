"""Runs the conversation on a terminal: prompts, turns, commands, until the user leaves."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.terminal.chat.commands import MODES, ChatCommands
from kode_sidecar.terminal.chat.files import ChatFiles
from kode_sidecar.terminal.chat.findings import ChatFindings
from kode_sidecar.terminal.chat.keyboard import Asks, Interrupted, Interrupts
from kode_sidecar.terminal.chat.own_commands import OwnCommands, own_command
from kode_sidecar.terminal.chat.pastes import prompt_blocks
from kode_sidecar.terminal.chat.review import Review, is_to_keep, waiting_hunks, waiting_uris
from kode_sidecar.terminal.chat.saved_modes import SavedModes
from kode_sidecar.terminal.chat.servers import ChatServers
from kode_sidecar.terminal.chat.sessions import Sessions
from kode_sidecar.terminal.chat.undo import Undo
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client, ConnectionLost, RpcError
from kode_sidecar.terminal.client.editor import ClientEditor
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.terminal import Terminal
from kode_sidecar.terminal.client.watch import Watch


def _nothing(*_: object) -> None:
    """Do nothing."""


@dataclass
class Face:
    """What the user sees and types into.

    `opened` is called once the session exists, with the state folder; `measured` with the size of
    the next request.
    """

    keyboard: Asks
    terminal: Terminal
    words: Words
    interrupts: Interrupts
    opened: Callable[[ChatCommands, ChatServers, Path], None] = _nothing
    measured: Callable[[ClientSession, Json], None] = _nothing


class ChatConversation:
    """One connection and its current session."""

    def __init__(
        self, client: Client, face: Face, chosen: Mapping[str, str | None], *, accept: bool
    ) -> None:
        self._client = client
        self._face = face
        self._interrupts = face.interrupts
        self._keyboard, terminal = face.keyboard, face.terminal
        self._terminal, words = terminal, face.words
        self._words = words
        self._watch = Watch(client, ClientSession, self)
        self._editor = ClientEditor(client)
        self._files = ChatFiles(self._editor, terminal, words)
        self._review = Review(client, self._files, face.keyboard, terminal, words, accept)
        self._editor.answer_permission = self._review.permit
        self._editor.answer_choice = self._review.choose
        given = {name: value for name, value in chosen.items() if value}
        self._commands = ChatCommands(client, terminal, words, given)
        self._sessions = Sessions(client, self._watch, terminal, words)
        self._undo = Undo(client, self._files, terminal, words)
        self._servers = ChatServers(client, terminal, words)
        self._own = OwnCommands(terminal, words)
        self._findings = ChatFindings(client, terminal, words)
        self._root = Path()
        self._steering: set[asyncio.Task[None]] = set()

    @property
    def _session(self) -> ClientSession:
        return self._sessions.now

    def event(self, session: ClientSession, event: Json) -> None:
        """Show an event of `Watch`; learn a file's encoding, which comes with its first hunks."""
        if event["type"] == "message.added" and event.get("meta", {}).get("origin") == "steer":
            del self._keyboard.reported[:1]
        if event["type"] == "changeSet.updated":
            for file in event.get("files", ()):
                self._files.learn(file)
        if session is self._session or event["type"] == "changeSet.updated":
            self._terminal.event(session, event)
        is_review = event["type"] == "review.updated" and session is self._session
        if is_review and event.get("toolUseId") and not event.get("running"):
            self._findings.show(event)
        if event["type"] == "changeSet.updated":
            self._show_applied(session, event, self._commands.now("mode"))

    def _show_applied(self, session: ClientSession, event: Json, mode: str) -> None:
        """Show hunks that were applied without asking."""
        for file in event.get("files", ()):
            for hunk in file["hunks"]:
                if hunk["state"] == "applied" and (mode == "auto" or hunk.get("kept") is False):
                    self._terminal.hunk(file["path"], session.hunks[hunk["hunkId"]], None)

    def growth(self, session: ClientSession, block_id: str, added: str) -> None:
        """Show new text of an open block."""
        self._terminal.growth(session, block_id, added)

    async def run(self, first: str = "") -> int:
        """Run until the user leaves; return the exit code. `first` is a prompt to begin with.

        Raises Leaving, ConnectionLost, RpcError.
        """
        ok = True
        while True:
            try:
                prompt, first = first or await self._keyboard.prompt(), ""
                if prompt is None or prompt.strip() == "/quit":
                    break
                if prompt.strip():
                    ok = await self._obey(prompt) and ok
            except Interrupted:
                self._terminal.line()
                self._terminal.line(self._words.leave, "dim")
        if self._keyboard.interactive:
            self._terminal.line()
            return 0
        return 0 if ok else 1

    def show_way_back(self) -> None:
        """Show which command continues the session that the user leaves, if there is one."""
        if self._keyboard.interactive and self._session.messages:
            command = f"kode-sidecar chat --session {self._session.session_id}"
            if self._root != Path.cwd():
                command += f" --root {shlex.quote(str(self._root))}"
            self._terminal.line(self._words.way_back.format(command=command), "dim")

    async def begin(self, handshake: Handshake, resumed: str | None) -> bool:
        """Initialize, check that turns are possible at all, begin or resume the session.

        False if that cannot be done.
        """
        await self._editor.client.initialize(handshake)
        doctor = await self._client.request("kode/doctor", {})
        wrong = [check for check in doctor["checks"] if not check["ok"]]
        said = [check for check in doctor["checks"] if check["name"] == "plain_http"]
        for check in (*wrong, *said):
            text = one_line(f"{check['message']} {check.get('hint', '')}")
            self._terminal.line(f"⚠ {text}", "red")
        unusable = {"settings"} if "model" in self._commands.chosen else {"key", "settings"}
        if any(check["name"] in unusable for check in wrong):
            return False
        settings = {each["name"]: each["value"] for each in doctor["settings"]}
        self._commands.settings = settings
        self._sessions.records = Path(str(settings["storage_root"])) / "conversations"
        self._root = self._own.root = Path(handshake.roots[0])
        await self._servers.begin(doctor)
        if self._keyboard.interactive:
            await self._commands.list_verbs()
            self._remember_mode(doctor, Path(str(settings["storage_root"])))
        text = self._words.welcome.format(
            version=doctor["version"],
            model=self._commands.now("model"),
            mode=self._commands.now("mode"),
            root=handshake.roots[0],
        )
        self._terminal.line(text, "dim")
        if resumed is None:
            await self._sessions.begin()
        elif not await self._sessions.resume(resumed):
            return False
        self._show_waiting()
        self._face.opened(self._commands, self._servers, Path(str(settings["storage_root"])))
        return True

    def _remember_mode(self, doctor: Json, folder: Path) -> None:
        """Go on in the mode of the last chat here, if no setting and no option names one."""
        saved = SavedModes(folder, self._root)
        self._commands.mode_chosen = saved.keep
        sources = {one["name"]: one["source"] for one in doctor["settings"]}
        if sources["mode"] == "default" and (last := saved.last()) in MODES:
            self._commands.chosen.setdefault("mode", last)

    async def _obey(self, prompt: str) -> bool:
        """Run a command or a turn; return False if a turn failed."""
        words = self._words
        name, _, argument = prompt.strip().partition(" ")
        argument = argument.strip()
        match name:
            case _ if self._keyboard.interactive and (command := own_command(prompt)):
                await self._interrupts.unless(self._own.run(command))
            case _ if self._shown(name, argument):
                pass
            case _ if (question := self._question(name, argument)) is not None:
                await self._asking(question)
            case "/undo":
                await self._stepping(self._undo.undo(self._session, skip=argument == "skip"))
            case "/redo":
                await self._stepping(self._undo.redo(self._session))
            case "/review" if not argument:
                self._review.rest = ""
                await self._decide(applied=True)
            case "/continue" | "f" if (about := self._about(name, argument)) is not None:
                return await self._turn(None, about)
            case _ if self._servers.named(name):
                return await self._turn(self._servers.filled(name, argument))
            case _ if _is_name(name) and await self._commands.calls(name):
                return await self._turn(self._content(prompt))
            case _ if _is_name(name):
                self._terminal.line(words.unknown_command.format(name=name), "yellow")
            case _:
                return await self._turn(self._content(prompt))
        return True

    def _about(self, name: str, argument: str) -> Json | None:
        """Return what a turn without a prompt is about; None if this is no such turn."""
        if name == "/continue":
            return {}
        return self._findings.question(argument) if self._session.findings else None

    def _shown(self, name: str, argument: str) -> bool:
        """Run a command that needs nothing of the sidecar; return False if this is none."""
        table: Mapping[str, Callable[[], None]] = {
            "/help": lambda: self._terminal.line(self._words.help.format(modes=", ".join(MODES))),
            "/mode": lambda: self._commands.mode(argument),
            "/effort": lambda: self._commands.effort(argument),
            "/diff": lambda: self._commands.diff(self._session),
        }
        if name in table:
            table[name]()
        return name in table

    def _question(self, name: str, argument: str) -> Awaitable[None] | None:
        """Return the command with this name, if it is one that asks the sidecar, else None."""
        commands, session = self._commands, self._session
        decides = session.findings and self._findings.question(argument) is None
        table: Mapping[str, Callable[[], Awaitable[None]]] = {
            "/model": lambda: commands.model(argument),
            "/session": lambda: self._sessions.obey(argument),
            "/new": lambda: self._sessions.obey("new"),
            "/clear": lambda: self._sessions.obey("new"),
            "/fork": lambda: self._sessions.fork(argument),
            "/keep": self._keep,
            "/usage": lambda: commands.usage(session.session_id),
            "/context": lambda: commands.context(session.session_id, argument),
            "/compact": lambda: commands.compact(session.session_id),
            "/output": lambda: commands.output(session, argument),
            "/skills": commands.skills,
            "/mcp": lambda: self._servers.obey(argument),
            "/memory": lambda: commands.memory(argument),
            **({"f": lambda: self._findings.obey(session, argument)} if decides else {}),
        }
        return table[name]() if name in table else None

    async def _asking(self, command: Awaitable[None]) -> None:
        """Run a command that asks the sidecar, and show its errors. Raises Interrupted."""
        before = self._session
        try:
            await self._interrupts.unless(command)
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "red")
        if self._session is not before:
            self._files.close_all(but=set())
            self._undo = Undo(self._client, self._files, self._terminal, self._words)
            self._show_waiting()

    async def _stepping(self, step: Awaitable[None]) -> None:
        """Finish one undo or redo step even when the user interrupts."""
        try:
            await step
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "red")
        self._files.close_all(but=waiting_uris(self._session))

    async def _turn(self, content: Awaitable[list[Json]] | None, about: Json | None = None) -> bool:
        """Run one turn to its end and have its hunks decided; return False if it failed.

        Without `content` the model continues, or the turn is `about` findings. Raises Interrupted
        while a server supplies `content`.
        """
        self._files.refresh()
        self._review.rest = ""
        try:
            blocks = await self._interrupts.unless(content) if content else []
            params: Json = {"sessionId": self._session.session_id, **self._commands.chosen}
            if about:
                started = await self._client.request("kode/review/ask", params | about)
            else:
                params["input"] = blocks
                started = await self._client.request("kode/turn/start", params)
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "red")
            return False
        turn_id = started["turnId"]
        running = asyncio.create_task(self._until_over(turn_id))
        self._keyboard.steer = lambda text: self._steer(turn_id, text)
        try:
            while not running.done():
                await self._cancel_on_interrupt(running)
            stop_reason = running.result()
        finally:
            running.cancel()
            self._keyboard.steer = None
            self._keyboard.reported.clear()
        if stop_reason == "cancelled":
            self._keyboard.give_back()
        await self._measure()
        if stop_reason == "max_tool_rounds":
            self._terminal.line(self._words.resume, "dim")
        if waiting_uris(self._session) or self._editor.buffers:
            await self._decide()
        return stop_reason != "error"

    async def _content(self, prompt: str) -> list[Json]:
        content, unread = prompt_blocks(prompt, self._root)
        for path in unread:
            self._terminal.line(f"⚠ {self._words.unread_image.format(path=path)}", "yellow")
        return [*content, *await self._servers.attached(prompt), *self._own.notes()]

    def _steer(self, turn_id: str, text: str) -> None:
        """Send a text to the running turn; if that has already ended, queue it as a prompt."""
        self._keyboard.reported.append(text)
        task = asyncio.create_task(self._send_steer(turn_id, text))
        self._steering.add(task)
        task.add_done_callback(self._steering.discard)

    async def _send_steer(self, turn_id: str, text: str) -> None:
        session_id = self._session.session_id
        try:
            steer = {"sessionId": session_id, "turnId": turn_id, "input": await self._content(text)}
            await self._client.request("kode/turn/steer", steer)
        except RpcError:
            with suppress(ValueError):  # the end of the turn has removed it
                self._keyboard.reported.remove(text)
            self._keyboard.queue.append(text)
        except ConnectionLost:
            pass  # reported by the code that waits for the turn

    async def _measure(self) -> None:
        """Get the size of the next request, if a user can see it."""
        if self._keyboard.interactive:
            params = {"sessionId": self._session.session_id, **self._commands.chosen}
            with suppress(RpcError):
                inspected = await self._client.request("kode/context/inspect", params)
                self._face.measured(self._session, inspected)
                await self._servers.refresh()

    async def _cancel_on_interrupt(self, running: "asyncio.Task[str]") -> None:
        """Wait for the turn; Ctrl-C cancels it. Raises Leaving."""
        try:
            await self._interrupts.unless(asyncio.wait({running}))
        except Interrupted:
            self._terminal.line(self._words.cancelling, "yellow")
            with suppress(RpcError):
                session = {"sessionId": self._session.session_id}
                await self._client.request("kode/turn/cancel", session)

    async def _until_over(self, turn_id: str) -> str:
        """Wait for the turn's end; return its reason. In mode `ask` let the user decide hunks."""
        session, asked = self._session, set[str]()

        def over() -> str | None:
            end = session.turn_end(turn_id)
            return end["stopReason"] if end else None

        def news() -> bool:
            return over() is not None or not waiting_hunks(session) <= asked

        asks = self._commands.now("mode") == "ask"
        while asks:
            await self._watch.until(news)
            if over() is not None:
                break
            try:
                asked = waiting_hunks(session)
                await self._review.decide(session, later=False)
            except Interrupted:
                asked = waiting_hunks(session)  # the turn is being cancelled
        return await self._watch.until(over)

    async def _decide(self, *, applied: bool = False) -> None:
        """Ask the user about undecided hunks, then show how many are left."""
        to_keep = any(map(is_to_keep, self._session.hunks.values()))
        if not waiting_uris(self._session) and not self._editor.buffers and not to_keep:
            self._terminal.line(self._words.nothing_waits)
            return
        with suppress(Interrupted):  # undecided hunks are counted below
            await self._review.decide(self._session, applied=applied)
        self._show_waiting()

    async def _keep(self) -> None:
        """Keep all that is applied and not kept yet."""
        if not await self._review.keep_all(self._session):
            self._terminal.line(self._words.nothing_waits)

    def _show_waiting(self) -> None:
        words = self._words
        if count := len(waiting_hunks(self._session)):
            self._terminal.line(words.waiting.format(count=count), "yellow")
        if count := sum(map(is_to_keep, self._session.hunks.values())):
            self._terminal.line(words.to_keep.format(count=count), "yellow")


def _is_name(word: str) -> bool:
    """Return whether a word is `/name`, and no path."""
    return word.startswith("/") and "/" not in word[1:]
