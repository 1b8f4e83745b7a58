"""Forty rounds at a terminal: tests that fail, edits, a summary, a line typed meanwhile, and a
second chat over the same files; and the screen and the disk agree in the end. F9
"""

import sys
from pathlib import Path

import pytest

from tests.support.answering_model import AnsweringModel
from tests.support.chat_program import CTRL_D, command, environment, on_screen
from tests.support.long_job import FILES, ROUNDS, Worker, lay_out

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]


async def test_forty_rounds_end_well_at_a_terminal(tmp_path: Path) -> None:
    project = tmp_path / "茶铺"
    project.mkdir()
    known = lay_out(project, tmp_path / "config.yaml")
    worker = Worker({8: "steer"})
    run = command(project, "--mode", "auto", "--model", "kimi-k2.6", "--trust")
    async with AnsweringModel(worker) as model:
        env = environment(model, **known)
        async with on_screen(run, env, model, (100, 30)) as screen:
            await screen.idle()
            screen.type("Make the tests pass\n")
            await model.reached("steer")
            screen.type("Mind the notes, 谢谢\n")
            async with on_screen(run, env, model, (100, 30)) as second:
                await second.idle()
                second.type("A second job\n")
                await second.until("ok")
                await second.idle()
                second.type(CTRL_D)
                assert await second.left() == 0
            model.release("steer")
            await screen.until("All done. 完成")
            await screen.idle()
            screen.type(CTRL_D)
            assert await screen.left() == 0
    assert (worker.round, worker.summed_up, worker.other) == (ROUNDS + 1, 1, 2)
    assert (project / "shop.py").read_text("utf-8") == FILES["shop.py"].replace("1", "2")
    assert (project / "notes.py").read_text("utf-8") == "DONE = True\n"
    assert (project / "shared.py").read_text("utf-8") == "x = 2\n"
    reported = "\n".join(worker.reported)
    assert "Mind the notes, 谢谢" in reported
    assert reported.count("Your plan as it stands:") == 1, "after the summary"
