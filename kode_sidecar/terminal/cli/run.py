"""`kode-sidecar run`: runs one job, shows its progress and returns its exit code."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import msgspec

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.domain.run import RunEvent, RunResult
from kode_sidecar.core.settings import LiveSettings, load_settings
from kode_sidecar.core.text.shown_text import visible
from kode_sidecar.core.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.jobs.run import HeadlessRun, Overrides, RunIds, RunOptions
from kode_sidecar.servers.boot.job_agent import JobAgent
from kode_sidecar.servers.boot.system import System

TEMPLATE = Path(__file__).parent / "template" / "run.yaml"


def write_template(path: Path) -> None:
    """Write a starting configuration to a new file.

    Raises KodeError `Storage` if the file exists or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise KodeError("Storage", f"{path} exists already; name another file.") from None
    except OSError as error:
        raise KodeError("Storage", f"{path} cannot be written: {error.strerror}.") from None


_SHOWN = (
    "step.started",
    "skill.enabled",
    "workspace.imported",
    "workspace.changed",
    "deliverable.checked",
)
_MARKS = {
    "tool.completed": "+",
    "tool.failed": "!",
    "tool.refused": "x",
    "path.refused": "x",
    "error.recorded": "!",
    "command.risk": "!",
}


class RunProgress:
    """Shows the events of a run.

    Without a terminal it writes only whole lines for steps, no growing text.
    """

    def __init__(self, screen: TextIO) -> None:
        self._screen = screen
        self._text = screen.isatty()
        self._in_text = False

    def __call__(self, event: RunEvent | BlockDelta) -> None:
        """Show an event or growing text. If stderr is closed, the job goes on without output."""
        try:
            self._show(event)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._screen.fileno())

    def _show(self, event: RunEvent | BlockDelta) -> None:
        if isinstance(event, BlockDelta):
            if not self._text:
                return
            self._in_text = True
            self._screen.write(visible(event.add, part=True))
        elif event.type in _SHOWN or event.type in _MARKS:
            mark = _MARKS.get(event.type, "!" if event.severity == "warning" else "-")
            start = "\n" if self._in_text else ""
            self._in_text = False
            self._screen.write(f"{start}{mark} {event.summary}\n")
        self._screen.flush()


async def _run(run: RunOptions, env_file: str | None, *, reported: bool) -> RunResult:
    """Do the job; with `reported` its progress goes to stderr."""
    agent = JobAgent(
        LiveSettings(load_settings(os.environ, env_file=env_file)),
        documents=Documents("utf-16"),
        environment=System(),
    )
    try:
        services = agent.run_services()
        agent.attach_model(agent.open_model())
        job = (
            HeadlessRun(run, services, RunProgress(sys.stderr))
            if reported
            else HeadlessRun(run, services)
        )
        with _stopped_by_signals(job.cancelled):
            return await job.run()
    finally:
        await agent.close()


@contextmanager
def _stopped_by_signals(cancelled: asyncio.Event) -> Generator[None, None, None]:
    """Cancel the run on the first SIGINT or SIGTERM; interrupt at once on the second."""
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
    if result.conversation_id:
        lines.append(f"session: {result.conversation_id}")
    lines.append(f"records: {result.sandbox_root}")
    return "\n".join(lines) + "\n"


def field_values(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of `--set FIELD=VALUE`, each parsed as YAML. Raises KodeError."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            value = read_yaml(text).value if equals and name else None
        except YamlProblem as error:
            raise KodeError("ConfigInvalid", f"--set {name}: {error.problem}.") from None
        if not equals or not name:
            raise KodeError("ConfigInvalid", f"--set {word}: write FIELD=VALUE, as in a.b=1.")
        values[name] = value
    return values


def run_command_line(options: argparse.Namespace) -> int:
    """Run the command; return the exit code. Raises KodeError if no run could be started."""
    if options.init is not None:
        write_template(options.init)
        sys.stdout.write(f"wrote {options.init}\n")
        return 0
    if options.config is None or (options.prompt is None and options.prompt_file is None):
        sys.stderr.write(
            "kode-sidecar run: --config and --prompt or --prompt-file say what to do; --init "
            "writes a configuration to begin with\n"
        )
        return 2
    workspace = None if options.workspace is None else os.path.abspath(options.workspace)
    run = RunOptions(
        config=options.config.absolute(),
        prompt=options.prompt_file.absolute() if options.prompt is None else options.prompt,
        sandbox=options.sandbox,
        ids=RunIds(options.session_id, options.task_id, options.run_id),
        overrides=Overrides(
            stream=options.stream,
            max_steps=options.max_steps,
            timeout_seconds=options.timeout,
            model=options.model,
            workspace=workspace,
            fields=field_values(options.set),
        ),
        dry_run=options.dry_run or options.show_prompt,
    )
    reported = not options.json and not options.show_prompt
    result = asyncio.run(_run(run, options.env_file, reported=reported))
    if options.show_prompt and result.status == "pending":
        prompt = Path(result.sandbox_root, "effective-prompt.md")
        sys.stdout.write(prompt.read_text(encoding="utf-8"))
        return 0
    if options.json:
        data: dict[str, Any] = {**msgspec.to_builtins(result), "exit_code": result.exit_code}
        sys.stdout.write(f"{msgspec.json.encode(data).decode()}\n")
    else:
        sys.stdout.write(_summary(result))
    return result.exit_code
