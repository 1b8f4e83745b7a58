"""Reports the results of a batch: the numbers, and files of them for people and programs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import msgspec
from msgspec import Struct, field

from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.infrastructure.records.disk import not_saved, replace_file
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.infrastructure.records.spending import Totals
from kode_sidecar.jobs.batch.batch_folder import RUNS_FOLDER, BatchRecord, read_batch
from kode_sidecar.jobs.batch.report_page import amount, write_page
from kode_sidecar.jobs.batch.task_log import Outcome, TaskLogFold, TaskState, read_task_log

_MOST_SHOWN = 50
"""How many uncompleted tasks `report.md` lists; the page lists all of them."""


class TaskRow(Struct, frozen=True, kw_only=True):
    """One task of a report.

    `runs` counts all runs that were begun, also cut and running ones. `costs` and tokens are sums
    over all ended runs, the other fields are of the last ended run.
    """

    id: str
    state: str
    model: str
    runs: int
    code: str
    message: str
    seconds: float
    input_tokens: int
    output_tokens: int
    costs: tuple[Cost, ...]
    patch_bytes: int
    folder: str
    worker: str
    started_at: str
    delivered: tuple[str, ...]


class ModelRow(Struct, frozen=True, kw_only=True):
    """The sums over all tasks of one model."""

    model: str
    tasks: int
    completed: int
    seconds: float
    usage: Usage
    costs: tuple[Cost, ...]


class Report(Struct, frozen=True, kw_only=True):
    """The report on a batch. `costs` has a sum for each currency, over all runs."""

    schema_version: int = 1
    batch_id: str
    created_at: str
    config_path: str
    budget: Cost | None
    stopped: str
    tasks: int
    states: dict[str, int]
    runs: int
    usage: Usage
    costs: tuple[Cost, ...]
    cost_usd: float | None
    seconds: float
    models: tuple[ModelRow, ...]
    rows: tuple[TaskRow, ...] = field(default=())


def make_report(folder: Path, *, rows: bool = True) -> Report:
    """Return the report on a batch so far; without `rows` only the sums.

    Raises KodeError `RunNotFound`, `Storage`.
    """
    record, fold = read_batch(folder), read_task_log(folder)
    return report_of(record, fold, rows=rows)


def report_of(record: BatchRecord, fold: TaskLogFold, *, rows: bool = True) -> Report:
    """Return the report on a batch whose states are already read."""
    outcomes = list(fold.outcomes())
    totals = _totals(outcomes)
    states = fold.tasks.values()
    return Report(
        batch_id=record.batch_id,
        created_at=record.created_at,
        config_path=record.config_path,
        budget=record.budget,
        stopped=record.stopped,
        tasks=len(states),
        states=dict(sorted(Counter(state.name for state in states).items())),
        runs=len(outcomes) + sum(state.running for state in states),
        usage=totals.usage,
        costs=totals.costs,
        cost_usd=totals.cost_usd,
        seconds=round(sum(one.seconds for one in outcomes), 3),
        models=tuple(_models(states)),
        rows=tuple(map(_row, states)) if rows else (),
    )


def _totals(outcomes: Iterable[Outcome]) -> Totals:
    totals = Totals()
    for one in outcomes:
        totals.add_answer(one.usage, None, one.cost_usd)
        for cost in one.costs:
            totals.add_answer(None, cost, None)
    return totals


def _models(states: Iterable[TaskState]) -> Iterator[ModelRow]:
    by_model: dict[str, list[TaskState]] = {}
    for state in states:
        by_model.setdefault(state.task.model, []).append(state)
    for model, group in sorted(by_model.items()):
        outcomes = [one for state in group for one in state.outcomes]
        totals = _totals(outcomes)
        yield ModelRow(
            model=model,
            tasks=len(group),
            completed=sum(state.name == "completed" for state in group),
            seconds=round(sum(one.seconds for one in outcomes), 3),
            usage=totals.usage,
            costs=totals.costs,
        )


def _row(state: TaskState) -> TaskRow:
    all_of = state.outcomes
    last = all_of[-1] if all_of else Outcome(status="pending")
    totals = _totals(all_of)
    return TaskRow(
        id=state.task.id,
        state=state.name,
        model=last.model or state.task.model,
        runs=len(all_of) + state.running,
        code=last.code,
        message=last.message,
        seconds=last.seconds,
        input_tokens=totals.usage.input_tokens,
        output_tokens=totals.usage.output_tokens,
        costs=totals.costs,
        patch_bytes=last.patch_bytes,
        folder=f"{RUNS_FOLDER}/{state.task.id}/{state.attempt}" if state.attempt else "",
        worker=last.worker,
        started_at=last.started_at,
        delivered=last.delivered,
    )


def write_report(folder: Path) -> Report:
    """Write `report.json`, `.md`, `.xml` (JUnit) and `.html` into the folder of the batch.

    Raises KodeError `RunNotFound`, `Storage`.
    """
    report = make_report(folder)
    replace_file(folder / "report.json", encode_json(report) + b"\n", durable=False)
    for name, text in (("report.md", _markdown(report)), ("report.xml", _junit(report))):
        replace_file(folder / name, fix_surrogates(text).encode(), durable=False)
    try:
        write_page(folder / "report.html", msgspec.to_builtins(report))
    except OSError as error:
        raise not_saved("report.html", error) from None
    return report


def money(costs: Iterable[Cost]) -> str:
    """Return amounts for people; a dash if none is known."""
    return " + ".join(f"{amount(cost.amount)} {cost.currency}" for cost in costs) or "–"


def report_text(report: Report) -> str:
    """Return the sums in a few lines, for a terminal."""
    states = ", ".join(f"{count} {name}" for name, count in report.states.items())
    lines = [
        f"{report.tasks} tasks: {states}",
        f"cost: {money(report.costs)}",
        f"tokens: {report.usage.input_tokens:,} in, {report.usage.output_tokens:,} out",
    ]
    if report.stopped:
        lines.append(f"ended early: {report.stopped}; go on with `kode-sidecar batch resume`")
    return "\n".join(lines) + "\n"


def _markdown(report: Report) -> str:
    states = ", ".join(f"{count} {name}" for name, count in report.states.items())
    lines = [
        f"# Batch {report.batch_id}",
        "",
        f"{report.tasks} tasks: {states}.",
        "",
        f"- cost: {money(report.costs)}",
        f"- tokens: {report.usage.input_tokens:,} in, {report.usage.output_tokens:,} out",
        f"- runs: {report.runs}, {report.seconds:,.1f} s together",
        *([f"- ended early: {report.stopped}"] if report.stopped else []),
        "",
        "| model | tasks | completed | time | tokens in / out | cost |",
        "|---|---|---|---|---|---|",
        *(
            f"| {_cell(one.model)} | {one.tasks} | {one.completed} | {one.seconds:,.1f} s "
            f"| {one.usage.input_tokens:,} / {one.usage.output_tokens:,} | {money(one.costs)} |"
            for one in report.models
        ),
    ]
    failed = [one for one in report.rows if one.state != "completed"]
    if failed:
        lines += ["", "## Not completed", "", "| task | state | why |", "|---|---|---|"]
        for one in failed[:_MOST_SHOWN]:
            why = f"{one.code}: {one.message}" if one.code else ""
            place = f"[{one.id}]({one.folder}/transcript.md)" if one.folder else one.id
            lines.append(f"| {place} | {one.state} | {_cell(why)} |")
        if len(failed) > _MOST_SHOWN:
            lines += ["", f"and {len(failed) - _MOST_SHOWN} more; `report.html` has them all."]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _junit(report: Report) -> str:
    """Return JUnit XML: a failed task is an error, a task without a deliverable a failure."""
    counts = Counter(_kind(one) for one in report.rows)
    head = (
        f"tests={quoteattr(str(report.tasks))} failures={quoteattr(str(counts['failure']))} "
        f"errors={quoteattr(str(counts['error']))} skipped={quoteattr(str(counts['skipped']))} "
        f"time={quoteattr(f'{report.seconds:.3f}')}"
    )
    cases = "".join(map(_case, report.rows))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites {head}>\n<testsuite name={quoteattr(report.batch_id)} {head}>\n"
        f"{cases}</testsuite>\n</testsuites>\n"
    )


def _kind(row: TaskRow) -> str:
    kinds = {"completed": "", "incomplete": "failure", "failed": "error", "blocked": "error"}
    return kinds.get(row.state, "skipped")


def _case(row: TaskRow) -> str:
    kind = _kind(row)
    head = (
        f"<testcase classname={quoteattr(_plain(row.model))} name={quoteattr(row.id)} "
        f'time="{row.seconds:.3f}"'
    )
    if not kind:
        return f"{head}/>\n"
    reported = f"<{kind} type={quoteattr(row.code)} message={quoteattr(_plain(row.message))}"
    if kind == "skipped":
        reported = f"<skipped message={quoteattr(row.state)}"
    body = f">{escape(row.folder)}</{kind}>" if row.folder else "/>"
    return f"{head}>{reported}{body}</testcase>\n"


def _plain(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return "".join(one if one.isprintable() else " " for one in text)
