"""Entry of the process. Serving starts at the front door, before anything heavy is imported."""

import os
import sys
import time

from kode_sidecar.servers.boot.unpacked import hold_unpacked

ORDERLY_SECONDS = 5.0


def main() -> int:
    """Run `kode-sidecar`; the exit code. Ctrl+C ends it in silence, also while it still imports."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130


def run() -> int:
    """Run what the arguments say. Raises KeyboardInterrupt."""
    distrust_working_directory()
    arguments = sys.argv[1:]
    if arguments[:1] == ["guard"]:
        # What guards a program for us must outlive us: it watches nobody but by its pipe.
        from kode_sidecar.infrastructure.commands.guard import run_guard

        run_guard(arguments[1:])
    hold_unpacked(end_orphaned)
    if arguments in ([], ["serve"]):
        return serve()
    if arguments[:2] == ["acp", "setup"]:  # a client appends the words of its way to sign in
        arguments = arguments[1:]
    if arguments[:1] == ["acp"] and (options := acp_options(arguments[1:])) is not None:
        return serve_acp(*options)
    from kode_sidecar.terminal.cli.command_line import run_command

    return run_command(arguments, serve, serve_acp)


def distrust_working_directory() -> None:
    """`python -m` would load modules from there first, and it may be a project."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path[:1] == [here] and here != home:
        del sys.path[0]


def end_orphaned() -> None:
    """End: the process that unpacked this one was killed, and whoever did so means both.

    What serves ends in order before that, by its watchdog.
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
    """Speak to an editor on stdin and stdout until it goes.

    `record` names a file to record to, `tape` one to play instead of asking a model; what would
    have been asked then goes to the file `requests`. With `grease` a recording has more in it than
    a client knows.
    """
    from kode_sidecar.servers.boot import front_door

    handover = front_door.open_door()
    if isinstance(handover, int):
        return handover
    from kode_sidecar.servers.boot.app import run_server

    environment, listener = open_environment(record, tape, requests, grease)
    return run_server(handover, load_agent, environment, listener, env_file)


def acp_options(words: list[str]) -> tuple[str | None, bool] | None:
    """Read the two options of `acp`, for a client waits; None where the command line has to."""
    left = [word for word in words if word != "--trust"]
    if left and (left[0] != "--env-file" or len(left) != 2):
        return None
    return (left[1] if left else None), left != words


def serve_acp(env_file: str | None, trusted: bool) -> int:
    """Speak the Agent Client Protocol on stdin and stdout until the client goes."""
    from kode_sidecar.servers.boot import front_door

    handover = front_door.open_door(front_door.ACP)
    if isinstance(handover, int):
        return handover
    from kode_sidecar.servers.boot.acp_app import run_acp
    from kode_sidecar.servers.boot.system import System

    return run_acp(handover, load_agent, System(), env_file, trusted=trusted)


def open_environment(record: str | None, tape: str | None, requests: str | None, grease: bool):
    """Return where time, ids and the model's answers come from, and who hears all frames."""
    if record is None and tape is None:
        from kode_sidecar.servers.boot.system import System

        return System(), None
    from kode_sidecar.devtools.recording import open_recording

    opened = open_recording(record, tape, requests, grease=grease)
    return opened, opened


def load_agent():
    """Import the agent: on the loader's thread, while the process answers already."""
    from kode_sidecar.servers.boot.agent import Agent

    return Agent


if __name__ == "__main__":
    sys.exit(main())
