"""Skills and memory: what the model knows beyond a conversation, set up from the settings."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kode_sidecar.agent.context.memory import (
    RECALLED,
    Memory,
    MemoryNote,
    memory_note,
    project_scope,
    recalled,
)
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.skills import (
    SKILL_FILE,
    SkillLibrary,
    SkillProblem,
    SkillSource,
)
from kode_sidecar.agent.tools.knowledge import About
from kode_sidecar.core.domain.memory import USER_SCOPE
from kode_sidecar.core.protocol import process as wire
from kode_sidecar.core.settings import LiveSettings, Settings
from kode_sidecar.infrastructure.providers.memory_http import HttpMemory, MemoryHost
from kode_sidecar.infrastructure.records.memory_store import MemoryStore
from kode_sidecar.infrastructure.workspace.paths import Root
from kode_sidecar.servers.boot.http_library import open_memory_http
from kode_sidecar.servers.boot.skill_sources import skill_sources
from kode_sidecar.servers.boot.system import Environment

if TYPE_CHECKING:
    from kode_sidecar.agent.verbs.library import VerbFolder, VerbLibrary, VerbTable
    from kode_sidecar.agent.verbs.verb_file import Verb

_MAX_QUERY_CHARS = 2_000


class Knowledge:
    """Skills and memory of one agent. `roots` are the open folders, `live`: are they trusted?

    `memory` is None if it is off.
    """

    def __init__(
        self,
        live: LiveSettings,
        prompts: PromptFiles,
        roots: Callable[[], Sequence[Root]],
        environment: Environment,
    ) -> None:
        self._settings = settings = live.loaded.settings
        self._trusted = live.trusted
        self._prompts = prompts
        self._roots = roots
        self._sources_of: tuple[Sequence[Path], bool] = (), False
        self._home = environment.home
        self._sources = skill_sources(settings, self._home, (), trusted=False)
        self.skills = SkillLibrary(self._skill_sources)
        self._verbs: VerbLibrary | None = None
        new_id, now = environment.new_id, environment.clock.timestamp
        self._store = MemoryStore(settings.storage_root, partial(new_id, "memory"), now)
        self.open_http = environment.hosts(lambda: open_memory_http)
        self._service = HttpMemory(_memory_host(settings), self.open_http)
        self.memory: Memory | None = {
            "disabled": None,
            "candidate": self._store,
            "external": self._service,
        }[settings.memory_mode]

    def memory_scope(self, about: About) -> str:
        """Return the scope of a memory: the first open folder for projects, else the user."""
        roots = self._roots()
        return project_scope(roots[0].real) if about == "project" and roots else USER_SCOPE

    async def recall(self, prompt: str, reported: Collection[str]) -> MemoryNote | None:
        """Return the memories that fit a prompt, from the open folders and the user's own.

        Raises KodeError as `Memory.recall` does.
        """
        if self.memory is None:
            return None
        scopes = [*(project_scope(root.real) for root in self._roots()), USER_SCOPE]
        query = prompt[:_MAX_QUERY_CHARS]
        found = await recalled(self.memory, query, scopes, RECALLED, reported)
        return memory_note(self._prompts, found)

    def _skill_sources(self) -> Sequence[SkillSource]:
        """Return the skill sources, cached: every turn asks, and the folders seldom change."""
        roots = [root.path for root in self._roots()]
        asked = roots, self._trusted()
        if asked != self._sources_of:
            self._sources = skill_sources(self._settings, self._home, roots, trusted=asked[1])
            self._sources_of = asked
        return self._sources

    def _verb_folders(self) -> "Sequence[VerbFolder]":
        from kode_sidecar.servers.boot.verb_sources import verb_folders  # noqa: PLC0415

        roots = [root.path for root in self._roots()] if self._trusted() else []
        return verb_folders(self._settings, self._home, roots)

    async def list_skills(self) -> wire.SkillsListResult:
        """Answer `kode/skills/list`."""
        catalog = self.skills.catalog()
        return wire.SkillsListResult(
            skills=tuple(
                wire.SkillView(
                    id=skill.id,
                    name=skill.about.name,
                    description=skill.about.description,
                    tags=skill.about.tags,
                    permissions=skill.about.permissions,
                    source=skill.kind,
                    uri=(skill.folder / SKILL_FILE).as_uri(),
                )
                for skill in catalog.skills
            ),
            problems=tuple(map(_problem_view, catalog.problems)),
            project_trusted=self._trusted(),
        )

    def verbs(self) -> "VerbTable":
        """Return the verbs of now; blocks. Raises KodeError for broken built-in prompts."""
        # Imported late: not everybody calls a verb, and no job does.
        from kode_sidecar.agent.verbs.library import VerbLibrary  # noqa: PLC0415

        if self._verbs is None:
            self._verbs = VerbLibrary(self._prompts, self._verb_folders)
        return self._verbs.table()

    async def all_verbs(self) -> "Sequence[Verb]":
        """Return the verbs of now. Raises KodeError for broken built-in prompts."""
        return (await asyncio.to_thread(self.verbs)).verbs

    async def list_verbs(self) -> wire.VerbsListResult:
        """Answer `kode/verbs/list`. Raises KodeError `ConfigInvalid`."""
        return await asyncio.to_thread(self.verbs_now)

    def verbs_now(self) -> wire.VerbsListResult:
        """Return verbs and skills of now; blocks. Raises KodeError for broken built-in prompts."""
        from kode_sidecar.servers.boot.verb_sources import verbs_view  # noqa: PLC0415

        return verbs_view(self.verbs(), self.skills.catalog(), trusted=self._trusted())

    async def list_memory(self, params: wire.MemoryListParams) -> wire.MemoryListResult:
        """Answer `kode/memory/list`. Raises KodeError `Storage`."""
        return wire.MemoryListResult(
            mode=self._settings.memory_mode,
            memories=tuple(
                wire.MemoryView(
                    memory_id=item.id,
                    content=item.content,
                    scope=item.scope,
                    tags=item.tags,
                    state=item.state,
                    created_at=item.created_at,
                )
                for item in await self._store.items(params.state)
            ),
        )

    async def decide_memory(self, params: wire.MemoryDecideParams) -> wire.Empty:
        """Answer `kode/memory/decide` once saved. Raises KodeError `MemoryNotFound`, `Storage`."""
        decided = {decision.memory_id: decision.action for decision in params.decisions}
        accepted = [memory_id for memory_id, action in decided.items() if action == "accept"]
        rejected = [memory_id for memory_id, action in decided.items() if action == "reject"]
        await self._store.decide(accepted, rejected)
        return wire.Empty()

    async def close(self) -> None:
        """Close connections."""
        await self._service.aclose()


def _problem_view(problem: SkillProblem) -> wire.SkillProblemView:
    details = problem.error.details or {}
    line, field = details.get("line"), details.get("field")
    return wire.SkillProblemView(
        source=problem.kind,
        file=problem.file,
        message=problem.reported,
        line=line if isinstance(line, int) else None,
        field=field if isinstance(field, str) else None,
    )


def _memory_host(settings: Settings) -> MemoryHost:
    return MemoryHost(
        settings.memory_url,
        settings.memory_key,
        timeout=settings.memory_timeout,
        proxy=settings.proxy,
    )
