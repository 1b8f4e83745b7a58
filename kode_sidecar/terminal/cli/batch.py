"""`kode-sidecar batch`: runs many jobs, shows their progress, resumes and reports on them."""

import argparse
import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from types import FrameType

import msgspec

from kode_sidecar.core.settings import load_settings
from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch import (
    BatchFolder,
    BatchOptions,
    BatchProgress,
    BegunBatches,
    Dispatcher,
    Report,
    make_engine,
    make_report,
    open_batch,
    plan_tasks,
    read_budget,
    reopen_batch,
    report_text,
    try_again,
    write_report,
)
from kode_sidecar.servers.boot.provider_setup import set_up_providers
from kode_sidecar.servers.boot.system import SystemClock
from kode_sidecar.terminal.client.sidecar_process import PROGRAM

_NOT_ALL, _CANCELLED = 3, 130


def batch_command(options: argparse.Namespace) -> int:
    """Run the command; return the exit code. Raises KodeError if nothing can be started."""
    match options.batch_command:
        case "status":
            return _show(make_report(options.folder, rows=False), json=options.json)
        case "report":
            report = write_report(options.folder)
            if not options.json:
                sys.stdout.write(f"{options.folder / 'report.html'}\n")
                return 0
            return _show(report, json=True)
        case "resume":
            return _resume(options)
        case _:
            return _begin(options)


def _begin(options: argparse.Namespace) -> int:
    wanted = _options(options)
    if wanted is None:
        sys.stderr.write(
            "kode-sidecar batch: --config, --tasks and --out say what to do and where its records "
            "go\n"
        )
        return 2
    if options.dry_run:
        return _dry_run(wanted, json=options.json)
    return _work(open_batch(wanted, SystemClock(), _begun()), json=options.json)


def _options(options: argparse.Namespace) -> BatchOptions | None:
    if options.config is None or options.tasks is None or options.out is None:
        return None
    prompt = options.prompt or ""
    if options.prompt_file is not None:
        prompt = read_user_text(options.prompt_file)
    return BatchOptions(
        config=options.config.absolute(),
        tasks=options.tasks.absolute(),
        out=options.out.absolute(),
        prompt=prompt,
        env_file=options.env_file,
        jobs=options.jobs,
        budget=None if options.budget is None else read_budget(options.budget),
        max_failures=options.max_failures,
        attempts=options.attempts,
        scheduler=options.scheduler or options.dask or "",
        archives=options.archives,
    )


def _resume(options: argparse.Namespace) -> int:
    clock = SystemClock()
    folder = reopen_batch(
        options.folder.absolute(),
        clock,
        _begun(),
        trust=options.trust,
        jobs=options.jobs,
        budget=None if options.budget is None else read_budget(options.budget),
        max_failures=options.max_failures,
        scheduler=options.scheduler,
    )
    if options.failed:
        try_again(folder, clock)
    return _work(folder, json=options.json)


def _begun() -> BegunBatches:
    return BegunBatches(load_settings(os.environ).settings.storage_root)


def _dry_run(options: BatchOptions, *, json: bool) -> int:
    """Print what would be done; return 1 if a model could not be asked."""
    planned = plan_tasks(options)
    models = Counter(task.model for task in planned)
    missing = _missing(models, options.env_file)
    if json:
        reported = {
            "tasks": [{"id": one.id, "fingerprint": one.fingerprint} for one in planned],
            "models": models,
            "missing": missing,
        }
        sys.stdout.write(f"{msgspec.json.encode(reported).decode()}\n")
    else:
        for model, count in sorted(models.items()):
            sys.stdout.write(f"{count:>6} tasks with {model or 'a script'}\n")
        sys.stdout.writelines(f"missing: {text}\n" for text in missing)
        sys.stdout.write(f"{len(planned)} tasks; nothing was run.\n")
    return 1 if missing else 0


def _missing(models: Iterable[str], env_file: str | None) -> list[str]:
    """Return why models cannot be asked, each reason once; a script asks none."""
    providers = set_up_providers(load_settings(os.environ, env_file=env_file))
    found = [providers.missing(model) for model in sorted(models) if model]
    return list(dict.fromkeys(error.message for error in found if error is not None))


def _work(folder: BatchFolder, *, json: bool) -> int:
    """Do the remaining tasks, write and print the report; return the exit code.

    Raises KodeError `AuthRequired` if a key is missing for a task on this machine.
    """
    try:
        _look_for_keys(folder)
        stopped = asyncio.run(_dispatch(folder))
        folder.note_stopped(stopped)
    finally:
        folder.close()
    report = write_report(folder.path)
    code = _show(report, json=json)
    return _CANCELLED if stopped == "cancelled" else code


def _look_for_keys(folder: BatchFolder) -> None:
    """Raise KodeError `AuthRequired` rather than fail every task; workers have their own keys."""
    record = folder.record
    if record.scheduler:
        return
    left = {one.task.model for one in folder.log.tasks.values() if one.outcome is None}
    missing = _missing(left, record.env_file)
    if missing:
        raise KodeError("AuthRequired", " ".join(missing))


async def _dispatch(folder: BatchFolder) -> str:
    clock, record = SystemClock(), folder.record
    engine = make_engine(record, PROGRAM)
    progress = BatchProgress(folder.log, sys.stderr, clock.monotonic)
    dispatcher = Dispatcher(folder, record, engine, clock, progress)
    loop = asyncio.get_running_loop()

    def stop(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(dispatcher.cancelled.set)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return await dispatcher.run()
    finally:
        progress.end()
        await engine.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(report: Report, *, json: bool) -> int:
    """Print the sums; return 0 if every task completed."""
    if json:
        reported = msgspec.to_builtins(report)
        del reported["rows"]
        sys.stdout.write(f"{msgspec.json.encode(reported).decode()}\n")
    else:
        sys.stdout.write(report_text(report))
    return 0 if report.states.get("completed", 0) == report.tasks else _NOT_ALL
