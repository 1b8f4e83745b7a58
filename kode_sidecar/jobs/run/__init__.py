"""Runs a job without an editor: described in a file, run in a sandbox, judged by deliverables."""

from kode_sidecar.jobs.run.contracts import RunIds, RunOptions, RunServices
from kode_sidecar.jobs.run.run_config import (
    Overrides,
    RunConfig,
    config_fingerprint,
    parse_run_config,
)
from kode_sidecar.jobs.run.runner import HeadlessRun
from kode_sidecar.jobs.run.wire_runs import WireRuns

__all__ = [
    "HeadlessRun",
    "Overrides",
    "RunConfig",
    "RunIds",
    "RunOptions",
    "RunServices",
    "WireRuns",
    "config_fingerprint",
    "parse_run_config",
]
