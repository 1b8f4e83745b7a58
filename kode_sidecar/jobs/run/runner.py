"""Takes a run through its eleven steps to its verdict, which `run.json` always holds (B13)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

from kode_sidecar.agent.context.skills import SkillCatalog, skill_index
from kode_sidecar.agent.tools.knowledge import load_skill_tool
from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.domain.run import RunEvent, RunRecord, RunResult
from kode_sidecar.core.kernel.contracts import Tool, TurnEnd
from kode_sidecar.core.text.yaml_text import write_yaml
from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.saver import Saver
from kode_sidecar.infrastructure.records.spending import Totals
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.jobs.run.artifacts import (
    Artifacts,
    CheckedDeliverable,
    check_deliverables,
    delivered_files,
    missing_error,
)
from kode_sidecar.jobs.run.contracts import (
    RunOptions,
    RunScope,
    RunServices,
    Watch,
)
from kode_sidecar.jobs.run.engines import engine_failure, make_engine
from kode_sidecar.jobs.run.project_copy import ProjectCopy, import_project
from kode_sidecar.jobs.run.project_patch import deliver_changes
from kode_sidecar.jobs.run.run_config import (
    RunConfig,
    config_fingerprint,
    read_run_config,
    recorded_config,
)
from kode_sidecar.jobs.run.run_course import (
    RunCourse,
    RunOver,
    RunVerdict,
    cancelled_verdict,
    on_deliverables,
)
from kode_sidecar.jobs.run.run_prompt import (
    CANDIDATES,
    RunMemory,
    compose_prompt,
    enabled_skills,
    in_language_of,
    open_memory,
)
from kode_sidecar.jobs.run.run_recorder import RunRecorder
from kode_sidecar.jobs.run.run_session import JobWork, open_run_session
from kode_sidecar.jobs.run.sandbox import make_sandbox
from kode_sidecar.jobs.run.toolset import RunTools


def _nobody(_event: RunEvent | BlockDelta) -> None:
    """Do nothing: nobody watches."""


class HeadlessRun:
    """One run, used once. The constructor makes its folder and its `run.json`.

    Setting `cancelled` ends the run soon. Raises KodeError `ReadOnly` if the folder already holds a
    run, `Storage`.
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
        self._close_servers: Callable[[], Awaitable[None]] | None = None

    @property
    def record(self) -> RunRecord:
        """The current record of the run."""
        return self._course.record

    async def run(self) -> RunResult:
        """Run the steps in order; return the result.

        Raises KodeError `Storage` if not even the end can be recorded. If its task is cancelled,
        the run ends as cancelled, and asyncio.CancelledError is raised.
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
            if self._close_servers is not None:
                await self._close_servers()
            self._records.close()

    async def _do_steps(self) -> RunVerdict:
        options, services, log = self._options, self._services, self._log
        base = options.config.parent
        self._course.change(status="running", started_at=services.clock.timestamp())
        await self._course.save()
        log.event("run.started", f"Run {self.record.run_id} started", actor="user")
        async with self._course.step("config"):
            config, prompt = self._read_job()
            services = self._services = in_language_of(config.profile, services)
        async with self._course.step("ids"):
            options.ids.check()
        async with self._course.step("sandbox"):
            scope = self._open_sandbox(config)
            project = await import_project(scope, base)
        async with self._course.step("records"):
            self._write_job(config, prompt)
        async with self._course.step("skills"):
            skills = enabled_skills(config.skills, base, services.storage_root)
            self._report_skills(skills)
        async with self._course.step("memory"):
            memory = open_memory(config.memory, scope.sandbox, services)
            note = await memory.note(services.prompts, prompt) if memory else ""
        async with self._course.step("prompt"):
            index = skill_index(services.prompts, skills.skills)
            system = compose_prompt(services.prompts, config, index, note)
            self._records.write_text("effective-prompt.md", log.text(system))
        async with self._course.step("tools"):
            tools = self._tools(scope, project, skills, memory)
            engine = make_engine(config, base, services)
        if options.dry_run:
            return RunVerdict("pending", None, self._missing(config))
        chosen = options.ids.session_id  # many runs may share it
        conversation_id = services.new_id("session") if chosen else self.record.session_id
        self._course.change(conversation_id=conversation_id)
        async with self._course.step("engine"):
            recorder = RunRecorder(
                log,
                self._transcript,
                self._watch,
                tools.names,
                stream=config.runtime.stream,
                spent=self._spent,
            )
            end = await self._work(
                JobWork(
                    scope, services, engine, tools, recorder, system, prompt, self._save_output
                ),
                project,
            )
            if end.stop_reason == "cancelled":
                return cancelled_verdict()
        async with self._course.step("deliverables"):
            if project is not None:
                await deliver_changes(scope, project, tools.written)
            if (scope.sandbox.root / CANDIDATES).exists():
                scope.artifacts.add(CANDIDATES, kind="memory", created_by="write_memory")
            found = self._check_deliverables(config, scope)
            self._transcript.tool_calls(recorder.tools.calls)
            self._transcript.deliverables(found)
        async with self._course.step("final"):
            missing = missing_error(found)
            if missing is not None:
                log.error("deliverables", missing)
        return on_deliverables(missing)

    def _read_job(self) -> tuple[RunConfig, str]:
        """Read the configuration and the prompt; note in the record what they are."""
        options = self._options
        config = read_run_config(options.config, options.overrides)
        self._course.change(
            profile_id=config.profile.id,
            config_fingerprint=config_fingerprint(config),
            engine=config.runtime.engine,
            model=config.model.name,
        )
        given = options.prompt
        prompt = given if isinstance(given, str) else read_user_text(given)
        if not prompt.strip():
            raise KodeError("ConfigInvalid", "The prompt is empty; say what is to be done.")
        return config, prompt

    def _open_sandbox(self, config: RunConfig) -> RunScope:
        sandbox = make_sandbox(self._records.folder)
        timestamp = self._services.clock.timestamp
        sandbox.write_zones(timestamp())
        required = {one.path for one in config.deliverables if one.required}
        artifacts = Artifacts(sandbox, timestamp, required)
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

    def _report_skills(self, skills: SkillCatalog) -> None:
        for skill in skills.skills:
            permissions = skill.about.permissions
            self._log.event(
                "skill.enabled",
                f"{skill.id}: {skill.about.name}",
                data={"id": skill.id, "file": skill.file, "declared_permissions": permissions},
            )

    def _tools(
        self,
        scope: RunScope,
        project: ProjectCopy | None,
        skills: SkillCatalog,
        memory: RunMemory | None,
    ) -> RunTools:
        more: list[Tool] = []
        if skills.skills:
            more.append(load_skill_tool(lambda: skills, scope.config.skills.max_bytes))
        if memory is not None:
            more.append(memory.tool())
        if names := scope.config.tools.servers:
            tool, self._close_servers = self._services.open_servers(names)
            more.append(tool)
        tools = RunTools(scope, self._services, project, more)
        reported = ", ".join(tools.offered) or "none"
        self._log.event("tools.offered", reported, data={"tools": list(tools.offered)})
        return tools

    def _missing(self, config: RunConfig) -> ErrorInfo | None:
        """Return why the engine could not ask the model, such as a missing key; None if it can."""
        asks = config.runtime.engine != "scripted"
        return self._services.model.missing(config.model.name) if asks else None

    def _save_output(self, text: str) -> Blob:
        """Save tool output that the model does not read. Raises KodeError `Storage`."""
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

    async def _work(self, work: JobWork, project: ProjectCopy | None) -> TurnEnd:
        """Let the engine do the task. Raises `RunOver` if it fails, KodeError if the disk does."""
        log, recorder = self._log, work.recorder
        with closing(Saver()) as saver:
            folders = work.services.open_sessions(saver)
            source = None if project is None else project.project.path
            session = await open_run_session(work, folders, self.record, source)
            try:
                end = await session.work(self.cancelled)
            finally:
                await session.close()
        if end.stop_reason not in ("cancelled", "interrupted"):
            self._course.change(final_text=log.text(recorder.final_text))
        if log.failure is not None:
            raise log.failure
        error = engine_failure(end)
        if error is not None and error.code == "RunTimedOut":
            error = recorder.limited or error
        if error is not None:
            raise self._course.failed("engine", error)
        return end

    def _spent(self, totals: Totals) -> None:
        """Write the usage so far to `run.json`, so that it is right even if the run dies now."""
        record = self.record
        self._course.change(usage=totals.usage, costs=totals.costs, cost_usd=totals.cost_usd)
        if (record.usage, record.costs) != (totals.usage, totals.costs):
            self._records.write(self.record, durable=False)
