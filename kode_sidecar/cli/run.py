"""`kode-sidecar run`: one run, its progress, its exit code."""

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from kode_sidecar.boot.agent import Agent
from kode_sidecar.boot.system import System
from kode_sidecar.cli.run_progress import Progress
from kode_sidecar.domain.run import RunResult
from kode_sidecar.headless_run import HeadlessRun, RunOptions
from kode_sidecar.ide_chat import NoEditor
from kode_sidecar.protocol.documents import EditorContextParams
from kode_sidecar.settings import load_settings
from kode_sidecar.workspace.documents import Documents


@dataclass(frozen=True)
class RunCommandOptions:
    """The command line of `run`. `json`: the result as JSON; `show_prompt`: nothing but that."""

    run: RunOptions
    json: bool = False
    show_prompt: bool = False
    env_file: str | None = None


def run_job(options: RunCommandOptions) -> int:
    """Run it; the exit code of its result. Raises KodeError when no run could be begun."""
    result = asyncio.run(_run(options))
    if options.show_prompt and result.error is None:
        text = Path(result.sandbox_root, "effective-prompt.md").read_text(encoding="utf-8")
        sys.stdout.write(text)
    elif options.json:
        data: dict[str, Any] = {**msgspec.to_builtins(result), "exit_code": result.exit_code}
        sys.stdout.write(f"{msgspec.json.encode(data).decode()}\n")
    else:
        sys.stdout.write(_summary(result))
    return result.exit_code


async def _run(options: RunCommandOptions) -> RunResult:
    agent = Agent(
        load_settings(os.environ, env_file=options.env_file),
        editor=NoEditor(),
        editor_name="",
        documents=Documents("utf-16"),
        editor_context=EditorContextParams,
        environment=System(),
    )
    try:
        services = agent.run_services()
        agent.attach_model(agent.open_model())
        progress = Progress(sys.stderr, shown=sys.stderr.isatty() and not options.json)
        run = HeadlessRun(options.run, services, progress)
        with _stopped_by_signals(run.cancelled):
            return await run.run()
    finally:
        await agent.close()


@contextmanager
def _stopped_by_signals(cancelled: asyncio.Event) -> Generator[None, None, None]:
    """Ctrl-C and a scheduler's request to end cancel the run; the second one does not wait."""
    loop = asyncio.get_running_loop()

    def stop(number: int, frame: FrameType | None) -> None:
        if cancelled.is_set():
            signal.default_int_handler(number, frame)
        loop.call_soon_threadsafe(cancelled.set)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summary(result: RunResult) -> str:
    judged = f" ({result.governance})" if result.governance else ""
    lines = [f"{result.status}{judged}: run {result.run_id}"]
    if result.error is not None:
        lines.append(f"{result.error.code}: {result.error.message}")
    if result.final_text:
        lines += ["", result.final_text, ""]
    lines.append(f"records: {result.sandbox_root}")
    return "\n".join(lines) + "\n"
