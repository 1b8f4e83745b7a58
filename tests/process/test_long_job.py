"""A long job ends well: 40 rounds with failing tests, diagnostics, edits, a steer, a summary of the
conversation, and a second session over the same files. A15 C11 F6 F9
"""

from pathlib import Path
from typing import Any

from kode_sidecar.core.text.uris import file_path
from kode_sidecar.terminal.client.buffer import Buffer
from tests.support.answering_model import AnsweringModel
from tests.support.long_job import FILES, ROUNDS, Worker, lay_out
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.word_servers import WordServers, capabilities


def save(buffer: Buffer, new: str) -> None:
    file_path(buffer.uri).write_text(new, "utf-8")


def results(world: World) -> list[str]:
    blocks = [e["block"] for e in world.events() if e["type"] == "block.completed"]
    found = [block for block in blocks if block["type"] == "tool_result"]
    return ["".join(part["text"] for part in block["content"]) for block in found]


async def test_forty_rounds_end_well(tmp_path: Path) -> None:
    project = tmp_path / "茶 铺"
    project.mkdir()
    environment = lay_out(project, tmp_path / "config.yaml")
    worker = Worker()
    async with sidecar(
        roots=[project],
        environment=environment,
        handshake={"kode_options": capabilities(), "trusted": True},
        model=AnsweringModel(worker),
    ) as world:
        # An editor that saves at once, so that tests see what was applied.
        world.editor.write = save
        servers = WordServers(world.editor, project)
        world.editor.open(project / "shop.py")
        first = await world.session(agent="coder", mode="auto", model="kimi-k2.6")

        async def symbols(params: dict[str, Any]) -> Any:
            """In the middle of the job the user steers, and works in another session."""
            steer = {"turnId": turn_id, "input": [{"type": "text", "text": "Mind the notes, 谢谢"}]}
            await world.client.request(
                "kode/turn/steer", {"sessionId": first.session_id, **steer}, HANG_SECONDS
            )
            second = await world.session(agent="coder", mode="auto", model="kimi-k2.6")
            await world.turn(second, "A second job")
            servers.asked.append(("symbols", params))
            return {"symbols": []}

        world.client.handle("kode/editor/symbols", symbols)
        turn_id = await world.start(first, "Make the tests pass")
        turn = await world.watch.turn_end(first.session_id, turn_id, HANG_SECONDS * 2)

        assert (turn.stop_reason, worker.round) == ("end_turn", ROUNDS + 1)
        assert (worker.summed_up, first.anomalies, first.gaps) == (1, [], [])
        reported = results(world)
        checks = [one for one in reported if "check.py" in one or "all tests pass" in one]
        assert sum("AssertionError" in one for one in checks) == 2
        assert "all tests pass" in checks[-1]
        assert (project / "shop.py").read_text("utf-8") == FILES["shop.py"].replace("1", "2")
        assert (project / "notes.py").read_text("utf-8") == "DONE = True\n"
        news = [one for one in worker.reported if "new problems" in one]
        assert [one.count("BUGGY is wrong") for one in news] == [1]
        assert "Mind the notes, 谢谢" in worker.reported
        assert any(
            "shared.py, in the conversation “A second job”" in one for one in worker.reported
        )
        assert (
            sum("Your plan as it stands:" in one for one in worker.reported) == 1
        )  # after the summary
        plans = [e["items"] for e in world.events() if e["type"] == "plan.updated"]
        assert {item["state"] for item in plans[-1]} == {"done"}
        compacted = [e for e in world.events() if e["type"] == "context.compacted"]
        assert len(compacted) == 1
