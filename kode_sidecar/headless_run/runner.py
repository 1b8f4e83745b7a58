"""A run from its first step to its verdict (B13). Whatever happens, `run.json` tells it."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kode_sidecar.context.skills import SkillCatalog, skill_index
from kode_sidecar.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.domain.message import Blob
from kode_sidecar.domain.run import RunEvent, RunRecord, RunResult, StepName
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import EngineResult, RunScope, TextGrew
from kode_sidecar.headless_run.deliverables import (
    CheckedDeliverable,
    check_deliverables,
    missing_error,
)
from kode_sidecar.headless_run.engine_report import EngineReport
from kode_sidecar.headless_run.engines import make_engine
from kode_sidecar.headless_run.fingerprint import config_fingerprint, recorded_config
from kode_sidecar.headless_run.governance import Verdict, on_deliverables, on_failed_step
from kode_sidecar.headless_run.manifests import Artifacts, write_sandbox_manifest
from kode_sidecar.headless_run.project import deliver_changes, import_project
from kode_sidecar.headless_run.prompt_composition import PromptParts, compose_prompt
from kode_sidecar.headless_run.recorded_tools import RecordedTools
from kode_sidecar.headless_run.run_config import RunConfig, read_run_config, read_text
from kode_sidecar.headless_run.run_log import EventLog
from kode_sidecar.headless_run.run_options import RunOptions, is_plain_id, made_run_id
from kode_sidecar.headless_run.run_services import RunServices
from kode_sidecar.headless_run.run_skills import enabled_skills
from kode_sidecar.headless_run.sandbox import make_sandbox
from kode_sidecar.headless_run.toolset import ToolSources, run_toolset
from kode_sidecar.headless_run.transcript import Transcript
from kode_sidecar.kernel.contracts import Tool
from kode_sidecar.records.run_records import TRANSCRIPT_FILE, RunRecords
from kode_sidecar.tools.load_skill import load_skill_tool
from kode_sidecar.workspace.project_copy import ProjectCopy
from kode_sidecar.workspace.workspace import Workspace
from kode_sidecar.yaml_text import write_yaml

RUNS_FOLDER = "runs"

Watch = Callable[[RunEvent | TextGrew], None]
"""Told what happens while it happens, on the event loop; must not raise."""


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
        self.cancelled = asyncio.Event()
        self.record = _first_record(options, services)
        self._records = RunRecords(Path(self.record.sandbox_root))
        self._log = EventLog(
            self._records, lambda: self.record, services.clock, services.redaction, watch
        )
        self._log.on_failure = self.cancelled.set
        self._transcript = Transcript(
            lambda text: self._records.append_text(TRANSCRIPT_FILE, text), self._log.text
        )
        self._records.write(self.record, durable=True)

    @property
    def result(self) -> RunResult:
        """What the run has come to so far."""
        record = self.record
        return RunResult(
            session_id=record.session_id,
            task_id=record.task_id,
            run_id=record.run_id,
            status=record.status,
            sandbox_root=record.sandbox_root,
            final_text=record.final_text,
            error=record.error,
            governance=record.governance,
        )

    async def run(self) -> RunResult:
        """Do the steps in their order; how it ended.

        Raises KodeError `Storage` when not even the end can be recorded. When its task is
        cancelled the run ends as cancelled, and asyncio.CancelledError is raised.
        """
        try:
            try:
                verdict = await self._do_steps()
            except _Over as over:
                verdict = over.verdict
            except asyncio.CancelledError:
                await self._end(_cancelled())
                raise
            return await self._end(verdict)
        finally:
            self._records.close()

    async def _do_steps(self) -> Verdict:
        options, services, log = self._options, self._services, self._log
        base = options.config.parent
        self._change(status="running", started_at=services.clock.timestamp())
        await self._save()
        log.event("run.started", f"Run {self.record.run_id} started", actor="user")
        async with self._step("config"):
            config, prompt = self._read_job()
        async with self._step("ids"):
            options.ids.check()
        async with self._step("sandbox"):
            scope = self._open_sandbox(config)
            project = await import_project(scope, base)
        async with self._step("records"):
            self._write_job(config, prompt)
        async with self._step("skills"):
            skills = enabled_skills(config.skills, base, services.storage_root)
            self._tell_skills(skills)
        async with self._step("memory"):
            memory = ""
        async with self._step("prompt"):
            parts = PromptParts(skill_index(services.prompts, skills.skills), memory)
            system = compose_prompt(services.prompts, config, parts)
            self._records.write_text("effective-prompt.md", log.text(system))
        async with self._step("tools"):
            toolset = run_toolset(scope, self._tool_sources(project, config, skills))
            tools = self._recorded(toolset.tools)
            engine = make_engine(config, base, services, self._keep_output)
        if options.dry_run:
            return Verdict("pending", None)
        async with self._step("engine"):
            report = EngineReport(log, self._transcript, self._watch)
            request = report.request(config, self.record, system, prompt, tools, self.cancelled)
            result = await engine.run(request)
            self._change(final_text=log.text(result.final_text))
            if (over := self._engine_over(result)) is not None:
                return over
        async with self._step("deliverables"):
            if project is not None:
                await deliver_changes(scope, project, toolset.edits)
            found = self._check_deliverables(config, scope)
            self._transcript.tool_calls(tools.calls)
            self._transcript.deliverables(found)
        async with self._step("final"):
            missing = missing_error(found)
            if missing is not None:
                log.error("deliverables", missing)
        return on_deliverables(missing)

    def _read_job(self) -> tuple[RunConfig, str]:
        """The configuration and the prompt; the record then tells what they are."""
        options = self._options
        config = read_run_config(options.config, options.overrides)
        self._change(
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
        self._records.write_text("config.yaml", write_yaml(recorded_config(config)))
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

    def _tool_sources(
        self, project: ProjectCopy | None, config: RunConfig, skills: SkillCatalog
    ) -> ToolSources:
        more: list[Tool] = []
        if skills.skills:
            more.append(load_skill_tool(lambda: skills, config.skills.max_bytes))
        services = self._services
        return ToolSources(
            services.ripgrep, services.environ, services.clock.timestamp, project, tuple(more)
        )

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
        for one in found:
            if one.refusal is not None:
                self._log.error("deliverables", one.refusal)
            if one.ok:
                scope.artifacts.add(
                    one.path,
                    kind="deliverable",
                    created_by="",
                    content_type=one.content_type,
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
            return _cancelled()
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

    @asynccontextmanager
    async def _step(self, name: StepName) -> AsyncGenerator[None, None]:
        """A step between its events. Raises `_Over` where it ends the run."""
        if self.cancelled.is_set():
            raise _Over(_cancelled())
        self._change(step=name)
        await self._save(durable=False)
        try:
            started = self._log.event("step.started", f"Step {name}", correlation_id=name)
            yield
            self._log.event(
                "step.completed",
                f"Step {name} done",
                correlation_id=name,
                parent_event_id=started,
            )
        except KodeError as error:
            raise _Over(self._failed(name, error_info(error))) from None
        except Exception as error:
            self._services.report_bug(f"run {self.record.run_id}, step {name}", error)
            text = f"The sidecar failed inside the step {name}; the log has the details."
            raise _Over(self._failed(name, failure("InternalError", text))) from None

    def _failed(self, name: StepName, error: ErrorInfo) -> Verdict:
        # When it is the disk that fails, run.json may be all that can still be written.
        with suppress(KodeError):
            self._log.error(name, error, correlation_id=name)
            self._log.event(
                "step.failed",
                f"Step {name} failed: {error.message}",
                severity="error",
                data={"code": error.code},
                correlation_id=name,
            )
        return on_failed_step(name, error)

    async def _end(self, verdict: Verdict) -> RunResult:
        """Record the verdict: `run.json` first, then what tells that the run is over."""
        error = None if verdict.error is None else self._log.clean_error(verdict.error)
        self._change(
            status=verdict.status,
            governance=verdict.governance,
            error=error,
            failure_reason=None if error is None else error.code,
            completed_at=self._services.clock.timestamp(),
        )
        await self._save()
        result = self.result
        with suppress(KodeError):
            decided = self._log.event(
                "governance.decided",
                f"Judged as {verdict.governance or 'nothing: it was not to be judged'}",
                actor="governance",
                severity="info" if verdict.governance in ("passed", None) else "warning",
                data={"governance": verdict.governance},
            )
            self._log.event(
                f"run.{verdict.status}",
                f"Run {self.record.run_id}: {verdict.status}",
                severity="info" if result.exit_code == 0 else "error",
                data={"exit_code": result.exit_code},
                parent_event_id=decided,
            )
            self._transcript.outcome(self.record, result)
        return result

    def _change(self, **fields: Any) -> None:
        now = self._services.clock.timestamp()
        self.record = replace(self.record, updated_at=now, **fields)

    async def _save(self, *, durable: bool = True) -> None:
        """Write `run.json`; what must survive a power cut off the event loop."""
        if durable:
            await asyncio.to_thread(self._records.write, self.record, durable=True)
        else:
            self._records.write(self.record, durable=False)


class _Over(Exception):
    """The run has its verdict before its last step."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


def _cancelled() -> Verdict:
    return Verdict("cancelled", None, failure("Cancelled", "The run was cancelled."))


def _first_record(options: RunOptions, services: RunServices) -> RunRecord:
    """What is known before the first step."""
    now, given = services.clock.timestamp(), options.ids

    def usable(text: str) -> str:
        # An id that could lead elsewhere names nothing; the step `ids` tells of it.
        return text if is_plain_id(text) else ""

    run_id = usable(given.run_id) or made_run_id(now, services.new_id("session"))
    folder = options.sandbox or services.storage_root / RUNS_FOLDER / run_id
    return RunRecord(
        session_id=usable(given.session_id) or services.new_id("session"),
        task_id=usable(given.task_id) or services.new_id("session"),
        run_id=run_id,
        config_path=str(options.config),
        overrides=msgspec.to_builtins(options.overrides),
        sandbox_root=os.path.realpath(folder),
        created_at=now,
        updated_at=now,
        dry_run=options.dry_run,
        pid=os.getpid(),
    )
