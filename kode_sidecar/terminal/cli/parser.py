"""Defines the command line for argparse: every command with an example."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from kode_sidecar.terminal.cli.complete import SCRIPTS
from kode_sidecar.terminal.cli.job_options import (
    CommandParsers,
    add_batch,
    add_env_file,
    add_review,
    add_run,
    add_runs,
    count,
)

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "failed; what is wrong is said on stderr",
    2: "the command line is wrong; of `replay`: it could not be found out",
    3: "not all of it: a deliverable is missing, a limit was reached, a file was not reviewed",
    4: "blocked: the configuration of a run was refused",
    5: "a review found something as severe as `--fail-on`",
    130: "cancelled by Ctrl-C",
}
"""The meaning of each exit code, for all commands."""


def make_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser; if `words` begin with a command's name, with that command only."""
    codes = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    parser = argparse.ArgumentParser(
        prog="kode-sidecar",
        description="The agent back end an editor spawns. Without a command: serve.",
        epilog=f"Exit codes: {codes}.",
    )
    parser.add_argument("--version", action="store_true", help="which build this is, and end")
    commands = CommandParsers(parser, "command", metavar="COMMAND")
    asked = words[:1] if words and words[0] in _ADD else _ADD
    for name in asked:
        _ADD[name](commands)
    parser.set_defaults(env_file=None, record=None, tape=None, requests=None, grease=False)
    return parser


def _add_serve(commands: CommandParsers) -> None:
    serve = commands.add("serve", "speak LSP and kode/* on stdin and stdout", "serve")
    add_env_file(serve)
    _add_tapes(serve)


def _add_acp(commands: CommandParsers) -> None:
    acp = commands.add(
        "acp",
        "speak the Agent Client Protocol on stdin and stdout (Zed, JetBrains, Emacs ...)",
        "acp --trust",
    )
    acp.add_argument("--trust", action="store_true", help="you trust the projects' own files")
    add_env_file(acp)


def _add_doctor(commands: CommandParsers) -> None:
    doctor = commands.add(
        "doctor", "show every setting, its source and what is wrong", "doctor --online", json=True
    )
    doctor.add_argument("--online", action="store_true", help="ask the hosts whether keys are good")
    add_env_file(doctor)


def _add_demo(commands: CommandParsers) -> None:
    demo = commands.add(
        "demo", "play a recorded turn through the real process", "demo --headless --fast"
    )
    demo.add_argument("--live", action="store_true", help="ask the real service (KIMI_API_KEY)")
    demo.add_argument("--fast", action="store_true", help="no pauses")
    demo.add_argument("--headless", action="store_true", help="governed runs instead of a turn")
    demo.add_argument(
        "--serve-model",
        action="store_true",
        help="no play: the recorded model alone, for a client of your own",
    )
    _add_locale(demo)


def _add_protocol(commands: CommandParsers) -> None:
    protocol = commands.add(
        "protocol",
        "write the wire contract: JSON Schema, TypeScript, method reference",
        "protocol --out contract",
    )
    protocol.add_argument("--out", metavar="DIR", required=True, type=Path, help="where to")


def _add_completion(commands: CommandParsers) -> None:
    completion = commands.add(
        "completion",
        "print what makes a shell complete this command line",
        "completion bash >> ~/.bashrc",
    )
    completion.add_argument("shell", choices=tuple(SCRIPTS))


def _add_complete(commands: CommandParsers) -> None:
    complete = commands.add("complete", "what a shell asks", "complete -- ses")
    complete.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _add_setup(commands: CommandParsers) -> None:
    setup = commands.add(
        "setup",
        "choose a provider, test its key, and keep both in your .env",
        "setup deepseek",
        description="Asks for a provider and a key, tests the key with one free request, and "
        "writes the key and the model to the file .env of your state folder, which only you can "
        "read. Where nobody sits at the terminal the key is the first line of standard input.",
    )
    setup.add_argument(
        "provider", metavar="PROVIDER", nargs="?", help="one word, such as qwen, or an address"
    )
    setup.add_argument("--model", metavar="NAME", help="instead of the provider's first one")
    setup.add_argument("--untested", action="store_true", help="no request: keep the key as it is")
    _add_locale(setup)


