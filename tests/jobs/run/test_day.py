"""A day's job in a governed run, which nobody answers: the rules stand in its configuration. F16"""

import asyncio
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from tests.support.day_job import SCRIPT, is_done, lay_out, results
from tests.support.git import GIT
from tests.support.headless_world import HEAD, HeadlessWorld, RunFiles
from tests.support.sidecar import HANG_SECONDS

RULES = """model: kimi-k2.6
workspace: {import: app}
tools: {shell: {enabled: true, allow: [[python, -m, unittest]]}}
"""


@pytest.mark.skipif(GIT is None, reason="needs git")
async def test_edit_test_and_fix(tmp_path: Path) -> None:
    known = lay_out(tmp_path / "app")
    script = (*SCRIPT[:-2], SCRIPT[-1])  # what a run delivers is a patch, and no commit
    async with ModelServer(Recording(script), paced=False) as server:
        world = HeadlessWorld(tmp_path, base_url=server.base_url)
        world.set_environ(known)
        chat = ChatClient(world.registry, HttpClient)
        world.answer_with(chat)
        world.write(f"{HEAD}{RULES}")
        try:
            async with asyncio.timeout(HANG_SECONDS):
                files = RunFiles((await world.run()).sandbox_root)
        finally:
            await chat.aclose()
        is_done(files.folder / "workspace", results(server.chats[-1].body))
