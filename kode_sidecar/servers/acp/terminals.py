"""Runs allowed commands in the client's terminals, where the user sees them live.

As for every command, permission was decided before. A client may pass the words to a shell without
quoting, so only words without meaning to any shell are sent. The client adds our variables to its
own environment, so variables that a command must not get are sent empty.
"""

import asyncio
import os
import re
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandEnd, ProgramRun
from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.tool_cards import Json
from kode_sidecar.servers.acp.types import (
    CreateTerminalResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)
from kode_sidecar.servers.acp.updates import SessionUpdates
from kode_sidecar.servers.lsp import REFUSED, Connection

ANSWER_SECONDS = 10.0
# No blank, quote, wildcard, variable or tilde of any shell; zsh reads a leading `=`.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_+:./-][A-Za-z0-9_+:./=-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CUT = b"[the beginning was cut off by the editor's terminal]\n"
_UNKNOWN_START = (
    "The editor did not say whether it started the command, so it was not started here. Do not "
    "repeat it; have the user look."
)
_UNKNOWN_SIGNAL = int(signal.SIGTERM)


class ClientTerminals:
    """The terminals of one session. `run` is a `TerminalRunner` of `tools.run_command`."""

    def __init__(
        self,
        connection: Connection,
        client: ClientAbilities,
        session_id: str,
        updates: SessionUpdates,
    ) -> None:
        self._connection = connection
        self._client = client
        self._session_id = session_id
        self._updates = updates
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, wanted: ProgramRun, call: ToolCall) -> CommandEnd | None:
        """Run a command in a terminal that the call's card shows; None if it must run here.

        Raises KodeError `ToolFailed` if the client may have started it without saying so.
        """
        words = (str(wanted.program), *wanted.arguments)
        if not self._client.runs_programs or not all(map(_PLAIN_WORD.fullmatch, words)):
            return None
        terminal = await self._created(wanted)
        if terminal is None:
            return None
        card = self._updates.cards.get(call.tool_use_id)
        if card is not None:
            self._updates.show(card, [{"type": "terminal", **terminal}])
        running = True
        try:
            status = await self._exit(terminal, wanted.limits.seconds)
            running = False
            if status is None:
                await self._kill(terminal)
            output = await self._output(terminal)
        finally:
            await self._end(terminal, kill=running)
        if status is None:
            return CommandEnd("timed_out", None, output)
        return CommandEnd("exited", _exit_code(status), output)

    async def _created(self, wanted: ProgramRun) -> Json | None:
        """Return a new terminal; None if the client refused to make one.

        A client that does not answer may have started the command: it must not run twice. What is
        made too late, or after a cancel, is ended then.
        """
        asked = {"sessionId": self._session_id, **_creation(wanted)}
        creating: asyncio.Task[CreateTerminalResponse] = asyncio.create_task(
            self._connection.request("terminal/create", asked, CreateTerminalResponse)
        )
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                made = await asyncio.shield(creating)
        except KodeError as error:
            refused = (error.details or {}).get("reason") == REFUSED
            if refused or error.code == "CapabilityMissing":
                return None
            raise KodeError("ToolFailed", f"{_UNKNOWN_START} {error.message}.") from None
        except TimeoutError:
            self._in_background(self._end_late(creating))
            text = f"{_UNKNOWN_START} It did not answer within {ANSWER_SECONDS:g} seconds."
            raise KodeError("ToolFailed", text) from None
        except asyncio.CancelledError:
            self._in_background(self._end_late(creating))
            raise
        return {"terminalId": made.terminal_id}

    async def _end_late(self, creating: asyncio.Task[CreateTerminalResponse]) -> None:
        with suppress(KodeError):
            made = await creating
            await self._end({"terminalId": made.terminal_id}, kill=True)

    async def _exit(self, terminal: Json, seconds: float) -> WaitForTerminalExitResponse | None:
        """Return how the command ended; None if it ran out of time."""
        try:
            return await self._ask(
                "wait_for_exit", terminal, WaitForTerminalExitResponse, seconds=seconds
            )
        except TimeoutError:
            return None

    async def _output(self, terminal: Json) -> bytes:
        try:
            answer = await self._ask("output", terminal, TerminalOutputResponse)
        except TimeoutError:
            raise KodeError(
                "ToolFailed", "The editor's terminal does not tell what was written."
            ) from None
        output = answer.output.encode("utf-8", "surrogatepass")
        return _CUT + output if answer.truncated else output

    async def _kill(self, terminal: Json) -> None:
        try:
            await self._ask("kill", terminal, dict[str, Any] | None)
        except (KodeError, TimeoutError) as error:
            self._connection.log("the client does not end a command in its terminal", error)

    async def _end(self, terminal: Json, *, kill: bool) -> None:
        """Release the terminal, even if the turn is cancelled meanwhile."""

        async def end() -> None:
            if kill:
                await self._kill(terminal)
            try:
                await self._ask("release", terminal, dict[str, Any] | None)
            except (KodeError, TimeoutError) as error:
                self._connection.log("the client does not take a terminal back", error)

        await asyncio.shield(self._in_background(end()))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _ask(
        self, verb: str, params: Json, answer: Any, *, seconds: float = ANSWER_SECONDS
    ) -> Any:
        """Send a request. Raises KodeError if it is refused, TimeoutError without an answer."""
        asked = {"sessionId": self._session_id, **params}
        async with asyncio.timeout(seconds):
            return await self._connection.request(f"terminal/{verb}", asked, answer)


def _creation(wanted: ProgramRun) -> Json:
    others = {name: "" for name in os.environ if _NAME.fullmatch(name)}
    environment = {**others, **wanted.environment}
    return {
        "command": str(wanted.program),
        "args": list(wanted.arguments),
        "cwd": str(wanted.folder),
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "outputByteLimit": wanted.limits.output_bytes,
    }


def _exit_code(status: WaitForTerminalExitResponse) -> int:
    """Return the exit code, negative for a signal as in Python. Raises KodeError if unknown."""
    if status.exit_code is not None:
        return status.exit_code
    if not status.signal:
        raise KodeError("ToolFailed", "The editor's terminal does not tell how the command ended.")
    name = status.signal.upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    return -int(getattr(signal, name, _UNKNOWN_SIGNAL))
