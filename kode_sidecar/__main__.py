"""Entry point of the process. Serving starts in `boot.stdio_handshake`, before any heavy import."""

import os
import sys
import time

from kode_sidecar.servers.boot.unpacked import hold_unpacked

ORDERLY_SECONDS = 5.0


def main() -> int:
    """Run `kode-sidecar`; return the exit code. Ctrl+C ends it silently, even during imports."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130


def run() -> int:
    """Run the command of the arguments. Raises KeyboardInterrupt."""
    distrust_working_directory()
    arguments = sys.argv[1:]
    if arguments[:1] == ["guard"]:
        # The guard of a program must outlive us: it notices our end only by its pipe.
        from kode_sidecar.infrastructure.commands.guard import run_guard

        run_guard(arguments[1:])
    hold_unpacked(end_orphaned)
    if arguments in ([], ["serve"]):
        return serve()
    if arguments[:2] == ["acp", "setup"]:  # a client appends the arguments of its sign-in method
        arguments = arguments[1:]
    if arguments[:1] == ["acp"] and (options := acp_options(arguments[1:])) is not None:
        return serve_acp(*options)
    from kode_sidecar.terminal.cli.command_line import run_command

    return run_command(arguments, serve, serve_acp)


def distrust_working_directory() -> None:
    """Drop the working directory, where `python -m` looks first, from `sys.path`: a project's code
    must not be loaded.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path[:1] == [here] and here != home:
        del sys.path[0]


def end_orphaned() -> None:
    """End the process: the one that unpacked it was killed, which is meant for both.

    A serving process ends in order before that, by its watchdog.
    """
    from kode_sidecar.servers.boot.leftovers import remove_unpacked

    time.sleep(ORDERLY_SECONDS)
    remove_unpacked()
    os._exit(1)


def serve(
    env_file: str | None = None,
    record: str | None = None,
    tape: str | None = None,
    requests: str | None = None,
    *,
    grease: bool = False,
) -> int:
    """Serve an editor on stdin and stdout until it leaves.

    `record` names a file to record to, `tape` one to play instead of asking a model; the requests
    to the model then go to the file `requests`. With `grease` a recording also holds members and
    events that clients do not know, and must ignore.
    """
    from kode_sidecar.servers.boot import stdio_handshake

    handover = stdio_handshake.shake_hands()
    if isinstance(handover, int):
        return handover
    from kode_sidecar.servers.boot.app import run_server

    environment, listener = open_environment(record, tape, requests, grease)
    return run_server(handover, load_agent, environment, listener, env_file)


def acp_options(words: list[str]) -> tuple[str | None, bool] | None:
    """Read the two options of `acp` fast, for a waiting client; None if the parser must do it."""
    left = [word for word in words if word != "--trust"]
    if left and (left[0] != "--env-file" or len(left) != 2):
        return None
    return (left[1] if left else None), left != words


def serve_acp(env_file: str | None, trusted: bool) -> int:
    """Serve the Agent Client Protocol on stdin and stdout until the client leaves."""
    from kode_sidecar.servers.boot import stdio_handshake

    handover = stdio_handshake.shake_hands(stdio_handshake.ACP)
    if isinstance(handover, int):
        return handover
    from kode_sidecar.servers.boot.acp_app import run_acp
    from kode_sidecar.servers.boot.system import System

    return run_acp(handover, load_agent, System(), env_file, trusted=trusted)


def open_environment(record: str | None, tape: str | None, requests: str | None, grease: bool):
    """Return the source of time, ids and the model's answers, and the listener of all frames."""
    if record is None and tape is None:
        from kode_sidecar.servers.boot.system import System

        return System(), None
    from kode_sidecar.devtools.recording import open_recording

    opened = open_recording(record, tape, requests, grease=grease)
    return opened, opened


def load_agent():
    """Import the agent; runs on the loader's thread, while the process already answers."""
    from kode_sidecar.servers.boot.agent import Agent

    return Agent


if __name__ == "__main__":
    sys.exit(main())