def _add_locale(command: argparse.ArgumentParser) -> None:
    command.add_argument("--locale", choices=("zh", "en"), help="language; the system's by default")


def _add_root(command: argparse.ArgumentParser) -> None:
    command.add_argument("--root", metavar="DIR", type=Path, help="project; here by default")


def _add_session(command: argparse.ArgumentParser) -> None:
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--continue", dest="go_on", action="store_true", help="in this folder's latest session"
    )
    where.add_argument("--session", metavar="ID", help="in this one; its first letters will do")


def _add_turn(command: argparse.ArgumentParser) -> None:
    """Add the options of a turn."""
    from kode_sidecar.core.protocol.session import Mode  # noqa: PLC0415

    command.add_argument("--model", metavar="NAME", help="a logical model or an id of the service")
    command.add_argument(
        "--agent", metavar="NAME", help="of a new session: coder by default; ide-helper, your own"
    )
    command.add_argument("--mode", choices=get_args(Mode), help="what becomes of proposed edits")


def _add_chat(commands: CommandParsers) -> None:
    talk = commands.add(
        "chat",
        "talk to the model in this terminal, and decide on its edits",
        'chat "why does this fail?"',
        description="Talk to the model in this terminal. Every proposed hunk is put to you; what "
        "you accept is written to the file. Piped input is one prompt, and hunks are rejected. "
        "/help lists the commands.",
    )
    talk.add_argument("prompt", metavar="PROMPT", nargs="*", help="what is asked first")
    _add_root(talk)
    _add_session(talk)
    _add_turn(talk)
    talk.add_argument("--accept", action="store_true", help="accept hunks without asking")
    talk.add_argument("--trust", action="store_true", help="you trust this project's own files")
    talk.add_argument("--lines", action="store_true", help="piped input: each line is a prompt")
    _add_locale(talk)


def _add_model(commands: CommandParsers) -> None:
    model = commands.add(
        "model",
        "a model on the loopback that plays a script, for the tests of a client",
        "model edits --folder /tmp/project",
    )
    model.add_argument(
        "script",
        metavar="SCRIPT",
        help="a YAML file, or a ready one: ask, edits, everything, hello, permission …",
    )
    model.add_argument(
        "--folder",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="project of the turn, which gets the files that the script is about; here by default",
    )
    model.add_argument("--port", metavar="N", type=int, default=0, help="any free one by default")
    model.add_argument("--check", action="store_true", help="read the script and end: code 0 or 1")


def _add_ask(commands: CommandParsers) -> None:
    ask = commands.add(
        "ask",
        "one question, one answer; edits stay proposals",
        'ask "why does this fail?" < build.log',
        json=True,
        description="Asks once and prints the answer, then what it proposes as a diff. Nobody is "
        "asked anything, no file is written. What is piped in goes along as an attachment.",
    )
    ask.add_argument("prompt", metavar="PROMPT", nargs="*", help="what is asked")
    ask.add_argument(
        "--verb", metavar="NAME", default="", help="by this verb or skill; an unknown one lists all"
    )
    _add_root(ask)
    _add_session(ask)
    _add_turn(ask)


def _add_sessions(commands: CommandParsers) -> None:
    # Imported late: only commands that need the wire types pay for them and for msgspec.
    from kode_sidecar.core.protocol.session import ExportFormat  # noqa: PLC0415

    sessions = commands.add("sessions", "care for the sessions that are kept", "sessions list")
    actions = CommandParsers(sessions, "action", metavar="ACTION", required=True)
    listed = actions.add("list", "the sessions of this folder", "sessions list --all", json=True)
    search = actions.add(
        "search", "those that hold some words", 'sessions search "tea price"', json=True
    )
    search.add_argument("query", metavar="WORDS", help="in titles, prompts and answers")
    for command in (listed, search):
        command.add_argument("--all", action="store_true", help="of all folders")
        command.add_argument("--limit", metavar="N", type=count, default=50, help="%(default)s")
        _add_root(command)
    shown = actions.add("show", "what was said in one", "sessions show 019a", json=True)
    export = actions.add(
        "export", "one as text", "sessions export 019a --format md -o talk.md", json=True
    )
    export.add_argument("--format", choices=get_args(ExportFormat)[:2], default="md")
    export.add_argument("-o", "--output", metavar="FILE", type=Path, help="instead of stdout")
    fork = actions.add("fork", "a copy to go on in", "sessions fork 019a", json=True)
    fork.add_argument("--at", metavar="MESSAGE", help="the last message of the copy")
    for command in (shown, export, fork):
        command.add_argument("id", metavar="ID", help="its id, or how that begins")
    delete = actions.add("delete", "remove some for good", "sessions delete 019a", json=True)
    delete.add_argument("ids", metavar="ID", nargs="+", help="its id, or how that begins")
    _add_migrate(actions)


