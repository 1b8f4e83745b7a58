"""One agent turn through the real process, as an editor and its user see it."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TextIO

from kode_sidecar.client.buffer import Buffer
from kode_sidecar.client.connection import Client
from kode_sidecar.client.editor import Editor
from kode_sidecar.client.handshake import Handshake
from kode_sidecar.client.labels import labels_for, system_locale
from kode_sidecar.client.session_view import ChangeSetView
from kode_sidecar.client.terminal import Terminal, prepare
from kode_sidecar.client.watch import Watch
from kode_sidecar.demo.model_server import ModelServer
from kode_sidecar.demo.narration import Narration, narration_for
from kode_sidecar.demo.recorded_model import load_recording
from kode_sidecar.demo.stage import (
    HERE,
    Stage,
    has_key,
    recorded_environment,
    set_stage,
)

DELTA_MS = 15.0
CEILING_SECONDS = 120.0
LIVE_CEILING_SECONDS = 900.0
RECORDED_HUNKS = 2


@dataclass(frozen=True)
class DemoOptions:
    """`fast` leaves out the pacing; `locale` is `zh` or `en`, None asks the system; `live` asks
    the real service."""

    fast: bool = False
    locale: str | None = None
    live: bool = False


class DemoFailed(Exception):
    """The play did not go as it must. The message says what was expected."""


async def play(options: DemoOptions, out: TextIO | None = None) -> int:
    """Play the demo to `out` (standard output); the exit code.

    Any failure is printed with the place of the logs and gives 1.
    """
    screen: TextIO = sys.stdout if out is None else out
    prepare(screen)
    locale = options.locale or system_locale()
    words = narration_for(locale)
    terminal = Terminal(screen, labels_for(locale))
    home = None
    try:
        stage = set_stage()
        home = stage.home
        ceiling = LIVE_CEILING_SECONDS if options.live else CEILING_SECONDS
        async with asyncio.timeout(ceiling), AsyncExitStack() as stack:
            await _Play(options, locale, stage, terminal, words).run(stack)
    except Exception as error:
        text = str(error) or type(error).__name__
        terminal.line()
        terminal.line(words.failed.format(error=text), "red")
        if home is not None:
            terminal.line(words.logs.format(home=home))
        return 1
    return 0


class _Play:
    """The acts, in order."""

    def __init__(
        self,
        options: DemoOptions,
        locale: str,
        stage: Stage,
        terminal: Terminal,
        words: Narration,
    ) -> None:
        self._options = options
        self._locale = locale
        self._stage = stage
        self._terminal = terminal
        self._words = words

    async def run(self, stack: AsyncExitStack) -> None:
        words, terminal = self._words, self._terminal
        terminal.line(words.stage.format(project=self._stage.project), "dim")
        client = await stack.enter_async_context(
            await Client.spawn(env=await self._environment(stack))
        )
        watch, editor = Watch(client, terminal), Editor(client)
        await self._connect(client, editor)
        buffer = editor.open(self._stage.file, self._stage.unsaved_text, language_id="javascript")
        terminal.line(words.opened, "dim")
        session_id = await self._converse(client, watch)
        change_set = self._review(watch, session_id, editor)
        await self._decide(client, watch.session(session_id).seq, change_set, buffer)
        self._show_records(session_id)
        code = await client.close()
        if code != 0:
            raise DemoFailed(words.wrong_exit.format(code=code))

    async def _environment(self, stack: AsyncExitStack) -> dict[str, str]:
        """The child's environment; starts the recorded model if that is to answer."""
        if self._options.live:
            if not has_key(os.environ):
                raise DemoFailed(self._words.no_key)
            environment = dict(os.environ)
            self._terminal.line(self._words.live, "dim")
        else:
            language = "zh" if self._locale.lower().startswith("zh") else "en"
            recording = load_recording(HERE / "recording" / language, DELTA_MS)
            model = ModelServer(recording, paced=not self._options.fast)
            await stack.enter_async_context(model)
            environment = recorded_environment(os.environ, model.base_url)
            self._terminal.line(self._words.recorded.format(url=model.base_url), "dim")
        return {**environment, "KODE_HOME": str(self._stage.home)}

    async def _connect(self, client: Client, editor: Editor) -> None:
        handshake = Handshake(
            roots=[self._stage.project],
            locale="zh-CN" if self._locale.lower().startswith("zh") else "en",
            client_name="kode-sidecar demo",
        )
        await editor.initialize(handshake)
        server = client.kode["server"]
        self._terminal.line(
            self._words.connected.format(
                server=server["name"],
                version=server["version"],
                pid=client.process.pid,
                protocol=client.kode["protocolVersion"],
                encoding=editor.encoding,
            ),
            "dim",
        )

    async def _converse(self, client: Client, watch: Watch) -> str:
        """One prompt, streamed until the turn ends; the session's id."""
        new = await client.request("kode/session/new", {"agent": "ide-helper"})
        session_id: str = new["sessionId"]
        prompt = {"type": "text", "text": self._words.prompt}
        started = await client.request(
            "kode/turn/start", {"sessionId": session_id, "input": [prompt]}
        )
        turn = await watch.turn_end(session_id, started["turnId"])
        if turn.stop_reason != "end_turn":
            error: dict[str, Any] = turn.result.get("error") or {}
            text = error.get("message", "")
            raise DemoFailed(self._words.wrong_turn.format(reason=turn.stop_reason, error=text))
        return session_id

    def _review(self, watch: Watch, session_id: str, editor: Editor) -> ChangeSetView:
        """Show the change set of the turn."""
        change_sets = list(watch.session(session_id).change_sets.values())
        hunks = [hunk for change_set in change_sets for hunk in change_set.hunks("proposed")]
        expected = ">0" if self._options.live else RECORDED_HUNKS
        if not hunks or (not self._options.live and len(hunks) != RECORDED_HUNKS):
            raise DemoFailed(self._words.wrong_hunks.format(count=len(hunks), expected=expected))
        self._terminal.line()
        self._terminal.line(self._words.review, "bold")
        change_set = change_sets[-1]
        texts = {uri: text for uri in change_set.files if (text := editor.text(uri)) is not None}
        self._terminal.change_set(change_set, texts, editor.encoding)
        return change_set

    async def _decide(
        self, client: Client, seen_seq: int, change_set: ChangeSetView, buffer: Buffer
    ) -> None:
        """Accept the first hunk, reject the rest, and hold the sidecar to it."""
        words, terminal = self._words, self._terminal
        before, on_disk = buffer.text, self._stage.file.read_bytes()
        accepted, *rejected = [hunk.id for hunk in change_set.hunks("proposed")]
        decisions: list[dict[str, Any]] = [{"hunkId": accepted, "action": "accept"}]
        decisions += [
            {"hunkId": hunk_id, "action": "reject", "comment": words.comment}
            for hunk_id in rejected
        ]
        terminal.line()
        terminal.line(words.decide, "bold")
        params = {"changeSetId": change_set.id, "seenSeq": seen_seq, "decisions": decisions}
        answer = await client.request("kode/changeSet/decide", params)
        outcome = (answer["applied"], answer["rejected"], answer["verified"])
        if outcome != ([accepted], rejected, True):
            raise DemoFailed(words.wrong_outcome.format(answer=answer))
        terminal.line(words.outcome.format(applied=1, rejected=len(rejected), verified="✓"))
        terminal.line()
        terminal.line(words.changed, "bold")
        terminal.difference(before, buffer.text)
        if self._stage.file.read_bytes() != on_disk:
            raise DemoFailed(words.wrong_disk.format(file=self._stage.file.name))
        if buffer.text.count("\n") == buffer.text.count("\r\n"):
            terminal.line(words.untouched.format(lines=buffer.text.count("\r\n")), "dim")

    def _show_records(self, session_id: str) -> None:
        conversation = self._stage.home / "conversations" / session_id
        self._terminal.line()
        self._terminal.line(self._words.records, "bold")
        for path in (
            conversation / "messages.jsonl",
            conversation / "journal.jsonl",
            self._stage.home / "logs" / "agent.log",
        ):
            self._terminal.line(f"  {path}")
