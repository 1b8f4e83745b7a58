"""Plays one agent turn through the real process, as an editor and its user see it."""

import os
from contextlib import AsyncExitStack
from typing import Any, TextIO

from kode_sidecar.devtools.demo.model_server import ModelServer, load_recording
from kode_sidecar.devtools.demo.stage import (
    HERE,
    DemoFailed,
    DemoOptions,
    Show,
    perform,
    recorded_environment,
)
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.editor import ClientEditor
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.watch import Watch

DELTA_MS = 15.0
RECORDED_HUNKS = 2


async def play(options: DemoOptions, out: TextIO | None = None) -> int:
    """Play one turn to `out` (default: standard output) and return the exit code."""

    async def acts(show: Show) -> None:
        async with AsyncExitStack() as stack:
            await _Play(show).run(stack)

    return await perform(options, out, acts)


class _Play:
    """The acts, in order."""

    def __init__(self, show: Show) -> None:
        self._options, self._stage = show.options, show.stage
        self._terminal, self._say = show.terminal, show.say

    async def run(self, stack: AsyncExitStack) -> None:
        terminal = self._terminal
        terminal.line(self._say("stage", project=self._stage.project), "dim")
        client = await stack.enter_async_context(
            await Client.spawn(env=await self._environment(stack))
        )
        watch, editor = Watch(client, ClientSession, terminal), ClientEditor(client)
        await self._connect(client, editor)
        buffer = editor.open(self._stage.file, self._stage.unsaved_text, language_id="javascript")
        terminal.line(self._say("opened"), "dim")
        session = await self._converse(client, watch)
        change_set_id = self._review(session, editor)
        await self._decide(client, session, change_set_id, buffer)
        self._show_records(session.session_id)
        code = await client.close()
        if code != 0:
            raise DemoFailed(self._say("wrong_exit", code=code))

    async def _environment(self, stack: AsyncExitStack) -> dict[str, str]:
        """Return the child's environment; start the recorded model unless the play is live."""
        if self._options.live:
            environment = dict(os.environ)
            self._terminal.line(self._say("live"), "dim")
        else:
            recording = load_recording(HERE / "recording" / self._say.language, DELTA_MS)
            model = ModelServer(recording, paced=not self._options.fast)
            await stack.enter_async_context(model)
            environment = recorded_environment(os.environ, model.base_url)
            self._terminal.line(self._say("recorded", url=model.base_url), "dim")
        return {**environment, "KODE_HOME": str(self._stage.home)}

    async def _connect(self, client: Client, editor: ClientEditor) -> None:
        handshake = Handshake(
            roots=[self._stage.project],
            locale="zh-CN" if self._say.language == "zh" else "en",
            client_name="kode-sidecar demo",
        )
        await editor.client.initialize(handshake)
        server = client.kode["server"]
        self._terminal.line(
            self._say(
                "connected",
                server=server["name"],
                version=server["version"],
                pid=client.process.pid,
                protocol=client.kode["protocolVersion"],
                encoding=editor.encoding,
            ),
            "dim",
        )

    async def _converse(self, client: Client, watch: Watch[ClientSession]) -> ClientSession:
        """Send one prompt, stream until the turn ends, and return the session."""
        new = await client.request("kode/session/new", {"agent": "ide-helper"})
        session = watch.session(new["sessionId"], new["seq"])
        prompt = {"type": "text", "text": self._say("prompt")}
        started = await client.request(
            "kode/turn/start", {"sessionId": session.session_id, "input": [prompt]}
        )
        end = await watch.until(lambda: session.turn_end(started["turnId"]))
        if end["stopReason"] != "end_turn":
            error: dict[str, Any] = end.get("error") or {}
            text = error.get("message", "")
            raise DemoFailed(self._say("wrong_turn", reason=end["stopReason"], error=text))
        return session

    def _review(self, session: ClientSession, editor: ClientEditor) -> str:
        """Show the turn's change set and return its id."""
        hunks = [hunk for hunk in session.hunks.values() if hunk["state"] == "proposed"]
        expected = ">0" if self._options.live else RECORDED_HUNKS
        if not hunks or (not self._options.live and len(hunks) != RECORDED_HUNKS):
            raise DemoFailed(self._say("wrong_hunks", count=len(hunks), expected=expected))
        self._terminal.line()
        self._terminal.line(self._say("review"), "bold")
        change_set_id = list(session.change_sets)[-1]
        hunks = session.hunks_of(change_set_id)
        uris = {hunk["uri"] for hunk in hunks}
        texts = {uri: text for uri in uris if (text := editor.text(uri)) is not None}
        self._terminal.change_set(hunks, texts, editor.encoding)
        return change_set_id

    async def _decide(
        self, client: Client, session: ClientSession, change_set_id: str, buffer: Buffer
    ) -> None:
        """Accept the first hunk, reject the rest, and check that the sidecar did so."""
        terminal = self._terminal
        before, on_disk = buffer.text, self._stage.file.read_bytes()
        hunks = session.hunks_of(change_set_id, "proposed")
        accepted, *rejected = [hunk["hunkId"] for hunk in hunks]
        decisions: list[dict[str, Any]] = [{"hunkId": accepted, "action": "accept"}]
        decisions += [
            {"hunkId": hunk_id, "action": "reject", "comment": self._say("comment")}
            for hunk_id in rejected
        ]
        terminal.line()
        terminal.line(self._say("decide"), "bold")
        params = {"changeSetId": change_set_id, "seenSeq": session.seq, "decisions": decisions}
        answer = await client.request("kode/changeSet/decide", params)
        outcome = (answer["applied"], answer["rejected"], answer["verified"])
        if outcome != ([accepted], rejected, True):
            raise DemoFailed(self._say("wrong_outcome", answer=answer))
        terminal.line(self._say("outcome", applied=1, rejected=len(rejected), verified="✓"))
        terminal.line()
        terminal.line(self._say("changed"), "bold")
        terminal.difference(before, buffer.text)
        if self._stage.file.read_bytes() != on_disk:
            raise DemoFailed(self._say("wrong_disk", file=self._stage.file.name))
        if buffer.text.count("\n") == buffer.text.count("\r\n"):
            terminal.line(self._say("untouched", lines=buffer.text.count("\r\n")), "dim")

    def _show_records(self, session_id: str) -> None:
        conversation = self._stage.home / "conversations" / session_id
        self._terminal.line()
        self._terminal.line(self._say("records"), "bold")
        for path in (
            conversation / "messages.jsonl",
            conversation / "journal.jsonl",
            self._stage.home / "logs" / "agent.log",
        ):
            self._terminal.line(f"  {path}")
