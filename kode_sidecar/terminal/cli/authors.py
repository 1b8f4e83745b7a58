"""Commands for authors of clients: demo, model, replay, grade, protocol."""

import argparse
import asyncio
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.wire_files import ACP_SCHEMA, WIRE_FILES, wire_file


def demo_command(options: argparse.Namespace) -> int:
    """Play a recorded turn or job, or serve its model."""
    from kode_sidecar.devtools.demo import DemoOptions, play, play_job, serve_model  # noqa: PLC0415

    run = serve_model if options.serve_model else play_job if options.headless else play
    shown = DemoOptions(live=options.live, fast=options.fast, locale=options.locale)
    return asyncio.run(run(shown))


def model_command(options: argparse.Namespace) -> int:
    """Serve a model that plays a script."""
    from kode_sidecar.devtools.demo import serve_script  # noqa: PLC0415

    folder: Path = options.folder.resolve()
    try:
        return asyncio.run(
            serve_script(options.script, folder, port=options.port, check=options.check)
        )
    except OSError as error:
        text = f"Cannot serve on port {options.port}: {error.strerror}. Leave `--port` out for any."
        raise KodeError("ConfigInvalid", text) from None


def replay_command(options: argparse.Namespace) -> int:
    """Play a recording and compare, or be the recorded server."""
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


def grade_command(options: argparse.Namespace) -> int:
    """Judge a client by recordings."""
    from kode_sidecar.devtools.grading import GradeOptions, grade  # noqa: PLC0415

    shown = GradeOptions(
        json=options.json, show=options.show, junit=options.junit, required=options.require
    )
    _check_grade(options)
    if not options.acp:
        return grade(list(map(Path, options.recordings)), shown)
    from kode_sidecar.devtools.grading.acp_rules import AcpGradeOptions, grade_acp  # noqa: PLC0415

    acp = AcpGradeOptions(options.recordings, options.side, options.record, options.drive)
    return grade_acp(wire_file(ACP_SCHEMA), acp, shown)


def _check_grade(options: argparse.Namespace) -> None:
    """Raise KodeError `ConfigInvalid` for options that do not fit together."""
    text = ""
    if not options.acp and (options.record or options.drive or options.side):
        text = "`--record`, `--drive` and `--side` need `--acp`."
    elif options.record and options.drive:
        text = "Give either `--record` or `--drive`."
    elif not options.recordings and not options.record:
        text = "Name a recording." if not options.drive else "Name the agent's program after `--`."
    if text:
        raise KodeError("ConfigInvalid", text)


def protocol_command(options: argparse.Namespace) -> int:
    """Write the wire contract to a folder. Raises KodeError `Storage`."""
    folder: Path = options.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in WIRE_FILES:
            (folder / name).write_bytes(wire_file(name))
            print(folder / name)
    except OSError as error:
        raise KodeError("Storage", f"Cannot write to {folder}: {error.strerror}.") from None
    return 0
