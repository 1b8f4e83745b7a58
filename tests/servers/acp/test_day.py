"""A day's job over ACP: a prompt and three answers in the mode `keep`. F16"""

from pathlib import Path

import pytest

from tests.support.acp_client import Json
from tests.support.acp_world import acp_world
from tests.support.day_job import PROMPT, SCRIPT, is_committed, is_done, lay_out, results
from tests.support.git import GIT


@pytest.mark.skipif(GIT is None, reason="needs git")
async def test_edit_test_fix_and_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in lay_out(tmp_path / "project").items():
        monkeypatch.setenv(name, value)
    async with acp_world(tmp_path, monkeypatch, SCRIPT) as world:
        client, asked = world.client, list[Json]()
        client.answer_permission = lambda params: asked.append(params) or "allow_once"
        session_id = await client.new(world.project)
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "keep"})
        await client.prompt(session_id, PROMPT)
        assert len(asked) == 3, "trust, the tests again, the commit"
        is_done(world.project, results(world.asked()))
        is_committed(world.project)
        await client.prompt(session_id, "/keep")
        assert "Kept 5 edits." in str(client.updates[-1])