def _add_usage(commands: CommandParsers) -> None:
    from kode_sidecar.core.protocol.process import UsageKey  # noqa: PLC0415

    used = commands.add(
        "usage", "tokens and money", "usage --by model --since 2026-11-01", json=True
    )
    used.add_argument("--by", choices=get_args(UsageKey), action="append", help="a row for each")
    used.add_argument("--since", metavar="DAY", help="such as 2026-01-31")
    used.add_argument("--until", metavar="DAY", help="this day included")
    used.add_argument("--session", metavar="ID", help="of one session")


def _add_skills(commands: CommandParsers) -> None:
    commands.add("skills", "the skills that the model can load", "skills", json=True)


def _add_hooks(commands: CommandParsers) -> None:
    hooks = commands.add(
        "hooks", "your scripts at events, and those of this folder", "hooks", json=True
    )
    hooks.add_argument("--trust", metavar="ID", help="run it, as long as its text is this one")
    add_env_file(hooks)


def _add_memory(commands: CommandParsers) -> None:
    memory = commands.add(
        "memory", "what the model is to remember", "memory --accept 3f2a", json=True
    )
    memory.add_argument("--accept", metavar="ID", action="append", help="remember it")
    memory.add_argument("--reject", metavar="ID", action="append", help="forget it")


def _add_models(commands: CommandParsers) -> None:
    commands.add("models", "what may be said as model; asks the hosts", "models", json=True)


def _add_mcp(commands: CommandParsers) -> None:
    mcp = commands.add("mcp", "tool servers of your own", "mcp list")
    actions = CommandParsers(mcp, "action", metavar="ACTION", required=True)
    listed = actions.add("list", "those that are configured", "mcp list --trust", json=True)
    test = actions.add("test", "start one, and see what it offers", "mcp test git", json=True)
    allow = actions.add(
        "allow",
        "let one start that this project names, until its entry changes",
        "mcp allow git --trust",
        json=True,
    )
    refuse = actions.add("refuse", "never start it", "mcp refuse git --trust", json=True)
    login = actions.add(
        "login",
        "log in to one by your browser, and keep its token in your state folder",
        "mcp login tracker",
    )
    for command in (test, allow, refuse, login):
        command.add_argument("name", metavar="NAME", help="as `mcp list` shows it")
    for command in (listed, test, allow, refuse):
        _add_root(command)
        command.add_argument(
            "--trust", action="store_true", help="look at .mcp.json and .kode/mcp.yaml, too"
        )
    add = actions.add(
        "add",
        "write one to your config.yaml",
        "mcp add --env GIT_TOKEN git -- uvx mcp-server-git",
        description="Writes a server to your config.yaml, whose other lines stay. Nothing is "
        "started. Variables are named, never their values.",
    )
    add.add_argument("name", metavar="NAME", help="up to 32 letters, digits, - and _")
    add.add_argument("--url", metavar="URL", default="", help="of a server that is a service")
    add.add_argument("--env", metavar="NAME", action="append", help="a variable that it gets")
    add.add_argument(
        "words", metavar="-- COMMAND", nargs=argparse.REMAINDER, help="the program and its words"
    )


