"""A job without an editor: described in a file, run in a sandbox, judged by what it delivers."""

from kode_sidecar.headless_run.native_engine import NativeEngine, NativeServices
from kode_sidecar.headless_run.run_config import Overrides
from kode_sidecar.headless_run.run_course import RUNS_FOLDER
from kode_sidecar.headless_run.run_options import RunIds, RunOptions, is_plain_id
from kode_sidecar.headless_run.run_services import RunServices
from kode_sidecar.headless_run.runner import HeadlessRun
from kode_sidecar.headless_run.scripted_engine import ScriptedEngine, read_script
from kode_sidecar.headless_run.wire_runs import WireRuns

__all__ = [
    "RUNS_FOLDER",
    "HeadlessRun",
    "NativeEngine",
    "NativeServices",
    "Overrides",
    "RunIds",
    "RunOptions",
    "RunServices",
    "ScriptedEngine",
    "WireRuns",
    "is_plain_id",
    "read_script",
]
