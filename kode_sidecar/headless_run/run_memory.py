"""What a run is reminded of, and where its notes go (B10)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kode_sidecar.context.memory import Memory, memory_note, recalled
from kode_sidecar.context.prompt_files import PromptFiles
from kode_sidecar.domain.memory import USER_SCOPE
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.run_config import ExternalMemoryPart, MemoryPart
from kode_sidecar.headless_run.sandbox import ARCHIVE, Sandbox
from kode_sidecar.kernel.contracts import Clock, NewId, Tool
from kode_sidecar.providers.memory_http import MemoryHost
from kode_sidecar.records.memory_store import CandidateMemory
from kode_sidecar.tools.knowledge import write_memory_tool

CANDIDATES = f"{ARCHIVE}/candidate-memory.jsonl"

OpenMemory = Callable[[MemoryHost], Memory]
"""Makes the memory of a service; nothing is asked of it yet."""


@dataclass(frozen=True)
class RunMemory:
    """The memory of one run."""

    memory: Memory
    config: MemoryPart

    async def note(self, prompts: PromptFiles, query: str) -> str:
        """What the prompt tells of what fits `query`. Raises KodeError as `Memory.recall` does."""
        scopes = (self.config.scope, USER_SCOPE)
        items = await recalled(self.memory, query, scopes, self.config.recall_limit)
        note = memory_note(prompts, items)
        return "" if note is None else note.text

    def tool(self) -> Tool:
        """`write_memory`."""
        scope = self.config.scope
        return write_memory_tool(
            self.memory, lambda about: scope if about == "project" else USER_SCOPE
        )


def open_memory(
    config: MemoryPart,
    sandbox: Sandbox,
    environ: Mapping[str, str],
    open_external: OpenMemory,
    clock: Clock,
    new_id: NewId,
) -> RunMemory | None:
    """The memory that the configuration asks for; None where it is off.

    Raises KodeError `ConfigInvalid` where the key of a service is missing.
    """
    if config.write_mode == "disabled":
        return None
    if config.write_mode == "external" and config.external is not None:
        return RunMemory(open_external(_host(config.external, environ)), config)
    path = sandbox.root / CANDIDATES
    return RunMemory(CandidateMemory(path, lambda: new_id("memory"), clock.timestamp), config)


def _host(config: ExternalMemoryPart, environ: Mapping[str, str]) -> MemoryHost:
    key = "" if config.token_env is None else environ.get(config.token_env, "").strip()
    if config.token_env is not None and not key:
        text = f"`memory.external.token_env`: the variable {config.token_env} is not set."
        raise KodeError("ConfigInvalid", text, details={"field": "memory.external.token_env"})
    return MemoryHost(
        config.url,
        key,
        config.timeout_seconds,
        url_name="memory.external.url",
        key_name=config.token_env or "memory.external.token_env",
    )
