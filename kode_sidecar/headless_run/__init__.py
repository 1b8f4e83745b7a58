"""A job without an editor: described in a file, run in a sandbox, judged by what it delivers."""

from kode_sidecar.headless_run.native_engine import NativeEngine, NativeServices
from kode_sidecar.headless_run.run_config import Overrides
from kode_sidecar.headless_run.run_options import RunIds, RunOptions
from kode_sidecar.headless_run.run_services import RunServices
from kode_sidecar.headless_run.runner import HeadlessRun
from kode_sidecar.headless_run.scripted_engine import ScriptedEngine, read_script
from kode_sidecar.headless_run.wire_runs import WireRuns

__all__ = [
    "HeadlessRun",
    "NativeEngine",
    "NativeServices",
    "Overrides",
    "RunIds",
    "RunOptions",
    "RunServices",
    "ScriptedEngine",
    "WireRuns",
    "read_script",
]
