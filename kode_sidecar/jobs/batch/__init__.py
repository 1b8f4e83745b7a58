"""Runs many governed jobs, each once, within one budget, and reports on all of them."""

from kode_sidecar.jobs.batch.batch import (
    BatchOptions,
    make_engine,
    open_batch,
    plan_tasks,
    reopen_batch,
)
from kode_sidecar.jobs.batch.batch_folder import BatchFolder, BatchRecord, read_batch
from kode_sidecar.jobs.batch.begun_batches import BegunBatches
from kode_sidecar.jobs.batch.dispatcher import Dispatcher, try_again
from kode_sidecar.jobs.batch.limits import read_budget
from kode_sidecar.jobs.batch.progress import BatchProgress
from kode_sidecar.jobs.batch.report import Report, make_report, report_text, write_report
from kode_sidecar.jobs.batch.task_log import TaskState, read_task_log

__all__ = [
    "BatchFolder",
    "BatchOptions",
    "BatchProgress",
    "BatchRecord",
    "BegunBatches",
    "Dispatcher",
    "Report",
    "TaskState",
    "make_engine",
    "make_report",
    "open_batch",
    "plan_tasks",
    "read_batch",
    "read_budget",
    "read_task_log",
    "reopen_batch",
    "report_text",
    "try_again",
    "write_report",
]
