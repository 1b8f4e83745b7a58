"""Plays a scripted session again and again, each time in a fork of this process.

A job is a line of JSON on stdin, what came of it a line on stdout. Everything is imported before
the first fork, so that a run costs little, also below strace: it is attached to the fork.
"""

import asyncio
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.core.domain.message import TextBlock
from kode_sidecar.core.protocol.session import SessionNewParams
from kode_sidecar.core.protocol.turn import TurnStartParams
from kode_sidecar.core.settings import load_settings
from kode_sidecar.errors import KodeError
from kode_sidecar.ide_chat import Conversations
from kode_sidecar.servers.boot.http_library import import_http_client
from tests.support.disk_faults import DiskFaults
from tests.support.life_story import Life

Json = dict[str, Any]
TRIES = 8  # a fault of the system's may meet each of the threads that open files once
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, ctypes.c_ulong(-1)


async def play(job: Json, report: Any) -> None:
    """The scripted session: what was acknowledged is told at once."""
    conversations = Conversations(load_settings(os.environ), [Path(job["project"])])
    try:
        if "life" in job:
            life = Life(conversations, Path(job["project"]), report)
            if job["life"] == "live":
                return await life.live()
            await life.look(job["session"], job["text"])
        session_id = job.get("session") or await create(conversations)
        report({"created": session_id})
        session = await opened(conversations, session_id)
        report(read_at_last(lambda: snapshot(session)))
        for prompt in job["prompts"]:
            if not await say(conversations, session, prompt, report):
                limit_files(None)  # somebody made room
    finally:
        await conversations.close()


async def create(conversations: Conversations) -> str:
    try:
        return (await conversations.sessions.create(SessionNewParams())).session_id
    except KodeError:  # the fault is over: there is space again
        return (await conversations.sessions.create(SessionNewParams())).session_id


async def opened(conversations: Conversations, session_id: str) -> Any:
    for _ in range(TRIES - 1):
        try:
            return await conversations.sessions.open(session_id)
        except KodeError:
            continue
    return await conversations.sessions.open(session_id)


def read_at_last(read: Callable[[], Json]) -> Json:
    """What a disk tells that refuses this thread once or a few times; the error is a typed one."""
    for _ in range(TRIES - 1):
        with suppress(KodeError):
            return read()
    return read()


async def say(conversations: Conversations, session: Any, prompt: str, report: Any) -> bool:
    """Whether the turn came to its own end."""
    params = TurnStartParams(session_id=session.id, input=(TextBlock(text=prompt),))
    try:
        started, release = await session.start_turn(params)
    except KodeError as error:
        report({"refused": prompt, "code": error.code})
        while session.active_turn_id is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)  # it was cancelled and ends by itself
        return False
    report({"accepted": prompt})
    release()
    end = await conversations.editor.turn_end(started.turn_id)
    report({"ended": prompt, "reason": end.stop_reason})
    return end.stop_reason == "end_turn"


def limit_files(limit: int | None) -> None:
    """No file of this process grows beyond it; None: as far as it can."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if limit is None else limit, hard))


def snapshot(session: Any) -> Json:
    return {
        "messages": msgspec.to_builtins(session.conversation.messages),
        "head": session.conversation.head,
        "active": list(session.stream.history.turns),
        "seq": session.stream.seq,
    }


def attach(strace: Sequence[str], held: int) -> None:
    """Let every later call of this process go through strace; it keeps `held` open to its end."""
    # Where only ancestors may look into a process, it says itself that others may.
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
    tracer = subprocess.Popen([*strace, "-p", str(os.getpid())], pass_fds=(held,))
    while "TracerPid:\t0\n" in Path("/proc/self/status").read_text():
        assert tracer.poll() is None, "strace could not be attached"
    # Even a signal that is ignored stops who is traced, until strace lets it go on: it has begun.
    os.kill(os.getpid(), signal.SIGURG)


def run_forked(job: Json) -> Json:
    """Play it in a child of its own; the child's word survives it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            os.environ |= job["environment"]
            folder = os.environ["KODE_HOME"]
            faults = DiskFaults(os.path.join(folder, "conversations"), job["at"], job["kind"])
            raw_write = os.write
            faults.install()

            def report(fact: Json) -> None:
                raw_write(writing, json.dumps(fact).encode() + b"\n")

            limit_files(job.get("file_limit"))
            if "strace" in job:
                attach(job["strace"], writing)
            asyncio.run(play(job, report))
            report({"operations": faults.count})
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        reported = [json.loads(line) for line in pipe.read().splitlines()]
    _, status = os.waitpid(child, 0)
    return {"told": reported, "exit": os.waitstatus_to_exitcode(status)}


def main() -> None:
    import_http_client()
    for line in sys.stdin:
        print(json.dumps(run_forked(json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
