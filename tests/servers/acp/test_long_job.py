"""Forty rounds over ACP: tests that fail, edits, a summary, a second prompt meanwhile, and a second
session over the same files. F9
"""

from pathlib import Path

import pytest

from tests.support.acp_client import prompt_params
from tests.support.acp_world import acp_world
from tests.support.answering_model import AnsweringModel
from tests.support.long_job import FILES, ROUNDS, Worker, lay_out
from tests.support.model_script import answer, text, tool_call


async def test_forty_rounds_end_well_over_acp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lay_out(tmp_path, tmp_path / "config.yaml").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KODE_MODEL", "kimi-k2.6")
    worker = Worker({8: "steer"})
    model = AnsweringModel(worker)
    async with acp_world(tmp_path, monkeypatch, model=model, files=FILES, trusted=True) as world:
        client, sessions = world.client, list[str]()
        for _ in range(2):
            sessions.append(await client.new(world.project))
            mode = {"sessionId": sessions[-1], "modeId": "auto"}
            await client.request("session/set_mode", mode)
        first = await client.send(
            "session/prompt", prompt_params(sessions[0], "Make the tests pass")
        )
        await model.reached("steer")
        steer = prompt_params(sessions[0], "Mind the notes, 谢谢")
        second = await client.send("session/prompt", steer)
        await client.prompt(sessions[1], "A second job")
        model.release("steer")
        for sent in (first, second):
            assert (await client.wait_for(sent))["stopReason"] == "end_turn"

        assert (worker.round, worker.summed_up, worker.other) == (ROUNDS + 1, 1, 2)
        texts = {name: (world.project / name).read_text("utf-8") for name in FILES}
        assert texts["shop.py"] == FILES["shop.py"].replace("1", "2")
        assert (texts["notes.py"], texts["shared.py"]) == ("DONE = True\n", "x = 2\n")
        reported = "\n".join(worker.reported)
        assert "Mind the notes, 谢谢" in reported
        assert "shared.py, in the conversation “A second job”" in reported
        assert reported.count("Your plan as it stands:") == 1, "after the summary"
        plan = client.of_kind("plan")[-1]["entries"]
        assert {step["status"] for step in plan} == {"completed"}


async def test_sessions_of_other_projects_hear_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    edits = [{"old": "x = 1", "new": "x = 2"}]
    script = [
        answer(text("Hello")),
        answer(tool_call("propose_edit", {"path": "shared.py", "edits": edits})),
        answer(text("Done")),
        answer(text("Nothing new")),
    ]
    async with acp_world(tmp_path, monkeypatch, script, files=FILES) as world:
        client = world.client
        first, second = await client.new(other), await client.new(world.project)
        await client.request("session/set_mode", {"sessionId": second, "modeId": "auto"})
        await client.prompt(first, "Hi")
        await client.prompt(second, "Change it")
        await client.prompt(first, "And?")
        assert (world.project / "shared.py").read_text("utf-8") == "x = 2\n"
        assert "shared.py" not in str(world.asked()["messages"])