def _add_migrate(actions: CommandParsers) -> None:
    from kode_sidecar.infrastructure.records.messages import StorageName  # noqa: PLC0415

    migrate = actions.add(
        "migrate",
        "keep the messages of all sessions in another way",
        "sessions migrate --to sqlite",
        description="Move the messages of every kept session to SQLite or back to lines of JSON. "
        "Each copy is compared with its original before that one is deleted. Sessions that a "
        "sidecar has open are skipped; run it again for them. New sessions are made as the setting "
        "`storage` says. The exit code is 1 when a session could not be moved.",
    )
    migrate.add_argument(
        "--to", choices=get_args(StorageName), required=True, help="how they are kept afterwards"
    )
    migrate.add_argument("--dry-run", action="store_true", help="tell what would be done, only")
    add_env_file(migrate)


def _add_tapes(serve: argparse.ArgumentParser) -> None:
    source = serve.add_mutually_exclusive_group()
    source.add_argument(
        "--record",
        metavar="FILE",
        help="record all that comes in and goes out, the files of the project but for ignored, "
        "secret and very large ones, and earlier sessions that are asked for; never a key",
    )
    source.add_argument(
        "--tape", metavar="FILE", help="play a recording: no key, no network (see replay)"
    )
    serve.add_argument(
        "--grease",
        action="store_true",
        help="with --record: add members, events, blocks and deltas that a right client ignores",
    )
    serve.add_argument(
        "--requests", metavar="FILE", help="with --tape: where what the model is asked goes"
    )


def _add_grade(commands: CommandParsers) -> None:
    grade = commands.add(
        "grade",
        "judge a client, or an agent of ACP, by recordings, rule by rule",
        "grade talk.jsonl",
        json=True,
        description="Says of each rule of the protocol whether the client kept it, broke it, and "
        "where, or had no occasion to. Recordings of `serve --record FILE --grease` say most. With "
        "--acp it judges agents and clients of the Agent Client Protocol, whoever made them: "
        "`--acp --drive talk.jsonl -- AGENT` tries an agent with a scripted client; a client that "
        "is to be judged gets `--acp --record talk.jsonl` as its agent, then `--acp talk.jsonl` "
        "says how it did. Exit code 0: no rule is broken; 1: one is; 2: a file cannot be read.",
    )
    grade.add_argument("recordings", metavar="RECORDING", nargs="*", help="or an agent's program")
    grade.add_argument("--acp", action="store_true", help="the Agent Client Protocol")
    grade.add_argument("--record", metavar="FILE", type=Path, help="be an agent, and record")
    grade.add_argument("--drive", metavar="FILE", type=Path, help="try an agent, record and judge")
    grade.add_argument("--side", choices=("agent", "client"), action="append", help="judge it only")
    grade.add_argument("--show", action="store_true", help="the message of each finding, too")
    grade.add_argument("--junit", metavar="FILE", type=Path, help="write a report for CI there")
    grade.add_argument(
        "--require",
        metavar="RULE",
        action="append",
        default=[],
        help="exit code 1 if no recording has an occasion for this rule; may be given again",
    )


def _add_replay(commands: CommandParsers) -> None:
    again = commands.add(
        "replay",
        "play a recording of `serve --record` and name the first difference",
        "replay talk.tape",
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
        "--strict",
        action="store_true",
        help="with --serve: fail a client that breaks a rule of `grade`, answers with an error "
        "where the recorded one did not, or is silent (--patience)",
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


_ADD: Mapping[str, Callable[[CommandParsers], None]] = {
    "serve": _add_serve,
    "acp": _add_acp,
    "doctor": _add_doctor,
    "setup": _add_setup,
    "chat": _add_chat,
    "ask": _add_ask,
    "review": add_review,
    "sessions": _add_sessions,
    "usage": _add_usage,
    "skills": _add_skills,
    "hooks": _add_hooks,
    "memory": _add_memory,
    "models": _add_models,
    "mcp": _add_mcp,
    "demo": _add_demo,
    "model": _add_model,
    "protocol": _add_protocol,
    "replay": _add_replay,
    "grade": _add_grade,
    "run": add_run,
    "batch": add_batch,
    "runs": add_runs,
    "completion": _add_completion,
    "complete": _add_complete,
}
"""The function that adds each command, in the order of the help."""
