"""Terminals of a client of ACP, as careless as real ones are: a shell reads the bare words."""

import asyncio
import os
import signal
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class _Terminal:
    process: asyncio.subprocess.Process
    reading: asyncio.Task[bytes]
    limit: int


@dataclass
class Terminals:
    """`verbs` are what was asked, in order. `refused` are verbs that are answered by an error.

    With `slow`, a terminal is made at once, but said only when it is set. `waited` is set when
    somebody waits for the end of a command.
    """

    refused: frozenset[str] = frozenset()
    slow: asyncio.Event | None = None
    verbs: list[str] = field(default_factory=list[str])
    created: list[Json] = field(default_factory=list[Json])
    open: dict[str, _Terminal] = field(default_factory=dict[str, _Terminal])
    processes: list[asyncio.subprocess.Process] = field(
        default_factory=list[asyncio.subprocess.Process]
    )
    waited: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, verb: str, params: Json) -> Json:
        """Raises OSError for what is refused, as for a terminal that there is not."""
        self.verbs.append(verb)
        if verb in self.refused:
            raise OSError(f"no {verb} here")
        if verb == "create":
            return await self._create(params)
        terminal = self.open.get(params["terminalId"])
        if terminal is None:
            raise OSError("no such terminal")
        match verb:
            case "wait_for_exit":
                self.waited.set()
                await terminal.reading
                return _status(await terminal.process.wait())
            case "output":
                return await self._output(terminal)
            case "kill":
                _kill(terminal)
            case _:
                _kill(terminal)
                del self.open[params["terminalId"]]
        return {}

    async def _create(self, params: Json) -> Json:
        self.created.append(params)
        more = {one["name"]: one["value"] for one in params["env"]}
        process = await asyncio.create_subprocess_shell(
            " ".join([params["command"], *params["args"]]),
            cwd=params["cwd"],
            env={**os.environ, **more},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.processes.append(process)
        assert process.stdout is not None
        reading = asyncio.create_task(process.stdout.read())
        name = f"t{len(self.created)}"
        self.open[name] = _Terminal(process, reading, params["outputByteLimit"])
        if self.slow is not None:
            await self.slow.wait()
        return {"terminalId": name}

    async def _output(self, terminal: _Terminal) -> Json:
        written = await terminal.reading
        shown = written[-terminal.limit :].decode(errors="ignore")
        status = _status(await terminal.process.wait())
        return {"output": shown, "truncated": len(written) > terminal.limit, "exitStatus": status}


def _kill(terminal: _Terminal) -> None:
    if terminal.process.returncode is None:
        os.killpg(terminal.process.pid, signal.SIGKILL)


def _status(code: int) -> Json:
    return {"signal": signal.Signals(-code).name} if code < 0 else {"exitCode": code}
