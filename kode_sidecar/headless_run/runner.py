"""A run from its first step to its verdict (B13). Whatever happens, `run.json` tells it."""

import asyncio
from collections.abc import Sequence

from kode_sidecar.context.skills import SkillCatalog, skill_index
from kode_sidecar.domain.message import Blob
from kode_sidecar.domain.run import RunEvent, RunRecord, RunResult
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import EngineResult, RunScope, TextGrew
from kode_sidecar.headless_run.deliverables import (
    CheckedDeliverable,
    check_deliverables,
    delivered_files,
    missing_error,
)
from kode_sidecar.headless_run.engine_report import EngineReport
from kode_sidecar.headless_run.engines import make_engine
from kode_sidecar.headless_run.fingerprint import config_fingerprint, recorded_config
from kode_sidecar.headless_run.governance import Verdict, on_deliverables
from kode_sidecar.headless_run.manifests import Artifacts, write_sandbox_manifest
from kode_sidecar.headless_run.project import deliver_changes, import_project
from kode_sidecar.headless_run.prompt_composition import PromptParts, compose_prompt
from kode_sidecar.headless_run.recorded_tools import RecordedTools
from kode_sidecar.headless_run.run_config import RunConfig, read_run_config, read_text
from kode_sidecar.headless_run.run_course import (
    RunCourse,
    RunOver,
    Watch,
    cancelled_verdict,
)
from kode_sidecar.headless_run.run_memory import CANDIDATES, RunMemory, open_memory
from kode_sidecar.headless_run.run_options import RunOptions
from kode_sidecar.headless_run.run_services import RunServices
from kode_sidecar.headless_run.run_skills import enabled_skills
from kode_sidecar.headless_run.sandbox import make_sandbox
from kode_sidecar.headless_run.toolset import Toolset, ToolSources, run_toolset
from kode_sidecar.kernel.contracts import Tool
from kode_sidecar.text.yaml_text import write_yaml
from kode_sidecar.tools.knowledge import load_skill_tool
from kode_sidecar.workspace.project_copy import ProjectCopy
from kode_sidecar.workspace.workspace import Workspace


def _nobody(_event: RunEvent | TextGrew) -> None:
    """Nobody watches."""


