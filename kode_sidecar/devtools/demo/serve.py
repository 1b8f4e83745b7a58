"""Serves a model on the loopback for any client: the demo's recorded one, or a script."""

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from kode_sidecar.devtools.demo.model_script import ModelScript, read_script
from kode_sidecar.devtools.demo.model_server import ModelServer, Recording, load_recording
from kode_sidecar.devtools.demo.play import DELTA_MS
from kode_sidecar.devtools.demo.stage import HERE, DemoOptions, set_stage
from kode_sidecar.terminal.client.terminal import prepare


async def serve_model(options: DemoOptions, out: TextIO | None = None) -> int:
    """Serve the recording on the loopback until cancelled.

    Prints the sidecar's environment as lines of an `.env` file, whose comments name the project
    that the recording is about. Each turn gets the recorded answers again. Raises OSError.
    """
    screen: TextIO = sys.stdout if out is None else out
    prepare(screen)
    recording = load_recording(HERE / "recording" / options.language, DELTA_MS)
    stage = set_stage()
    # A client may open the file from disk, and the recorded edits fit only the unsaved text of the
    # demo's editor.
    stage.file.write_bytes(stage.unsaved_text.encode("utf-8"))
    async with ModelServer(recording, paced=not options.fast, endless=True) as model:
        lines = (
            "# A recorded model answers here until you press Ctrl-C. Open this folder as root:",
            f"# {stage.project}",
            "# and give the sidecar this environment, or these lines by `serve --env-file`.",
            "# Every prompt gets two edits of src/receipt.js proposed, as it is in that folder.",
            f"KIMI_BASE_URL={model.base_url}",
            "KIMI_API_KEY=recorded",
            f"KODE_HOME={stage.home}",
        )
        await _print_and_wait(screen, lines)
    return 0


async def serve_script(name: str, folder: Path, *, port: int = 0, check: bool = False) -> int:
    """Serve a script on the loopback until cancelled; first write its missing files to `folder`.

    With `check` the script is only read. Without `port` any free one is taken.

    Prints the sidecar's environment, as `serve_model` does. Raises KodeError `ConfigInvalid`, and
    OSError for a port that is taken.
    """
    screen = sys.stdout
    prepare(screen)
    script = read_script(name)
    if check:
        return 0
    for path, content in script.files.items():
        file = folder / path
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode("utf-8"))
    recording = Recording((), script.models)
    async with ModelServer(recording, script=ModelScript(script).answer, port=port) as model:
        lines = (
            f"# {script.about}",
            "# A scripted model answers here until you press Ctrl-C. Open this folder as root:",
            f"# {folder}",
            "# and give the sidecar this environment, or these lines by `serve --env-file`.",
            f"KIMI_BASE_URL={model.base_url}",
            "KIMI_API_KEY=scripted",
        )
        await _print_and_wait(screen, lines)
    return 0


async def _print_and_wait(screen: TextIO, lines: Iterable[str]) -> None:
    screen.write("\n".join(lines) + "\n")
    screen.flush()
    await asyncio.get_running_loop().create_future()
