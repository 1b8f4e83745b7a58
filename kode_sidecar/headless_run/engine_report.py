"""What an engine reports, told to the records and to whoever watches."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from kode_sidecar.domain.run import RunEvent, RunRecord
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import (
    EngineEvent,
    EngineNote,
    EngineRequest,
    ModelSaid,
    RunTools,
    StepStarted,
    TextGrew,
)
from kode_sidecar.headless_run.run_config import RunConfig
from kode_sidecar.headless_run.run_log import EventLog
from kode_sidecar.headless_run.transcript import Transcript


class EngineReport:
    """Makes an engine's request and takes its events."""

    def __init__(
        self, log: EventLog, transcript: Transcript, watch: Callable[[RunEvent | TextGrew], None]
    ) -> None:
        self._log = log
        self._transcript = transcript
        self._watch = watch

    def request(
        self,
        config: RunConfig,
        record: RunRecord,
        system: str,
        prompt: str,
        tools: RunTools,
        cancelled: asyncio.Event,
    ) -> EngineRequest:
        """The one request of a run."""
        return EngineRequest(
            run_id=record.run_id,
            session_id=record.session_id,
            system=system,
            prompt=prompt,
            tools=tools,
            model=config.model.name,
            timeout_seconds=config.runtime.timeout_seconds,
            max_steps=config.runtime.max_steps,
            stream=config.runtime.stream,
            cancelled=cancelled,
            on_event=self._on_event,
            temperature=config.model.temperature,
            top_p=config.model.top_p,
            max_tokens=config.model.max_tokens,
        )

    def _on_event(self, event: EngineEvent) -> None:
        # A failing disk is noted in the log itself: it stops the run, and the step tells of it.
        with suppress(KodeError):
            match event:
                case TextGrew():
                    self._watch(event)
                case StepStarted():
                    step = f"step-{event.step}"
                    text = f"Asking the model, step {event.step}"
                    self._log.event("model.asked", text, actor="engine", correlation_id=step)
                case ModelSaid():
                    self._said(event)
                case EngineNote():
                    data = {"code": event.code}
                    self._log.event("engine.note", event.message, actor="engine", data=data)

    def _said(self, event: ModelSaid) -> None:
        calls = f"calls {', '.join(event.calls)}" if event.calls else "no calls"
        self._log.event(
            "model.answered",
            f"Step {event.step}: {len(event.text)} characters, {calls}",
            actor="model",
            data={
                "text": event.text,
                "calls": list(event.calls),
                "model": event.model,
                "usage": None if event.usage is None else msgspec.to_builtins(event.usage),
            },
            correlation_id=f"step-{event.step}",
        )
        self._transcript.said(event.step, event.text)
