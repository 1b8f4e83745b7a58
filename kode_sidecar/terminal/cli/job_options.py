"""The options of jobs and of `review`, and the class that adds commands with an example."""

import argparse
from pathlib import Path
from typing import Any

RUN_ABOUT = (
    "Do the job that a configuration describes, in a sandbox, and judge it by what it delivers."
)


def count(text: str) -> int:
    """Parse a number of at least 1. Raises ArgumentTypeError below 1, ValueError for no number."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too few: at least 1")
    return number


class _CommandParser(argparse.ArgumentParser):
    """Reports what it does not know with its own usage; `argparse` shows that of the program."""

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - an overload is enough
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """See `ArgumentParser.parse_known_args`; nothing is left over."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


class CommandParsers:
    """Adds commands that show an example with their help."""

    def __init__(self, parser: argparse.ArgumentParser, dest: str, **more: Any) -> None:
        self._commands = parser.add_subparsers(dest=dest, parser_class=_CommandParser, **more)

    def add(
        self, name: str, about: str, example: str, *, json: bool = False, description: str = ""
    ) -> argparse.ArgumentParser:
        """Return the parser of a new command."""
        command = self._commands.add_parser(
            name,
            help=about,
            description=description or f"{about[:1].upper()}{about[1:]}.",
            epilog=f"example: kode-sidecar {example}",
        )
        if json:
            command.add_argument("--json", action="store_true", help="for programs")
        return command


def add_env_file(command: argparse.ArgumentParser) -> None:
    """Add `--env-file`."""
    command.add_argument(
        "--env-file", metavar="FILE", help="settings file instead of .env in the state folder"
    )


def _add_prompt(command: argparse.ArgumentParser, about: str) -> None:
    prompt = command.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help=about)
    prompt.add_argument("--prompt-file", metavar="FILE", type=Path, help="a file that says it")


def add_run(commands: CommandParsers) -> None:
    """Add `run`: one job."""
    run = commands.add(
        "run",
        "do a job without an editor",
        "run --config job.yaml --prompt-file task.md --workspace .",
        json=True,
        description=RUN_ABOUT,
    )
    run.add_argument("--config", metavar="FILE", type=Path, help="the job, as YAML")
    run.add_argument(
        "--init",
        metavar="FILE",
        nargs="?",
        const=Path("run.yaml"),
        type=Path,
        help="write a configuration to begin with, and nothing else; run.yaml by default",
    )
    _add_prompt(run, "what is to be done")
    run.add_argument("--workspace", metavar="DIR", type=Path, help="project to work on a copy of")
    run.add_argument("--sandbox", metavar="DIR", type=Path, help="folder of the run")
    for name in ("session", "task", "run"):
        run.add_argument(f"--{name}-id", metavar="ID", default="", help="made up by default")
    run.add_argument("--model", metavar="NAME", help="instead of the configuration's")
    run.add_argument("--stream", action=argparse.BooleanOptionalAction, help="answers as they grow")
    run.add_argument("--max-steps", metavar="N", type=int, help="answers with tool calls")
    run.add_argument("--timeout", metavar="SECONDS", type=float, help="for the engine's work")
    run.add_argument(
        "--set", metavar="FIELD=VALUE", action="append", default=[], help="model.temperature=0"
    )
    run.add_argument("--dry-run", action="store_true", help="stop before the engine")
    run.add_argument("--show-prompt", action="store_true", help="print the composed prompt only")
    add_env_file(run)


