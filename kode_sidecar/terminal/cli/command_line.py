"""Maps each command to its function, which is imported only when it is called."""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import partial
from importlib import import_module

from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.build_info import build_info

TYPE_CHECKING = False  # importing it from `typing` would slow down `--version`
if TYPE_CHECKING:
    import argparse
    from typing import Any, TextIO

Serve = Callable[..., int]
# Errors of writing to stdout: its reader has gone (EINVAL on Windows), or its disk is full.
_READER_GONE = (errno.EPIPE, errno.EINVAL) if sys.platform == "win32" else (errno.EPIPE,)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

_FOREIGN = ("batch", "doctor", "grade", "hooks", "replay", "runs")
"""Commands that print what others have written: no text of theirs may move the cursor or hide."""

COMMANDS: Mapping[str, str] = {
    "ask": "ask:ask",
    "batch": "batch:batch_command",
    "chat": "talk:chat_command",
    "completion": "complete:completion_command",
    "demo": "authors:demo_command",
    "doctor": "doctor:doctor_command",
    "grade": "authors:grade_command",
    "hooks": "hooks:hooks_command",
    "mcp": "mcp:mcp_command",
    "memory": "inquiry:inquiry_command",
    "model": "authors:model_command",
    "models": "inquiry:inquiry_command",
    "protocol": "authors:protocol_command",
    "replay": "authors:replay_command",
    "review": "review:review_command",
    "run": "run:run_command_line",
    "runs": "runs:runs_command",
    "sessions": "inquiry:sessions_command",
    "setup": "setup:setup_command",
    "skills": "inquiry:inquiry_command",
    "usage": "inquiry:inquiry_command",
}
"""`module:function` in this package; the function gets the options and returns the exit code."""


def run_command(arguments: Sequence[str], serve: Serve, acp: Serve) -> int:
    """Run one command; return its exit code, one of `EXIT_CODES`. Raises KeyboardInterrupt."""
    if list(arguments) == ["--version"]:
        return _print_version()
    # Imported late: `--version` needs none of it.
    from kode_sidecar.core.text.shown_text import visible  # noqa: PLC0415
    from kode_sidecar.terminal.cli.complete import candidates  # noqa: PLC0415
    from kode_sidecar.terminal.cli.parser import make_parser  # noqa: PLC0415

    options = make_parser(arguments).parse_args(arguments)
    if options.version:
        return _print_version()
    if options.command in (None, "serve"):
        run: Callable[[argparse.Namespace], int] = partial(_serve, serve=serve)
    elif options.command == "acp":
        return acp(options.env_file, options.trust)
    elif options.command == "complete":
        words = [word for number, word in enumerate(options.words) if number or word != "--"]
        print(*candidates(make_parser(words[:-1]), words), sep="\n")
        return 0
    else:
        run = command(options.command)
    try:
        with _shown(options):
            code = run(options)
        sys.stdout.flush()  # nobody would catch its error at interpreter exit
        return code
    except KodeError as error:
        print(f"kode-sidecar: {visible(error.message)}", file=sys.stderr)
    except OSError as error:
        if error.errno in _DISK_FULL and error.filename is None:
            print(f"kode-sidecar: cannot write: {error.strerror}", file=sys.stderr)
        elif error.errno == errno.ENOENT and error.filename is None:  # as `os.getcwd` says it
            print("kode-sidecar: the folder you are in is gone; go to another one", file=sys.stderr)
        elif error.errno not in _READER_GONE or error.filename is not None:
            raise  # a reader that stops early, such as `head`, is no error
        # Discard buffered output: the interpreter would try to write it again, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def command(name: str) -> "Callable[[argparse.Namespace], int]":
    """Import and return the function of a command."""
    module, function = COMMANDS[name].split(":")
    return getattr(import_module(f"{__package__}.{module}"), function)


class _ShownText:
    """A stream that lets `shown` make each text harmless for a terminal."""

    def __init__(self, stream: "TextIO", shown: Callable[[str], str]) -> None:
        self._stream = stream
        self._shown = shown

    def write(self, text: str) -> int:
        """See `TextIO`."""
        return self._stream.write(self._shown(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """See `TextIO`."""
        self._stream.writelines(map(self._shown, lines))

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._stream, name)


def _shown(options: "argparse.Namespace") -> "AbstractContextManager[Any]":
    """Have a command print no control or hidden character; in JSON they become escapes."""
    if options.command not in _FOREIGN or getattr(options, "serve", False):
        return nullcontext()
    from kode_sidecar.core.text.shown_text import visible, with_escapes  # noqa: PLC0415

    json = getattr(options, "json", False)
    target: Any = _ShownText(sys.stdout, with_escapes if json else visible)
    return redirect_stdout(target)


def _print_version() -> int:
    print(f"kode-sidecar {build_info()}")
    return 0


def _serve(options: "argparse.Namespace", serve: Serve) -> int:
    if options.grease and not options.record:
        print("kode-sidecar serve: --grease needs --record", file=sys.stderr)
        return 2
    files = (options.env_file, options.record, options.tape, options.requests)
    return serve(*files, grease=options.grease)
