"""Entry of the process. Serving starts at the front door, before anything heavy is imported."""

import sys


def main() -> int:
    """Run `kode-sidecar`; the exit code."""
    arguments = sys.argv[1:]
    if arguments in ([], ["serve"]):
        return serve(None)
    try:
        from kode_sidecar.cli import run_command

        return run_command(arguments, serve)
    except KeyboardInterrupt:
        return 130


def serve(env_file: str | None) -> int:
    """Speak to an editor on stdin and stdout until it goes."""
    from kode_sidecar import front_door

    handover = front_door.open_door()
    if isinstance(handover, int):
        return handover
    from kode_sidecar.app import run_server

    return run_server(handover, env_file, load_agent)


def load_agent():
    """Import the agent: on the loader's thread, while the process answers already."""
    from kode_sidecar.agent import Agent

    return Agent


if __name__ == "__main__":
    sys.exit(main())