def add_batch(commands: CommandParsers) -> None:
    """Add `batch`: many jobs."""
    batch = commands.add(
        "batch",
        "do many jobs: once each, within one budget, to be resumed",
        "batch --config job.yaml --tasks tasks.jsonl --out out --jobs 4",
        json=True,
        description="Do a job for every task, each as a governed run of its own. Nothing is lost "
        "and nothing is done twice: `resume` goes on wherever it was ended, however it was ended.",
    )
    batch.add_argument("--config", metavar="FILE", type=Path, help="the job, as YAML")
    batch.add_argument(
        "--tasks", metavar="PATH", type=Path, help="lines of JSON, or a folder: see docs/batch.md"
    )
    batch.add_argument("--out", metavar="DIR", type=Path, help="where all records go")
    _add_prompt(batch, "what is to be done in each task")
    batch.add_argument("--jobs", metavar="N", type=count, default=2, help="at once (%(default)s)")
    batch.add_argument(
        "--attempts", metavar="N", type=count, default=3, help="of a run that is cut (%(default)s)"
    )
    batch.add_argument("--archives", action="store_true", help="workers share no folders with us")
    add_env_file(batch)
    batch.add_argument("--dry-run", action="store_true", help="check all tasks, and run none")
    _add_limits(batch)
    where = batch.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, such as tcp://host:8786")
    where.add_argument("--dask", choices=("local",), help="a Dask cluster on this machine")
    kinds = CommandParsers(batch, "batch_command", metavar="status|resume|report")
    status = kinds.add("status", "how far one is", "batch status out", json=True)
    resume = kinds.add("resume", "go on with one", "batch resume out", json=True)
    resume.add_argument("--failed", action="store_true", help="also what did not complete")
    resume.add_argument(
        "--trust", action="store_true", help="go on with a batch that somebody else made"
    )
    resume.add_argument("--jobs", metavar="N", type=count, help="instead of the batch's own")
    resume.add_argument("--scheduler", metavar="ADDRESS", help="instead of the batch's own")
    _add_limits(resume)
    report = kinds.add(
        "report", "write report.html, .md, .json, .xml", "batch report out", json=True
    )
    for command in (status, resume, report):
        command.add_argument("folder", metavar="DIR", type=Path, help="its --out")


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument("--budget", metavar="AMOUNT", help="begin nothing beyond it: 20CNY")
    command.add_argument("--max-failures", metavar="N", type=count, help="then begin nothing more")


def add_runs(commands: CommandParsers) -> None:
    """Add `runs`: the records of jobs."""
    runs = commands.add("runs", "what became of runs", "runs list")
    kinds = CommandParsers(runs, "runs_command", metavar="list|show", required=True)
    listed = kinds.add("list", "all runs, newest first", "runs list", json=True)
    listed.add_argument("--folder", metavar="DIR", type=Path, help="instead of the state folder's")
    shown = kinds.add("show", "one run", "runs show RUN", json=True)
    shown.add_argument("run", metavar="RUN", help="its id or its folder")


def add_review(commands: CommandParsers) -> None:
    """Add `review`."""
    review = commands.add(
        "review",
        "review changes, and print the findings",
        "review origin/main...HEAD --format sarif --fail-on error",
        description="Has changes reviewed by readers side by side. What they quote is compared "
        "with the text, and a second reader tries to refute each finding. No file is written. "
        "Without RANGE: all that is not committed.",
    )
    review.add_argument("range", metavar="RANGE", nargs="?", help="a commit, A..B or A...B")
    review.add_argument("--staged", action="store_true", help="what Git would commit")
    review.add_argument(
        "--base", metavar="BRANCH", nargs="?", const="", help="all since BRANCH; main or master"
    )
    review.add_argument(
        "--path", metavar="PATH", action="append", default=[], help="only this one; may be repeated"
    )
    review.add_argument("--focus", metavar="TEXT", default="", help="what matters to you")
    review.add_argument("--nits", action="store_true", help="matters of taste, too")
    review.add_argument(
        "--format",
        choices=("text", "json", "sarif", "markdown", "github"),
        default="text",
        help="how findings are printed; github: as annotations of a workflow",
    )
    review.add_argument(
        "--fail-on",
        choices=("error", "warning", "info", "nit"),
        help="exit code 5 if a finding is so severe",
    )
    review.add_argument(
        "--root",
        metavar="DIR",
        type=Path,
        action="append",
        help="project, here by default; given again: several, in one report",
    )
    review.add_argument("--model", metavar="NAME", help="a logical model or an id of the service")
    review.add_argument("--trust", action="store_true", help="read this project's own REVIEW.md")
