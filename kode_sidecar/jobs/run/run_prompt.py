"""The prompt of a run: role, rules, skill index, memory, sandbox rules, in this order (B3).

Equal parts give equal bytes, so that hosts can cache prompts by prefix and records can be compared.
This module also opens the skills and the memory of a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kode_sidecar.agent.context.memory import Memory, memory_note, recalled
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.skills import SkillCatalog, SkillLibrary, SkillSource, user_skills
from kode_sidecar.agent.tools.knowledge import write_memory_tool
from kode_sidecar.core.domain.memory import USER_SCOPE
from kode_sidecar.core.kernel.contracts import Tool
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.memory_http import MemoryHost
from kode_sidecar.infrastructure.records.memory_store import CandidateMemory
from kode_sidecar.jobs.run.contracts import RunServices
from kode_sidecar.jobs.run.run_config import (
    DeliverablePart,
    ExternalMemoryPart,
    MemoryPart,
    ProfilePart,
    RunConfig,
    SkillsPart,
)
from kode_sidecar.jobs.run.sandbox import ARCHIVE, Sandbox, source_path

CANDIDATES = f"{ARCHIVE}/candidate-memory.jsonl"


def compose_prompt(
    prompts: PromptFiles, config: RunConfig, skill_index: str = "", memory: str = ""
) -> str:
    """Return the system prompt; empty parts are left out.

    Raises KodeError `ConfigInvalid` if a prompt file is missing.
    """
    sections = [config.profile.role.strip()]
    if config.profile.rules:
        rules = "\n".join(f"- {_item(rule)}" for rule in config.profile.rules)
        sections.append(prompts.read("run_rules", {"rules": rules}))
    sections += [part for part in (skill_index, memory) if part]
    wanted = "\n".join(_deliverable(prompts, one) for one in config.deliverables)
    sections.append(
        prompts.read("run_sandbox", {"deliverables": wanted or prompts.read("run_no_deliverables")})
    )
    return "\n\n".join(sections) + "\n"


def in_language_of(profile: ProfilePart, services: RunServices) -> RunServices:
    """Return the services with their prompts in the language of the profile."""
    chinese = any("\u4e00" <= one <= "\u9fff" for one in profile.role)
    prompts = services.prompts.in_locale(profile.language or ("zh" if chinese else "en"))
    if prompts is services.prompts:
        return services
    return replace(services, prompts=prompts, limit_instruction=prompts.read("tool_limit"))


def _deliverable(prompts: PromptFiles, wanted: DeliverablePart) -> str:
    name = "run_required" if wanted.required else "run_optional"
    about = f": {_item(wanted.description)}" if wanted.description.strip() else ""
    return f"- `{wanted.path}` ({prompts.read(name)}){about}"


def _item(text: str) -> str:
    """Return a text as a list item, with its later lines indented."""
    return "\n  ".join(text.strip().splitlines())


def enabled_skills(config: SkillsPart, base: Path, storage_root: Path) -> SkillCatalog:
    """Return the enabled skills (B8), from the configured folders, then the user's own.

    `base` is the folder of the configuration. Raises KodeError `PathOutsideRoots` for an unsafe
    folder, `SkillNotFound` and `SkillInvalid` for an enabled skill.
    """
    sources = [SkillSource("config", source_path(folder, base)) for folder in config.folders]
    sources.append(user_skills(storage_root))
    return SkillLibrary(lambda: sources).catalog().only(config.enabled)


@dataclass(frozen=True)
class RunMemory:
    """The memory of one run."""

    memory: Memory
    config: MemoryPart

    async def note(self, prompts: PromptFiles, query: str) -> str:
        """Return the prompt's text on memories that fit `query`. Raises as `Memory.recall` does."""
        scopes = (self.config.scope, USER_SCOPE)
        items = await recalled(self.memory, query, scopes, self.config.recall_limit)
        note = memory_note(prompts, items)
        return "" if note is None else note.text

    def tool(self) -> Tool:
        """Make `write_memory`."""
        scope = self.config.scope
        return write_memory_tool(
            self.memory, lambda about: scope if about == "project" else USER_SCOPE
        )


def open_memory(config: MemoryPart, sandbox: Sandbox, services: RunServices) -> RunMemory | None:
    """Open the configured memory (B10); None if it is off.

    Raises KodeError `ConfigInvalid` if the key of a service is missing.
    """
    if config.write_mode == "disabled":
        return None
    if config.write_mode == "external" and config.external is not None:
        return RunMemory(services.open_memory(_host(config.external, services.environ)), config)
    path, new_id = sandbox.root / CANDIDATES, services.new_id
    memory = CandidateMemory(path, lambda: new_id("memory"), services.clock.timestamp)
    return RunMemory(memory, config)


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
