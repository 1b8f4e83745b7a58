"""The conversation at a terminal: prompts, turns, commands, until the user leaves."""

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, get_args

from kode_sidecar.chat.files import Files
from kode_sidecar.chat.keyboard import Interrupted, Interrupts, Keyboard, Leaving, end_process
from kode_sidecar.chat.review import Review, waiting_hunks, waiting_uris
from kode_sidecar.chat.words import Words, words_for
from kode_sidecar.client.connection import Client, ConnectionLost, RpcError
from kode_sidecar.client.editor import Editor
from kode_sidecar.client.fold import SessionFold
from kode_sidecar.client.handshake import Handshake, client_capabilities
from kode_sidecar.client.labels import labels_for, system_locale
from kode_sidecar.client.plain_text import one_line
from kode_sidecar.client.session_view import BlockView, Json
from kode_sidecar.client.terminal import Terminal, prepare
from kode_sidecar.client.watch import Watch
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.session import Mode

MODES: tuple[str, ...] = get_args(Mode)
LEFT_BY_CTRL_C = 130


@dataclass(frozen=True)
class ChatOptions:
    """`root` is the folder the model may read, by default the working directory.

    `model` and `mode` None = as the user's settings say. `accept`: accept every hunk that is not
    sensitive, without asking. `trusted`: the user trusts this folder. `locale` None asks the
    system.
    """

    root: Path | None = None
    model: str | None = None
    mode: str | None = None
    accept: bool = False
    trusted: bool = False
    locale: str | None = None


def chat(options: ChatOptions) -> int:
    """Talk on standard input and output until the user leaves; the exit code.

    It is 1 when there is no key or, for a piped conversation, when a turn failed. Raises KodeError.
    """
    root = (options.root or Path.cwd()).absolute()
    if not root.is_dir():
        raise KodeError("NotFound", f"--root {root} is no folder; name one that exists.")
    code, still_reads = asyncio.run(_chat(options, root))
    if still_reads:
        end_process(code)
    return code


async def _chat(options: ChatOptions, root: Path) -> tuple[int, bool]:
    out: TextIO = sys.stdout
    prepare(out)
    locale = options.locale or system_locale()
    words = words_for(locale)
    interactive = sys.stdin.isatty() and out.isatty()
    terminal = Terminal(out, labels_for(locale), echo=not interactive)
    keyboard = None
    try:
        client = await Client.spawn(keep_frames=0, apart=True)
    except OSError as error:
        terminal.line(words.no_start.format(error=error), "red")
        return 1, False
    try:
        async with client:
            with Interrupts() as interrupts:
                keyboard = Keyboard(interrupts, sys.stdin, interactive=interactive)
                talk = _Conversation(client, interrupts, keyboard, terminal, words, options)
                code = await talk.run(root, locale)
    except Leaving:
        code = LEFT_BY_CTRL_C
    except (ConnectionLost, RpcError) as error:
        terminal.line(words.failed.format(error=error), "red")
        code = 1
    return code, keyboard is not None and keyboard.reads


