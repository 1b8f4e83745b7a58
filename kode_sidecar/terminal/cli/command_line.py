"""The command line: which function does what."""

import argparse
import asyncio
import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kode_sidecar.core.protocol.process import Check, DoctorResult
from kode_sidecar.core.settings import client_agent, load_settings
from kode_sidecar.devtools.demo import DemoOptions, play, play_job, serve_model, serve_script
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.build_info import build_info
from kode_sidecar.servers.boot.doctor import examine
from kode_sidecar.servers.boot.provider_setup import usable_model
from kode_sidecar.servers.boot.wire_files import WIRE_FILES, wire_file
from kode_sidecar.terminal.cli import inquiry, mcp
from kode_sidecar.terminal.cli.complete import SCRIPTS, candidates
from kode_sidecar.terminal.cli.kept import list_command, migrate_command, show_command
from kode_sidecar.terminal.cli.parser import make_parser
from kode_sidecar.terminal.cli.setup import setup_command

Serve = Callable[..., int]
# Of writing to stdout: its reader has gone (Windows says so in a way of its own), its disk is full.
_READER_GONE = (errno.EPIPE, errno.EINVAL) if sys.platform == "win32" else (errno.EPIPE,)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def run_command(arguments: Sequence[str], serve: Serve, acp: Serve) -> int:
    """Run one command; its exit code, of `EXIT_CODES`. Raises KeyboardInterrupt."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.version:
        print(f"kode-sidecar {build_info()}")
        return 0
    if options.command in (None, "serve"):
        run: Callable[[argparse.Namespace], int] = partial(_serve, serve=serve)
    elif options.command == "acp":
        return acp(options.env_file, options.trust)
    elif options.command == "complete":
        words = [word for number, word in enumerate(options.words) if number or word != "--"]
        print(*candidates(parser, words), sep="\n")
        return 0
    else:
        run = COMMANDS[options.command]
    try:
        code = run(options)
        sys.stdout.flush()  # at the end of the interpreter nobody catches what this raises
        return code
    except KodeError as error:
        print(f"kode-sidecar: {error.message}", file=sys.stderr)
    except OSError as error:
        if error.errno in _DISK_FULL and error.filename is None:
            print(f"kode-sidecar: cannot write: {error.strerror}", file=sys.stderr)
        elif error.errno == errno.ENOENT and error.filename is None:  # as `os.getcwd` says it
            print("kode-sidecar: the folder you are in is gone; go to another one", file=sys.stderr)
        elif error.errno not in _READER_GONE or error.filename is not None:
            raise  # the reader, such as `head`, may have read enough: that is no error
        # What is still held goes nowhere: the interpreter would try, and complain, once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _serve(options: argparse.Namespace, serve: Serve) -> int:
    if options.grease and not options.record:
        print("kode-sidecar serve: --grease needs --record", file=sys.stderr)
        return 2
    files = (options.env_file, options.record, options.tape, options.requests)
    return serve(*files, grease=options.grease)


def _demo(options: argparse.Namespace) -> int:
    run = serve_model if options.serve_model else play_job if options.headless else play
    shown = DemoOptions(live=options.live, fast=options.fast, locale=options.locale)
    return asyncio.run(run(shown))


def _model(options: argparse.Namespace) -> int:
    return asyncio.run(serve_script(options.script, options.folder.resolve()))


def _sessions(options: argparse.Namespace) -> int:
    if options.action == "migrate":
        return migrate_command(options.to, options.env_file, dry_run=options.dry_run)
    work, lines = {
        "list": (inquiry.all_sessions, inquiry.session_lines),
        "search": (inquiry.all_sessions, inquiry.session_lines),
        "show": (inquiry.one_session, inquiry.session_text),
        "export": (inquiry.exported, inquiry.exported_text),
        "fork": (inquiry.forked, inquiry.forked_line),
        "delete": (inquiry.deleted, inquiry.deleted_lines),
    }[options.action]
    return inquiry.inquire(options, work, lines)


def _run(options: argparse.Namespace) -> int:
    # Late: the agent with all it needs, which other commands do without.
    from kode_sidecar.terminal.cli.run import run_command_line  # noqa: PLC0415

    return run_command_line(options)


def _batch(options: argparse.Namespace) -> int:
    # Late: governed runs, which other commands do without.
    from kode_sidecar.terminal.cli.batch import batch_command  # noqa: PLC0415

    return batch_command(options)


def _ask(options: argparse.Namespace) -> int:
    from kode_sidecar.terminal.cli.ask import ask  # noqa: PLC0415

    return ask(options)


def _mcp(options: argparse.Namespace) -> int:
    if options.action in ("add", "login"):
        return (mcp.add_command if options.action == "add" else mcp.login_command)(options)
    if options.action == "list":
        return inquiry.inquire(options, mcp.servers, mcp.server_lines)
    work = mcp.tried if options.action == "test" else mcp.decided
    return inquiry.inquire(options, work, mcp.server_text)


def _completion(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell], end="")
    return 0


def _runs(options: argparse.Namespace) -> int:
    if options.runs_command == "list":
        return list_command(json=options.json, folder=options.folder)
    return show_command(options.run, json=options.json)


def _chat(options: argparse.Namespace) -> int:
    from kode_sidecar.terminal.chat import ChatOptions, chat  # noqa: PLC0415

    loaded = load_settings(os.environ)
    return chat(
        ChatOptions(
            root=options.root,
            model=usable_model(loaded, options.model),
            agent=options.agent or client_agent(loaded),
            mode=options.mode,
            accept=options.accept,
            trusted=options.trust,
            locale=options.locale,
            by_lines=options.lines,
        )
    )


def _replay(options: argparse.Namespace) -> int:
    from kode_sidecar.devtools.recording.replay import ReplayOptions, replay  # noqa: PLC0415

    if options.serve and options.strict:
        from kode_sidecar.devtools.grading.strict import serve_strict  # noqa: PLC0415

        return serve_strict(options.file, options.patience)
    return replay(
        ReplayOptions(
            file=options.file,
            serve=options.serve,
            against=options.against,
            patience=options.patience,
        )
    )


def _grade(options: argparse.Namespace) -> int:
    from kode_sidecar.devtools.grading import grade  # noqa: PLC0415

    return grade(options.recordings, json=options.json)


def _protocol(options: argparse.Namespace) -> int:
    folder: Path = options.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in WIRE_FILES:
            (folder / name).write_bytes(wire_file(name))
            print(folder / name)
    except OSError as error:
        raise KodeError("Storage", f"Cannot write to {folder}: {error.strerror}.") from None
    return 0


def _doctor(options: argparse.Namespace) -> int:
    """Print the report; exit code 1 when something is wrong."""
    report = examine(load_settings(os.environ, env_file=options.env_file))
    if options.online:
        wrong = inquiry.host_problems(options.env_file)
        online = [Check(name="online", ok=False, message=text) for text in wrong]
        said = Check(name="online", ok=True, message="Every host with a key has answered.")
        report = replace(report, checks=(*report.checks, *(online or [said])))
    if options.json:
        print(msgspec.json.encode(report).decode())
    else:
        _print_report(report)
    return 0 if all(check.ok for check in report.checks) else 1


def _print_report(report: DoctorResult) -> None:
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


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "ask": _ask,
    "batch": _batch,
    "chat": _chat,
    "completion": _completion,
    "demo": _demo,
    "doctor": _doctor,
    "grade": _grade,
    "mcp": _mcp,
    "memory": partial(inquiry.inquire, work=inquiry.memory, lines=inquiry.memory_lines),
    "model": _model,
    "models": partial(inquiry.inquire, work=inquiry.models, lines=inquiry.model_lines),
    "protocol": _protocol,
    "replay": _replay,
    "run": _run,
    "runs": _runs,
    "sessions": _sessions,
    "setup": setup_command,
    "skills": partial(inquiry.inquire, work=inquiry.skills, lines=inquiry.skill_lines),
    "usage": partial(inquiry.inquire, work=inquiry.usage, lines=inquiry.usage_lines),
}
