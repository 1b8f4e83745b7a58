"""`kode/run/start` and `kode/run/get`: governed runs that an editor asks for (B1, W12)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.headless_world import HEAD, RunFiles
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]
TRUSTED = {"trusted": True}
CONFIG = f"{HEAD}model: kimi-k2.6\ndeliverables: [{{path: deliverables/report.md}}]\n"


async def ask(world: World, name: str, **params: Any) -> Json:
    return await world.client.request(f"kode/run/{name}", params, HANG_SECONDS)


async def ended(world: World, run_id: str) -> Json:
    """The run once it is over, with all of its events."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            found = await ask(world, "get", runId=run_id, afterSequence=0, limit=1_000)
            if found["run"]["status"] not in ("pending", "running"):
                return found


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return str(path)


async def test_an_editor_starts_a_run_and_looks_at_it(tmp_path: Path, config: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "app.py").write_text("print(1)\n")
    report = {"path": "deliverables/report.md", "content": "Fine.\n"}
    answers = [
        answer(
            text("I"), hold("middle"), text(" read."), tool_call("list_files", {"directory": "."})
        ),
        answer(tool_call("write_artifact", report)),
        answer(text("Done.")),
    ]
    async with sidecar(answers, handshake=TRUSTED) as world:
        started = await ask(
            world,
            "start",
            config=config,
            prompt="Go.",
            taskId="t-1",
            workspace=str(tmp_path / "project"),
            maxSteps=5,
        )
        run_id = started["runId"]
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("middle")
        now = (await ask(world, "get", runId=run_id))["run"]
        assert (now["status"], now["step"], now["taskId"]) == ("running", "engine", "t-1")
        # The conversation goes on beside it.
        assert (await world.session()).session_id
        world.model.release("middle")
        found = await ended(world, run_id)
    run, events = found["run"], found["events"]
    assert (run["status"], run["governance"], run["finalText"]) == ("completed", "passed", "Done.")
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    files = RunFiles(started["sandboxRoot"])
    assert files.text("deliverables/report.md") == "Fine.\n"
    assert files.folder.parent == world.home / "runs"


async def test_only_a_trusted_workspace_runs_anything(config: str) -> None:  # W12
    async with sidecar([], handshake={"trusted": False}) as world:
        with pytest.raises(RpcError, match="trusted") as refused:
            await ask(world, "start", config=config, prompt="Go.")
        assert refused.value.code == -33010
    assert not (world.home / "runs").exists()


async def test_what_is_wrong_is_told(config: str) -> None:
    async with sidecar([], handshake=TRUSTED) as world:
        for name in ("20260101-000000-none", "../x", "CON"):
            with pytest.raises(RpcError) as unknown:
                await ask(world, "get", runId=name)
            assert unknown.value.code == -33027
        with pytest.raises(RpcError) as relative:
            await ask(world, "start", config="job.yaml", prompt="Go.")
        assert relative.value.code == -32602
        started = await ask(world, "start", config=config, prompt="Go.", maxSteps=0)
        run = (await ended(world, started["runId"]))["run"]
        assert (run["status"], run["governance"]) == ("failed", "blocked")
        assert run["error"]["code"] == "ConfigInvalid"


async def test_a_run_is_cancelled(config: str) -> None:
    async with sidecar([answer(text("I"), hold("middle"))], handshake=TRUSTED) as world:
        started = await ask(world, "start", config=config, prompt="Go.")
        run_id = started["runId"]
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("middle")
        assert await ask(world, "cancel", runId=run_id) == {"cancelled": True}
        run = (await ended(world, run_id))["run"]
        assert run["status"] == "cancelled"
        assert await ask(world, "cancel", runId=run_id) == {"cancelled": False}
        with pytest.raises(RpcError) as unknown:
            await ask(world, "cancel", runId="20260101-000000-none")
        assert unknown.value.code == -33027
        assert (await world.session()).session_id
    assert RunFiles(started["sandboxRoot"]).run["status"] == "cancelled"


async def test_a_run_ends_with_its_process(config: str) -> None:
    async with sidecar([answer(text("I"), hold("middle"))], handshake=TRUSTED) as world:
        started = await ask(world, "start", config=config, prompt="Go.")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("middle")
        await world.client.close()
    assert RunFiles(started["sandboxRoot"]).run["status"] == "cancelled"
