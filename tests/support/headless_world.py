"""A headless run without a process: real files, real tools, a model that the test scripts."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kode_sidecar.agent.context.budget import BudgetedModel
from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.event_log import SessionDefaults
from kode_sidecar.agent.sessions import SessionFolders
from kode_sidecar.agent.turns import Budgets
from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.domain.budget import Prices
from kode_sidecar.core.domain.run import RunEvent, RunResult
from kode_sidecar.core.kernel.contracts import ModelClient
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.memory_http import HttpMemory, MemoryHost
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.registry import Registry
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.json_log import JsonLog, LogFiles, Redaction
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.jobs.run import (
    HeadlessRun,
    Overrides,
    RunIds,
    RunOptions,
    RunServices,
)
from kode_sidecar.servers.boot.system import RandomIds, SystemClock
from tests.support.scripted_model import ScriptedModel
from tests.support.sidecar import HANG_SECONDS

Json = dict[str, Any]

KEY = "sk-test-0123456789abcdef"
HEAD = """\
kgent: {schema_version: 1}
profile: {id: tester, role: You test things.}
"""
SCRIPTED = f"{HEAD}runtime: {{engine: scripted, script: script.yaml}}\n"


class HeadlessWorld:
    """A folder with a job in it, and the services to run it. `bugs` are what was reported."""

    def __init__(
        self,
        folder: Path,
        model: ModelClient | None = None,
        base_url: str = "http://127.0.0.1:9/v1",
    ) -> None:
        self.folder = folder
        self.registry = Registry([ProviderConfig(base_url, KEY)])
        self.bugs: list[BaseException] = []
        self.seen: list[RunEvent | BlockDelta] = []
        clock, new_id = SystemClock(), RandomIds()
        self.services = RunServices(
            storage_root=folder / "home",
            clock=clock,
            new_id=new_id,
            redaction=Redaction([KEY]),
            prompts=PromptFiles(find_prompts(), "en"),
            environ={"MEMORY_TOKEN": KEY},
            ripgrep=Ripgrep(find_ripgrep()),
            model=model or ScriptedModel(),
            open_sessions=self._open_sessions,
            budgets=self._budgets(model or ScriptedModel()),
            log=JsonLog(LogFiles(folder / "home" / "logs"), clock.timestamp, Redaction([KEY])),
            provider=lambda _: "",
            limit_instruction="Sum up.",
            traits=lambda _: ModelTraits(window=None, returns_thinking=True),
            open_memory=self.open_memory,
            target=lambda name: self.registry.targets(name)[0],
            report_bug=self._bug,
        )

    def open_memory(self, host: MemoryHost) -> HttpMemory:
        """The memory of a service on the loopback."""
        return HttpMemory(host, HttpClient)

    def write(self, config: str, steps: list[Json] | None = None) -> None:
        """The job: its configuration, and what the scripted engine plays."""
        (self.folder / "job.yaml").write_text(config, encoding="utf-8")
        script = json.dumps({"steps": steps or []})
        (self.folder / "script.yaml").write_text(script, encoding="utf-8")

    def make(
        self,
        prompt: str | Path = "Do it.",
        watch: Callable[[RunEvent | BlockDelta], None] | None = None,
        **options: Any,
    ) -> HeadlessRun:
        """A run of the job, not yet started."""
        ids = RunIds(**{name: options.pop(name) for name in list(options) if name.endswith("_id")})
        names = Overrides.__struct_fields__
        overrides = Overrides(**{n: options.pop(n) for n in list(options) if n in names})
        run_options = RunOptions(
            self.folder / "job.yaml", prompt, ids=ids, overrides=overrides, **options
        )
        return HeadlessRun(run_options, self.services, watch or self.seen.append)

    async def run(self, *args: Any, **options: Any) -> RunResult:
        """A run from its beginning to its end."""
        async with asyncio.timeout(HANG_SECONDS):
            return await self.make(*args, **options).run()

    def answer_with(self, model: ModelClient) -> None:
        """Let the native engine ask this model."""
        self.services = replace(self.services, model=model, budgets=self._budgets(model))

    def set_environ(self, environ: Mapping[str, str]) -> None:
        """What the process has in its environment."""
        self.services = replace(self.services, environ=environ)

    def _budgets(self, model: ModelClient) -> Budgets:
        """What a million tokens cost here: one, of any kind."""
        prices = Prices("CNY", 1.0, 1.0, 1.0, 1.0)
        return Budgets(BudgetedModel(model, lambda _: prices, _nothing_today), None, str)

    def _open_sessions(self, saver: Saver) -> SessionFolders:
        store = ConversationStore(self.services.storage_root, saver)
        defaults = SessionDefaults("ide-helper", "review", "ide-chat", 20)
        return SessionFolders(
            store, saver, self.services.clock, self.services.new_id, defaults, tuple
        )

    def _bug(self, where: str, error: BaseException) -> None:
        self.bugs.append(error)


class RunFiles:
    """What a run left behind."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def run(self) -> Json:
        return json.loads(self.text("run.json"))

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def lines(self, name: str) -> list[Json]:
        """The records of a log, none where there is no such file."""
        path = self.folder / name
        return (
            [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        )

    @property
    def events(self) -> list[Json]:
        return self.lines("events.jsonl")

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def all_text(self) -> str:
        """Everything that was written, except what the tools wrote into the sandbox's zones."""
        files = [
            path
            for path in self.folder.rglob("*")
            if path.is_file() and path.parent.name not in ("workspace", "deliverables")
        ]
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


async def _nothing_today(_currency: str) -> float:
    return 0.0


def call(tool: str, **arguments: Any) -> Json:
    """A call of the scripted engine."""
    return {"tool": tool, "arguments": arguments}
