"""The engine that a configuration names (B12)."""

from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import Engine
from kode_sidecar.headless_run.native_engine import NativeEngine
from kode_sidecar.headless_run.run_config import RunConfig, read_text
from kode_sidecar.headless_run.run_services import RunServices
from kode_sidecar.headless_run.sandbox import source_path
from kode_sidecar.headless_run.scripted_engine import ScriptedEngine, read_script
from kode_sidecar.kernel.contracts import ArtifactSink


def make_engine(
    config: RunConfig, folder: Path, services: RunServices, save_artifact: ArtifactSink
) -> Engine:
    """`folder` is that of the configuration.

    Raises KodeError `ConfigInvalid`, also where an extra is not installed, `PathOutsideRoots`.
    """
    if config.runtime.script is not None:
        script = source_path(config.runtime.script, folder)
        return ScriptedEngine(read_script(read_text(script), script.name))
    if config.runtime.engine == "pydantic-ai":
        return _pydantic_ai(services, save_artifact)
    return NativeEngine(services.native, save_artifact)


def _pydantic_ai(services: RunServices, save_artifact: ArtifactSink) -> Engine:
    try:
        # Late: an optional extra, and a second to load.
        from kode_sidecar.headless_run.pydantic_ai_engine import (  # noqa: PLC0415
            PydanticAIEngine,
        )
    except ImportError as error:
        raise KodeError(
            "ConfigInvalid",
            f"The engine pydantic-ai cannot be loaded ({error.name or error} is missing): install "
            'it with pip install "kode-sidecar[pydantic-ai]", or set runtime.engine to native. '
            "The program that is one file or folder does not carry it.",
            details={"field": "runtime.engine"},
        ) from None
    return PydanticAIEngine(services.target, services.native.limit_instruction, save_artifact)
