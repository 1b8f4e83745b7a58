"""The options of a run, and what all runs share. Any package may import this module."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.agent.context.builder import Traits
from kode_sidecar.agent.context.memory import Memory
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.sessions import SessionFolders
from kode_sidecar.agent.turns import Budgets, FindHooks, LearnedRates, NoHooks
from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.domain.run import RunEvent
from kode_sidecar.core.kernel.contracts import Clock, ModelClient, NewId, Tool
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.memory_http import MemoryHost
from kode_sidecar.infrastructure.providers.registry import Target
from kode_sidecar.infrastructure.records.json_log import JsonLog, Redaction
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.workspace.paths import screened
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.jobs.run.artifacts import Artifacts
from kode_sidecar.jobs.run.run_config import Overrides, RunConfig
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.sandbox import Sandbox

MAX_ID_CHARS = 128
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Watch = Callable[[RunEvent | BlockDelta], None]
"""Called on the event loop with each event after it is on disk; must not raise.

If `runtime.stream` is on, it also gets the text of an answer as it grows.
"""


@dataclass(frozen=True)
class RunIds:
    """The ids that the caller chose, empty for new ones. Each may become a folder's name."""

    session_id: str = ""
    task_id: str = ""
    run_id: str = ""

    def check(self) -> None:
        """Raise KodeError `PathOutsideRoots` for an id that is unsafe as a folder's name."""
        for name in ("session_id", "task_id", "run_id"):
            text: str = getattr(self, name)
            if text and not is_plain_id(text):
                raise KodeError(
                    "PathOutsideRoots",
                    f"{name} is refused: use letters, digits, `.`, `_` and `-`, at most "
                    f"{MAX_ID_CHARS}, beginning with a letter or digit, and no device's name.",
                )


@dataclass(frozen=True)
class RunOptions:
    """The options of one run. `prompt` is the task, or the file that holds it.

    `sandbox` is the folder of the run; None means one below the state folder. A `dry_run` ends
    before the engine starts.
    """

    config: Path
    prompt: str | Path
    sandbox: Path | None = None
    ids: RunIds = field(default_factory=RunIds)
    overrides: Overrides = field(default_factory=Overrides)
    dry_run: bool = False


def is_plain_id(text: str) -> bool:
    """True if an id can be the name of a folder on every system."""
    if len(text) > MAX_ID_CHARS or not _ID.fullmatch(text):
        return False
    try:
        return screened(text) == ("", (text,))
    except KodeError:
        return False


RunServers = tuple[Tool, Callable[[], Awaitable[None]]]
"""The MCP servers of one run: the tool that finds and calls their tools, and what closes them."""


def _no_servers(_names: Sequence[str]) -> RunServers:
    text = "`tools.servers`: there are no MCP servers here."
    raise KodeError("ConfigInvalid", text, details={"field": "tools.servers"})


def _no_hooks(_workspace: Workspace) -> FindHooks:
    return lambda _scope: NoHooks()


@dataclass(frozen=True)
class RunServices:
    """What all runs of a process share.

    `environ` are the user's variables and the process's own. `target` returns the model behind a
    name, for engines that ask it themselves. `limit_instruction` is sent at the step limit.
    `open_sessions` opens the sessions of runs, saved by a saver that the run closes; `budgets` pay
    for their requests. `open_memory` makes the memory of a service without connecting to it.
    `report_bug(where, error)` gets unexpected exceptions. `open_servers` makes the MCP servers that
    a run names without starting them, `hooks` finds the user's hooks for the folders of a run.
    """

    storage_root: Path
    clock: Clock
    new_id: NewId
    redaction: Redaction
    prompts: PromptFiles
    environ: Mapping[str, str]
    ripgrep: Ripgrep
    model: ModelClient
    open_sessions: Callable[[Saver], SessionFolders]
    budgets: Budgets
    log: JsonLog
    provider: Callable[[str], str]
    target: Callable[[str], Target]
    traits: Traits
    limit_instruction: str
    open_memory: Callable[[MemoryHost], Memory]
    report_bug: Callable[[str, BaseException], None]
    rates: LearnedRates = field(default_factory=LearnedRates)
    silence_seconds: float = 10.0
    file_encoding: str | None = None
    open_servers: Callable[[Sequence[str]], RunServers] = _no_servers
    hooks: Callable[[Workspace], FindHooks] = _no_hooks


@dataclass(frozen=True)
class RunScope:
    """What the tools of one run act on.

    `workspace` shows the readable zones of the sandbox to the tools that read.
    """

    config: RunConfig
    sandbox: Sandbox
    workspace: Workspace
    log: EventLog
    artifacts: Artifacts
