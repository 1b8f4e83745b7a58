"""`kode-sidecar run`: what its command line asks for, one run, its progress, its exit code."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import msgspec

from kode_sidecar.boot.agent import Agent
from kode_sidecar.boot.system import System
from kode_sidecar.domain.agent_event import BlockDelta
from kode_sidecar.domain.run import RunEvent, RunResult
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run import HeadlessRun, Overrides, RunIds, RunOptions
from kode_sidecar.ide_chat import NoEditor
from kode_sidecar.protocol.documents import EditorContextParams
from kode_sidecar.settings import LiveSettings, load_settings
from kode_sidecar.text.shown_text import visible
from kode_sidecar.text.yaml_text import YamlProblem, read_yaml
from kode_sidecar.workspace.documents import Documents

TEMPLATE = """\
# A job for `kode-sidecar run --config THIS_FILE --prompt "what to do"`.
# What is commented out shows a default, or an example; to change it take the "# " away.

kgent:
  schema_version: 1              # the form of this file

profile:
  id: my-job                     # stable: records and schedulers know the job by it
  role: |
    You review code. You read before you judge, and you say where each finding is.
  rules:                         # each one sentence or more
    - Report only what you have read, with path and line.
#   language: null               # zh | en, of the prompts around the role; null: the role's

# model:
#   name: ide-chat               # a logical model, or an id of the service
#   temperature: 0.3             # null leaves it to the provider
#   top_p: 0.95
#   max_tokens: null

# A project to work on. It is copied into the sandbox; the original is only read.
# workspace:
#   import: .                    # relative to this file, downwards; or absolute
#   exclude: []                  # patterns as in .gitignore
#   include: []                  # files to copy although ignored, or with credentials in them
#   git: false                   # bring the history, so that commands such as git diff work
#   max_bytes: 500000000

deliverables:                    # the run is judged by them
  - path: deliverables/report.md # required ones lie under deliverables/
    description: The findings, the most important first.
#     required: true
#     content_type: text/markdown
#     min_bytes: 1

# skills:
#   enabled: []                  # ids; each must be found
#   folders: []                  # where to look first; then the user's own folder of skills
#   max_bytes: 40000             # what one skill may bring, references included

# tools:
#   offer: null                  # names; null offers all that are on
#   servers: []                  # ids of MCP servers in your own config.yaml; no others start
#   permissions: []              # - {tool: write_artifact, path: deliverables/**, effect: deny}
#   shell:                       # run_command: no shell, argv only
#     enabled: false
#     allow: []                  # beginnings of commands: - [git, diff]
#     environment: []            # names of variables that commands may see
#     timeout_seconds: 60
#     max_output_bytes: 200000
#   filesystem:
#     delete: false

# memory:
#   write_mode: candidate        # disabled | candidate (archive/candidate-memory.jsonl) | external
#   scope: default
#   recall_limit: 5
#   external:                    # needed for `external`
#     url: https://memory.example/v1
#     token_env: MEMORY_TOKEN    # the variable that holds the key; never the key itself
#     timeout_seconds: 10

# runtime:
#   stream: true
#   max_steps: 30                # answers with tool calls
#   timeout_seconds: 900
#   budget: null                 # such as 0.5CNY: the most that the run may cost
#   engine: native               # native | scripted | pydantic-ai
#   script: null                 # what the scripted engine plays
"""


def write_template(path: Path) -> None:
    """Write it to a new file. Raises KodeError `Storage` where there is one, or none can be."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(TEMPLATE)
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


class Progress:
    """Takes the events of a run. Without `shown` it says nothing, without `text` no answers.

    Where nobody looks a line of a log is whole, so it tells steps and not letters.
    """

    def __init__(self, screen: TextIO, *, shown: bool, text: bool = True) -> None:
        self._screen = screen
        self._shown = shown
        self._text = text
        self._in_text = False

    def __call__(self, event: RunEvent | BlockDelta) -> None:
        """Show an event, or text that grows."""
        if not self._shown:
            return
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
    if options.show_prompt and result.status == "pending":
        text = Path(result.sandbox_root, "effective-prompt.md").read_text(encoding="utf-8")
        sys.stdout.write(text)
        return 0
    if options.json:
        data: dict[str, Any] = {**msgspec.to_builtins(result), "exit_code": result.exit_code}
        sys.stdout.write(f"{msgspec.json.encode(data).decode()}\n")
    else:
        sys.stdout.write(_summary(result))
    return result.exit_code


async def _run(options: RunCommandOptions) -> RunResult:
    agent = Agent(
        LiveSettings(load_settings(os.environ, env_file=options.env_file)),
        editor=NoEditor(),
        editor_name="",
        documents=Documents("utf-16"),
        editor_context=EditorContextParams,
        environment=System(),
    )
    try:
        services = agent.run_services()
        agent.attach_model(agent.open_model())
        shown = not options.json and not options.show_prompt
        progress = Progress(sys.stderr, shown=shown, text=sys.stderr.isatty())
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


def field_values(words: Sequence[str]) -> dict[str, Any]:
    """Return what `--set FIELD=VALUE` says, each value read as YAML. Raises KodeError."""
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
    """Run the command; the exit code. Raises KodeError when no run could be begun."""
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
    workspace = None if options.workspace is None else str(options.workspace.absolute())
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
    return run_job(RunCommandOptions(run, options.json, options.show_prompt, options.env_file))
