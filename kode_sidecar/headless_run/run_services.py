"""What a run needs from the process it is in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.context.prompt_files import PromptFiles
from kode_sidecar.headless_run.contracts import Engine, RunScope
from kode_sidecar.headless_run.run_config import RunConfig
from kode_sidecar.kernel.contracts import ArtifactSink, Clock, NewId, Tool
from kode_sidecar.records.log_redaction import Redaction

MakeEngine = Callable[[RunConfig, Path, ArtifactSink], Engine]
"""`(config, its folder, where large output is kept)`. Raises KodeError `ConfigInvalid`."""


@dataclass(frozen=True)
class RunServices:
    """Shared by all runs of a process.

    `environ` is the process's own environment. `user_skills` is the user's folder of skills.
    `report_bug(where, error)` gets exceptions that should not exist.
    """

    storage_root: Path
    clock: Clock
    new_id: NewId
    redaction: Redaction
    prompts: PromptFiles
    environ: Mapping[str, str]
    make_engine: MakeEngine
    make_tools: Callable[[RunScope], Sequence[Tool]]
    report_bug: Callable[[str, BaseException], None]
