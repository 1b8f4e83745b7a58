"""The conversation at a terminal: prompts, turns, commands, until the user leaves."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path

from kode_sidecar.chat.commands import MODES, Commands
from kode_sidecar.chat.files import Files
from kode_sidecar.chat.keyboard import Interrupted, Interrupts, Keyboard
from kode_sidecar.chat.review import Review, waiting_hunks, waiting_uris
from kode_sidecar.chat.sessions import Sessions
from kode_sidecar.chat.undo import Undo
from kode_sidecar.chat.words import Words
from kode_sidecar.client.connection import Client, RpcError
from kode_sidecar.client.editor import Editor
from kode_sidecar.client.fold import SessionFold
from kode_sidecar.client.handshake import Handshake
from kode_sidecar.client.session_view import BlockView, Json
from kode_sidecar.client.terminal import Terminal
from kode_sidecar.client.watch import Watch
from kode_sidecar.text.shown_text import one_line


class Conversation:
    """One connection and the session that is talked in."""

    def __init__(
        self,
        client: Client,
        interrupts: Interrupts,
        keyboard: Keyboard,
        terminal: Terminal,
        words: Words,
        chosen: Mapping[str, str | None],
        *,
        accept: bool,
    ) -> None:
        self._client = client
        self._interrupts = interrupts
        self._keyboard = keyboard
        self._terminal = terminal
        self._words = words
        self._watch = Watch(client, self)
        self._editor = Editor(client)
        self._files = Files(self._editor, terminal, words)
        self._review = Review(client, self._files, keyboard, terminal, words, accept)
        self._editor.answer_permission = self._review.permit
        self._editor.answer_choice = self._review.choose
        given = {name: value for name, value in chosen.items() if value}
        self._commands = Commands(client, terminal, words, given)
        self._sessions = Sessions(client, self._watch, terminal, words)
        self._undo = Undo(client, self._files, terminal, words)

    @property
    def _session(self) -> SessionFold:
        return self._sessions.now

    def event(self, session: SessionFold, event: Json) -> None:
        """`Watch` tells the stream; what a file's bytes look like comes with its first hunks."""
        if event["type"] == "changeSet.updated":
            for file in event.get("files", ()):
                self._files.learn(file)
        if session is self._session or event["type"] == "changeSet.updated":
            self._terminal.event(session, event)

    def growth(self, session: SessionFold, block: BlockView, added: str) -> None:
        """Text of an open block."""
        self._terminal.growth(session, block, added)

    async def run(self, handshake: Handshake) -> int:
        """Until the user leaves; the exit code. Raises Leaving, ConnectionLost, RpcError."""
        if not await self._begin(handshake):
            return 1
        ok = True
        while True:
            try:
                prompt = await self._prompt()
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

    async def _begin(self, handshake: Handshake) -> bool:
        """Shake hands, look whether a turn can be made at all, make the session."""
        await self._editor.initialize(handshake)
        doctor = await self._client.request("kode/doctor", {})
        wrong = [check for check in doctor["checks"] if not check["ok"]]
        for check in wrong:
            text = one_line(f"{check['message']} {check.get('hint', '')}")
            self._terminal.line(f"⚠ {text}", "red")
        if any(check["name"] in ("key", "settings") for check in wrong):
            return False
        settings = {each["name"]: each["value"] for each in doctor["settings"]}
        self._commands.settings = settings
        self._sessions.records = Path(str(settings["storage_root"])) / "conversations"
        await self._sessions.begin()
        text = self._words.welcome.format(
            version=doctor["version"],
            model=self._commands.now("model"),
            mode=self._commands.now("mode"),
            root=handshake.roots[0],
        )
        self._terminal.line(text, "dim")
        return True

    async def _prompt(self) -> str | None:
        """Return a prompt of one or more lines; None at the end of input."""
        lines: list[str] = []
        while True:
            if self._keyboard.interactive:
                self._terminal.line()
                self._terminal.prompt(self._words.more if lines else self._words.prompt)
            line = await self._keyboard.line()
            if line is None or not line.endswith("\\"):
                break
            lines.append(line[:-1])
        return "\n".join([*lines, line or ""]) if line is not None or lines else None

    async def _obey(self, prompt: str) -> bool:
        """Run a command or a turn; False when a turn failed."""
        words = self._words
        name, _, argument = prompt.strip().partition(" ")
        argument = argument.strip()
        match name:
            case "/help":
                self._terminal.line(words.help.format(modes=", ".join(MODES)))
            case "/mode":
                self._commands.mode(argument)
            case "/model" | "/session" | "/fork" | "/usage" | "/skills" | "/memory":
                await self._asking(self._question(name, argument))
            case "/undo":
                await self._stepping(self._undo.undo(self._session, skip=argument == "skip"))
            case "/redo":
                await self._stepping(self._undo.redo(self._session))
            case "/review":
                await self._decide()
            case "/continue":
                return await self._turn("")
            case _ if name.startswith("/") and "/" not in name[1:]:
                self._terminal.line(words.unknown_command.format(name=name), "yellow")
            case _:
                return await self._turn(prompt)
        return True

    def _question(self, name: str, argument: str) -> Awaitable[None]:
        """Return the command of that name that asks the sidecar."""
        match name:
            case "/model":
                return self._commands.model(argument)
            case "/session":
                return self._sessions.obey(argument)
            case "/fork":
                return self._sessions.fork(argument)
            case "/usage":
                return self._commands.usage(self._session.session_id)
            case "/skills":
                return self._commands.skills()
            case _:
                return self._commands.memory(argument)

    async def _asking(self, command: Awaitable[None]) -> None:
        """Run a command that asks the sidecar; what it refuses is told. Raises Interrupted."""
        before = self._session
        try:
            await self._interrupts.unless(command)
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "red")
        if self._session is not before:
            self._files.close_all(but=set())
            self._undo = Undo(self._client, self._files, self._terminal, self._words)
            self._tell_waiting()

    async def _stepping(self, step: Awaitable[None]) -> None:
        """One step of undo or redo to its end: half of it would help nobody."""
        try:
            await step
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "red")
        self._files.close_all(but=waiting_uris(self._session))

    async def _turn(self, prompt: str) -> bool:
        """One turn to its end and what it proposed decided; False when it failed."""
        self._files.refresh()
        content = [{"type": "text", "text": prompt}] if prompt else []
        params = {"sessionId": self._session.session_id, "input": content, **self._commands.chosen}
        try:
            started = await self._client.request("kode/turn/start", params)
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "red")
            return False
        running = asyncio.create_task(self._until_over(started["turnId"]))
        try:
            while not running.done():
                await self._cancel_on_interrupt(running)
            stop_reason = running.result()
        finally:
            running.cancel()
        if stop_reason == "max_tool_rounds":
            self._terminal.line(self._words.resume, "dim")
        if waiting_uris(self._session) or self._editor.buffers:
            await self._decide()
        return stop_reason != "error"

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
        """Why the turn ended. In the mode `ask` it waits for decisions: they are made here."""
        session, asked = self._session, set[str]()

        def over() -> str | None:
            turn = session.turns.get(turn_id)
            return turn.stop_reason if turn else None

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

    async def _decide(self) -> None:
        """Put to the user what waits, and say how much still does."""
        if not waiting_uris(self._session) and not self._editor.buffers:
            self._terminal.line(self._words.nothing_waits)
            return
        with suppress(Interrupted):  # what they left is counted
            await self._review.decide(self._session)
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        count = len(waiting_hunks(self._session))
        if count:
            self._terminal.line(self._words.waiting.format(count=count), "yellow")
