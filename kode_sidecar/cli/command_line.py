"""The command line: parsing only."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from kode_sidecar.boot.doctor import examine
from kode_sidecar.boot.installation import WIRE_FILES, build_info, wire_file
from kode_sidecar.chat import ChatOptions, chat
from kode_sidecar.cli.kept import list_command, migrate_command, show_command
from kode_sidecar.demo import DemoOptions, play, play_job, serve_model
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.session import Mode
from kode_sidecar.records.messages import StorageName
from kode_sidecar.settings import load_settings

RUN_ABOUT = (
    "Do the job that a configuration describes, in a sandbox, and judge it by what it delivers. "
    "Exit codes: 0 completed, 3 incomplete, 4 blocked, 1 failed, 130 cancelled."
)

Serve = Callable[..., int]


def run_command(arguments: Sequence[str], serve: Serve) -> int:
    """Run one command; the exit code (2 for a wrong command line). Raises KeyboardInterrupt."""
    options = _parser().parse_args(arguments)
    if options.version:
        print(f"kode-sidecar {build_info()}")
        return 0
    try:
        if options.command == "doctor":
            return _doctor(options.env_file)
        if options.command == "protocol":
            return _protocol(options.out)
        if options.command == "demo":
            run = serve_model if options.serve_model else play_job if options.headless else play
            return asyncio.run(run(_demo_options(options)))
        if options.command == "sessions":
            return migrate_command(options.to, options.env_file, dry_run=options.dry_run)
        if options.command == "chat":
            return chat(_chat_options(options))
        if options.command == "run":
            # Late: the agent with all it needs, which no other command loads.
            from kode_sidecar.cli.run import run_command_line  # noqa: PLC0415

            return run_command_line(options)
        if options.command == "runs":
            return _runs(options)
        if options.command == "replay":
            return _replay(options)
        return serve(options.env_file, options.record, options.tape, options.requests)
    except KodeError as error:
        print(f"kode-sidecar: {error.message}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kode-sidecar",
        description="The agent back end an editor spawns. Without a command: serve.",
    )
    parser.add_argument("--version", action="store_true", help="which build this is, and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser("serve", help="speak LSP and kode/* on stdin and stdout")
    doctor = commands.add_parser("doctor", help="show every setting, its source and what is wrong")
    for command in (serve, doctor):
        command.add_argument(
            "--env-file", metavar="FILE", help="settings file instead of .env in the state folder"
        )
    _add_tapes(serve)
    _add_replay(commands.add_parser)
    demo = commands.add_parser("demo", help="play a recorded turn through the real process")
    demo.add_argument("--live", action="store_true", help="ask the real service (KIMI_API_KEY)")
    demo.add_argument("--fast", action="store_true", help="no pauses")
    demo.add_argument("--headless", action="store_true", help="governed runs instead of a turn")
    demo.add_argument(
        "--serve-model",
        action="store_true",
        help="no play: the recorded model alone, for a client of your own",
    )
    talk = commands.add_parser(
        "chat",
        help="talk to the model in this terminal, and decide on its edits",
        description="Talk to the model in this terminal. Every proposed hunk is put to you; what "
        "you accept is written to the file. With piped input every line is a prompt and hunks are "
        "rejected. /help lists the commands.",
    )
    talk.add_argument("--root", metavar="DIR", type=Path, help="project; here by default")
    talk.add_argument("--model", metavar="NAME", help="a logical model or an id of the service")
    talk.add_argument("--mode", choices=get_args(Mode), help="what becomes of proposed edits")
    talk.add_argument("--accept", action="store_true", help="accept hunks without asking")
    talk.add_argument("--trust", action="store_true", help="you trust this project's own files")
    for command in (demo, talk):
        command.add_argument(
            "--locale", choices=("zh", "en"), help="language; the system's by default"
        )
    protocol = commands.add_parser(
        "protocol", help="write the wire contract: JSON Schema, TypeScript, method reference"
    )
    protocol.add_argument("--out", metavar="DIR", required=True, type=Path, help="where to")
    sessions = commands.add_parser("sessions", help="care for the sessions that are kept")
    _add_migrate(sessions)
    _add_run(commands.add_parser("run", help="do a job without an editor", description=RUN_ABOUT))
    runs = commands.add_parser("runs", help="what became of runs")
    kinds = runs.add_subparsers(dest="runs_command", metavar="list|show", required=True)
    listed = kinds.add_parser("list", help="all runs, newest first")
    listed.add_argument("--folder", metavar="DIR", type=Path, help="instead of the state folder's")
    shown = kinds.add_parser("show", help="one run")
    shown.add_argument("run", metavar="RUN", help="its id or its folder")
    for command in (listed, shown):
        command.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(env_file=None, record=None, tape=None, requests=None)
    return parser


def _add_migrate(sessions: argparse.ArgumentParser) -> None:
    actions = sessions.add_subparsers(dest="action", metavar="ACTION", required=True)
    migrate = actions.add_parser(
        "migrate",
        help="keep the messages of all sessions in another way",
        description="Move the messages of every kept session to SQLite or back to lines of JSON. "
        "Each copy is compared with its original before that one is deleted. Sessions that a "
        "sidecar has open are skipped; run it again for them. New sessions are made as the setting "
        "`storage` says. The exit code is 1 when a session could not be moved.",
    )
    migrate.add_argument(
        "--to", choices=get_args(StorageName), required=True, help="how they are kept afterwards"
    )
    migrate.add_argument("--dry-run", action="store_true", help="tell what would be done, only")
    migrate.add_argument(
        "--env-file", metavar="FILE", help="settings file instead of .env in the state folder"
    )


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("--config", metavar="FILE", type=Path, help="the job, as YAML")
    run.add_argument(
        "--init",
        metavar="FILE",
        nargs="?",
        const=Path("run.yaml"),
        type=Path,
        help="write a configuration to begin with, and nothing else; run.yaml by default",
    )
    prompt = run.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="what is to be done")
    prompt.add_argument("--prompt-file", metavar="FILE", type=Path, help="a file that says it")
    run.add_argument("--workspace", metavar="DIR", type=Path, help="project to work on a copy of")
    run.add_argument("--sandbox", metavar="DIR", type=Path, help="folder of the run")
    for name in ("session", "task", "run"):
        run.add_argument(f"--{name}-id", metavar="ID", default="", help="made up by default")
    run.add_argument("--model", metavar="NAME", help="instead of the configuration's")
    run.add_argument("--stream", action=argparse.BooleanOptionalAction, help="answers as they grow")
    run.add_argument("--max-steps", metavar="N", type=int, help="answers with tool calls")
    run.add_argument("--timeout", metavar="SECONDS", type=float, help="for the engine's work")
    run.add_argument("--dry-run", action="store_true", help="stop before the engine")
    run.add_argument("--show-prompt", action="store_true", help="print the composed prompt only")
    run.add_argument("--json", action="store_true", help="the result for programs")
    run.add_argument("--env-file", metavar="FILE", help="settings instead of the user's .env")


def _add_tapes(serve: argparse.ArgumentParser) -> None:
    source = serve.add_mutually_exclusive_group()
    source.add_argument(
        "--record",
        metavar="FILE",
        help="record all that comes in and goes out, and the files of the project but for ignored, "
        "secret and very large ones; never a key",
    )
    source.add_argument(
        "--tape", metavar="FILE", help="play a recording: no key, no network (see replay)"
    )
    serve.add_argument(
        "--requests", metavar="FILE", help="with --tape: where what the model is asked goes"
    )


def _add_replay(add: Callable[..., argparse.ArgumentParser]) -> None:
    again = add(
        "replay",
        help="play a recording of `serve --record` and name the first difference",
        description="Spawns the real process, sends it what the editor sent, lets the recording "
        "answer for the model, and compares what the process says. No key, no network. Exit code "
        "0: the same; 1: a difference, which is named; 2: this could not be found out.",
    )
    again.add_argument("file", metavar="FILE", type=Path, help="a recording, or its folder")
    again.add_argument(
        "--serve",
        action="store_true",
        help="be the recorded server on stdin and stdout, for a plugin's own tests",
    )
    again.add_argument(
        "--against", metavar="CMD", help="another build, such as dist/kode-sidecar/kode-sidecar"
    )
    again.add_argument(
        "--patience",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="how long the process may be silent when something is due (%(default)g)",
    )


def _runs(options: argparse.Namespace) -> int:
    if options.runs_command == "list":
        return list_command(json=options.json, folder=options.folder)
    return show_command(options.run, json=options.json)


def _demo_options(options: argparse.Namespace) -> DemoOptions:
    return DemoOptions(live=options.live, fast=options.fast, locale=options.locale)


def _chat_options(options: argparse.Namespace) -> ChatOptions:
    return ChatOptions(
        root=options.root,
        model=options.model,
        mode=options.mode,
        accept=options.accept,
        trusted=options.trust,
        locale=options.locale,
    )


def _replay(options: argparse.Namespace) -> int:
    from kode_sidecar.recording.replay import ReplayOptions, replay  # noqa: PLC0415

    return replay(
        ReplayOptions(
            file=options.file,
            serve=options.serve,
            against=options.against,
            patience=options.patience,
        )
    )


def _protocol(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in WIRE_FILES:
            (folder / name).write_bytes(wire_file(name))
            print(folder / name)
    except OSError as error:
        raise KodeError("Storage", f"Cannot write to {folder}: {error.strerror}.") from None
    return 0


def _doctor(env_file: str | None) -> int:
    """Print the report; exit code 1 when something is wrong."""
    report = examine(load_settings(os.environ, env_file=env_file))
    print(f"kode-sidecar {build_info()}")
    print(f"protocol {report.protocol_version} on {report.platform}\n")
    width = max(len(setting.name) for setting in report.settings)
    for setting in report.settings:
        print(f"  {setting.name:<{width}}  {setting.value!s:<40}  {setting.source}")
    print()
    for check in report.checks:
        print(f"  {'ok  ' if check.ok else 'FAIL'} {check.name}: {check.message}")
        if check.hint is not None:
            print(f"       {check.hint}")
    return 0 if all(check.ok for check in report.checks) else 1
