"""Neovim with the plugin, for the tests of this folder."""

import os
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from tests.conftest import FULL, SEED_VARIABLE
from tests.editors.neovim_builds import SUITES
from tests.editors.neovim_driver import require_neovim, running
from tests.editors.neovim_scene import Play, Scene, lay_out
from tests.editors.recordings import faults, recorded
from tests.support.answering_model import AnsweringModel, Respond


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On a CI and in full a test runs in both Neovims, else in the one that the seed draws."""
    if "play" in metafunc.fixturenames:
        every = FULL or os.environ.get("CI") == "true"
        drawn = random.Random(f"{os.environ[SEED_VARIABLE]}:{metafunc.definition.nodeid}")
        metafunc.parametrize("play", SUITES if every else [drawn.choice(SUITES)], indirect=True)


@pytest.fixture
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """The plugin in the oldest Neovim that it serves, and in the newest that Debian has."""
    build = require_neovim(request.param)
    numbers, root = count(), tmp_path / "项目 one"
    lay_out(root)

    @asynccontextmanager
    async def scene(
        *answers: RecordedResponse, respond: Respond | None = None, **options: Any
    ) -> AsyncGenerator[Scene]:
        served = ModelServer(Recording(answers), paced=False)
        async with AnsweringModel(respond) if respond else served as model:
            folder = tmp_path / f"nvim-{next(numbers)}"
            environment = {"KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test-key-000"}
            reported = {"cmd": recorded(folder / "talks"), **options}
            async with running(build, folder, root, environment, reported) as nvim:
                yield Scene(root, model, nvim)
                killed = nvim.process.returncode is not None
                if not killed:
                    assert await nvim.lua("return #Kode.globals == 0 or Kode.globals") is True
            assert killed or faults(folder / "talks") == []

    return scene