class _Conversation:
    """One connection and the session that is talked in."""

    def __init__(
        self,
        client: Client,
        interrupts: Interrupts,
        keyboard: Keyboard,
        terminal: Terminal,
        words: Words,
        options: ChatOptions,
    ) -> None:
        self._client = client
        self._interrupts = interrupts
        self._keyboard = keyboard
        self._terminal = terminal
        self._words = words
        self._options = options
        self._watch = Watch(client, self)
        self._editor = Editor(client)
        self._files = Files(self._editor, terminal, words)
        self._review = Review(
            client, self._watch, self._files, keyboard, terminal, words, options.accept
        )
        self._editor.answer_permission = self._review.permit
        self._choice: dict[str, str] = {}  # model and mode of the next turns
        self._settings: dict[str, Any] = {}
        self._session = SessionFold("")

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

    async def run(self, root: Path, locale: str) -> int:
        """Until the user leaves; the exit code. Raises Leaving, ConnectionLost, RpcError."""
        if not await self._begin(root, locale):
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

    async def _begin(self, root: Path, locale: str) -> bool:
        """Shake hands, look whether a turn can be made at all, make the session."""
        capabilities = client_capabilities(("utf-16",))
        capabilities["workspace"]["workspaceEdit"]["resourceOperations"] = []
        handshake = Handshake(
            roots=[root],
            locale="zh-CN" if locale.lower().startswith("zh") else "en",
            trusted=self._options.trusted,
            capabilities=capabilities,
            client_name="kode-sidecar chat",
        )
        await self._editor.initialize(handshake)
        doctor = await self._client.request("kode/doctor", {})
        wrong = [check for check in doctor["checks"] if not check["ok"]]
        for check in wrong:
            text = one_line(f"{check['message']} {check.get('hint', '')}")
            self._terminal.line(f"⚠ {text}", "red")
        if any(check["name"] in ("key", "settings") for check in wrong):
            return False
        self._settings = {each["name"]: each["value"] for each in doctor["settings"]}
        chosen = {"model": self._options.model, "mode": self._options.mode}
        self._choice = {name: value for name, value in chosen.items() if value}
        await self._new_session()
        text = self._words.welcome.format(
            version=doctor["version"], model=self._now("model"), mode=self._now("mode"), root=root
        )
        self._terminal.line(text, "dim")
        return True

    def _now(self, name: str) -> str:
        return self._choice.get(name) or str(self._settings.get(name, ""))

    async def _new_session(self) -> None:
        new = await self._client.request("kode/session/new", {})
        self._session = self._watch.session(new["sessionId"], new["seq"])

    async def _prompt(self) -> str | None:
        """A prompt of one or more lines; None at the end of input."""
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
            case "/model":
                await self._choose_model(argument)
            case "/mode":
                self._choose_mode(argument)
            case "/session":
                await self._show_session(argument)
            case "/review":
                await self._decide()
            case "/continue":
                return await self._turn("")
            case _ if name.startswith("/") and "/" not in name[1:]:
                self._terminal.line(words.unknown_command.format(name=name), "yellow")
            case _:
                return await self._turn(prompt)
        return True

    async def _choose_model(self, model: str) -> None:
        """Note the model of the next turns, or list what there is."""
        if model:
            self._choice["model"] = model
            self._terminal.line(self._words.model_set.format(model=model))
            return
        self._terminal.line(self._words.model.format(model=self._now("model")))
        try:
            offer = await self._client.request("kode/models/list", {})
        except RpcError as error:
            self._terminal.line(f"⚠ {one_line(error.message)}", "yellow")
            return
        names = [each["name"] for each in offer["logical"]]
        names += [each["id"] for each in offer["models"]]
        self._terminal.line(self._words.models.format(models=", ".join(names)), "dim")

    def _choose_mode(self, mode: str) -> None:
        words, modes = self._words, ", ".join(MODES)
        if mode and mode not in MODES:
            self._terminal.line(words.mode_wrong.format(mode=mode, modes=modes), "yellow")
            return
        if mode:
            self._choice["mode"] = mode
        text = words.mode_set if mode else words.mode
        self._terminal.line(text.format(mode=self._now("mode")))

    async def _show_session(self, argument: str) -> None:
        if argument == "new":
            await self._new_session()
            self._files.close_all(but=set())
            text = self._words.session_new.format(id=self._session.session_id)
        else:
            folder = Path(str(self._settings["storage_root"])) / "conversations"
            text = self._words.session.format(
                id=self._session.session_id,
                title=self._session.title or "—",
                folder=folder / self._session.session_id,
            )
        self._terminal.line(text)

    async def _turn(self, prompt: str) -> bool:
        """One turn to its end and what it proposed decided; False when it failed."""
        self._files.refresh()
        content = [{"type": "text", "text": prompt}] if prompt else []
        params = {"sessionId": self._session.session_id, "input": content, **self._choice}
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

        asks = self._now("mode") == "ask"
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
        try:
            await self._review.decide(self._session)
        except Interrupted:
            self._terminal.line()
        count = len(waiting_hunks(self._session))
        if count:
            self._terminal.line(self._words.waiting.format(count=count), "yellow")
