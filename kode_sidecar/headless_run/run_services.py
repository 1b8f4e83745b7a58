"""What a run needs from the process it is in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.context.prompt_files import PromptFiles
from kode_sidecar.headless_run.native_engine import NativeServices
from kode_sidecar.headless_run.run_memory import OpenMemory
from kode_sidecar.kernel.contracts import Clock, NewId
from kode_sidecar.providers.registry import Target
from kode_sidecar.records.json_log import Redaction
from kode_sidecar.workspace.ripgrep import Ripgrep


@dataclass(frozen=True)
class RunServices:
    """Shared by all runs of a process.

    `environ` are the user's variables and the process's own. `target` gives the model behind a
    name, for engines that ask it themselves. `report_bug(where, error)` gets exceptions that
    should not exist. `file_encoding` is the setting of that name.
    """

    storage_root: Path
    clock: Clock
    new_id: NewId
    redaction: Redaction
    prompts: PromptFiles
    environ: Mapping[str, str]
    ripgrep: Ripgrep
    native: NativeServices
    target: Callable[[str], Target]
    open_memory: OpenMemory
    report_bug: Callable[[str, BaseException], None]
    file_encoding: str | None = None