class HeadlessRun:
    """One run; runs once. Making it makes the run's folder and its `run.json`.

    Setting `cancelled` ends it soon. Raises KodeError `ReadOnly` when there is a run in that
    folder already, `Storage`.
    """

    def __init__(self, options: RunOptions, services: RunServices, watch: Watch = _nobody) -> None:
        self._options = options
        self._services = services
        self._watch = watch
        self._course = RunCourse(options, services, watch)
        self._log = self._course.log
        self._records = self._course.records
        self._transcript = self._course.transcript
        self.cancelled = self._course.cancelled

    @property
    def record(self) -> RunRecord:
        """The run as it stands."""
        return self._course.record

    async def run(self) -> RunResult:
        """Do the steps in their order; how it ended.

        Raises KodeError `Storage` when not even the end can be recorded. When its task is
        cancelled the run ends as cancelled, and asyncio.CancelledError is raised.
        """
        try:
            try:
                verdict = await self._do_steps()
            except RunOver as over:
                verdict = over.verdict
            except asyncio.CancelledError:
                await self._course.end(cancelled_verdict())
                raise
            return await self._course.end(verdict)
        finally:
            self._records.close()

    async def _do_steps(self) -> Verdict:
        options, services, log = self._options, self._services, self._log
        base = options.config.parent
        self._course.change(status="running", started_at=services.clock.timestamp())
        await self._course.save()
        log.event("run.started", f"Run {self.record.run_id} started", actor="user")
        async with self._course.step("config"):
            config, prompt = self._read_job()
        async with self._course.step("ids"):
            options.ids.check()
        async with self._course.step("sandbox"):
            scope = self._open_sandbox(config)
            project = await import_project(scope, base)
        async with self._course.step("records"):
            self._write_job(config, prompt)
        async with self._course.step("skills"):
            skills = enabled_skills(config.skills, base, services.storage_root)
            self._tell_skills(skills)
        async with self._course.step("memory"):
            memory = open_memory(
                config.memory,
                scope.sandbox,
                services.environ,
                services.open_memory,
                services.clock,
                services.new_id,
            )
            note = await memory.note(services.prompts, prompt) if memory else ""
        async with self._course.step("prompt"):
            parts = PromptParts(skill_index(services.prompts, skills.skills), note)
            system = compose_prompt(services.prompts, config, parts)
            self._records.write_text("effective-prompt.md", log.text(system))
        async with self._course.step("tools"):
            toolset = self._toolset(scope, project, skills, memory)
            tools = self._recorded(toolset.tools)
            engine = make_engine(config, base, services, self._keep_output)
        if options.dry_run:
            return Verdict("pending", None)
        async with self._course.step("engine"):
            report = EngineReport(log, self._transcript, self._watch)
            request = report.request(config, self.record, system, prompt, tools, self.cancelled)
            result = await engine.run(request)
            self._course.change(final_text=log.text(result.final_text))
            if (over := self._engine_over(result)) is not None:
                return over
        async with self._course.step("deliverables"):
            if project is not None:
                await deliver_changes(scope, project, toolset.edits)
            if (scope.sandbox.root / CANDIDATES).exists():
                scope.artifacts.add(CANDIDATES, kind="memory", created_by="write_memory")
            found = self._check_deliverables(config, scope)
            self._transcript.tool_calls(tools.calls)
            self._transcript.deliverables(found)
        async with self._course.step("final"):
            missing = missing_error(found)
            if missing is not None:
                log.error("deliverables", missing)
        return on_deliverables(missing)

    def _read_job(self) -> tuple[RunConfig, str]:
        """The configuration and the prompt; the record then tells what they are."""
        options = self._options
        config = read_run_config(options.config, options.overrides)
        self._course.change(
            profile_id=config.profile.id,
            config_fingerprint=config_fingerprint(config),
            engine=config.runtime.engine,
            model=config.model.name,
        )
        given = options.prompt
        prompt = given if isinstance(given, str) else read_text(given)
        if not prompt.strip():
            raise KodeError("ConfigInvalid", "The prompt is empty; say what is to be done.")
        return config, prompt

    def _open_sandbox(self, config: RunConfig) -> RunScope:
        sandbox = make_sandbox(self._records.folder)
        write_sandbox_manifest(sandbox, self._services.clock.timestamp())
        artifacts = Artifacts(sandbox, self._services.clock.timestamp)
        artifacts.required = frozenset(one.path for one in config.deliverables if one.required)
        self._log.note_artifact = lambda path, kind, by: artifacts.add(
            path, kind=kind, created_by=by, content_type="text/plain"
        )
        workspace = Workspace(
            [root.path for root in sandbox.readable],
            "utf-16",
            file_encoding=self._services.file_encoding,
        )
        return RunScope(config, sandbox, workspace, self._log, artifacts)

    def _write_job(self, config: RunConfig, prompt: str) -> None:
        self._records.write_text("config.yaml", self._log.text(write_yaml(recorded_config(config))))
        self._records.write_text("prompt.md", self._log.text(prompt))
        self._transcript.begin(self.record, prompt)

    def _tell_skills(self, skills: SkillCatalog) -> None:
        for skill in skills.skills:
            permissions = skill.about.permissions
            self._log.event(
                "skill.enabled",
                f"{skill.id}: {skill.about.name}",
                data={"id": skill.id, "file": skill.file, "declared_permissions": permissions},
            )

    def _toolset(
        self,
        scope: RunScope,
        project: ProjectCopy | None,
        skills: SkillCatalog,
        memory: RunMemory | None,
    ) -> Toolset:
        services, more = self._services, list[Tool]()
        if skills.skills:
            more.append(load_skill_tool(lambda: skills, scope.config.skills.max_bytes))
        if memory is not None:
            more.append(memory.tool())
        sources = ToolSources(
            ripgrep=services.ripgrep,
            environ=services.environ,
            now=services.clock.timestamp,
            project=project,
            more=more,
        )
        return run_toolset(scope, sources)

    def _recorded(self, tools: Sequence[Tool]) -> RecordedTools:
        names = [tool.name for tool in tools if tool.offered]
        self._log.event("tools.offered", ", ".join(names) or "none", data={"tools": names})
        return RecordedTools(
            tools,
            self._log,
            self._transcript,
            self._services.clock,
            session_id=self.record.session_id,
            run_id=self.record.run_id,
            report_bug=self._services.report_bug,
        )

    def _keep_output(self, text: str) -> Blob:
        """Keep what a tool said beyond what the model gets of it. Raises KodeError `Storage`."""
        name = self._services.new_id("artifact")
        return self._log.save_artifact(text, name, kind="tool_output", created_by="runtime")

    def _check_deliverables(
        self, config: RunConfig, scope: RunScope
    ) -> tuple[CheckedDeliverable, ...]:
        found = check_deliverables(config.deliverables, scope.sandbox)
        for path in delivered_files(scope.sandbox):
            scope.artifacts.add(path, kind="deliverable", created_by="")
        for one in found:
            if one.refusal is not None:
                self._log.error("deliverables", one.refusal)
            if one.ok:
                scope.artifacts.add(
                    one.path, kind="deliverable", created_by="", content_type=one.content_type
                )
            self._log.event(
                "deliverable.checked",
                f"{one.path}: {one.problem or 'is there'}",
                actor="governance",
                severity="warning" if one.problem else "info",
                data={"path": one.path, "required": one.required, "bytes": one.bytes},
            )
        return found

    def _engine_over(self, result: EngineResult) -> Verdict | None:
        """The verdict where the engine's end decides. Raises KodeError when it failed."""
        if self._log.failure is not None:
            raise self._log.failure
        if result.outcome == "cancelled":
            return cancelled_verdict()
        error = result.error
        if error is not None:
            raise KodeError(
                error.code,
                error.message,
                http_status=error.http_status,
                retry_after_ms=error.retry_after_ms,
                retryable=error.retryable,
                details=error.details,
            )
        return None
