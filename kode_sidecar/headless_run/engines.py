"""The engine that a configuration names (B12)."""

from pathlib import Path

from kode_sidecar.headless_run.contracts import Engine
from kode_sidecar.headless_run.native_engine import NativeEngine, NativeServices
from kode_sidecar.headless_run.run_config import RunConfig, read_text
from kode_sidecar.headless_run.sandbox import source_path
from kode_sidecar.headless_run.scripted_engine import ScriptedEngine, read_script
from kode_sidecar.kernel.contracts import ArtifactSink


def make_engine(
    config: RunConfig, folder: Path, native: NativeServices, save_artifact: ArtifactSink
) -> Engine:
    """`folder` is that of the configuration.

    Raises KodeError `ConfigInvalid`, `PathOutsideRoots`.
    """
    if config.runtime.script is not None:
        script = source_path(config.runtime.script, folder)
        return ScriptedEngine(read_script(read_text(script), script.name))
    return NativeEngine(native, save_artifact)
