"""What real editors and their sidecars said to each other plays again, and is judged well (F7).

`talks/` keeps one recording of each editor. `--update-golden` makes that of Neovim anew, and
`dev.py editors --update-golden` that of VS Code.
"""

from pathlib import Path

import pytest

from kode_sidecar.devtools.grading.rules import verdicts
from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording import read_recording
from kode_sidecar.devtools.recording.replay import play as replayed
from tests.editors.neovim_scene import Play, proposal
from tests.editors.recordings import TALKS, keep, recorded
from tests.support.model_script import answer, text, thinking, tool_call
from tests.support.program import PROGRAM
from tests.support.transcripts import PATIENCE

KEPT = sorted(TALKS.glob("*.jsonl"))
ANSWERS = (
    answer(thinking("先看一看"), tool_call("read_file", {"path": "菜单.js"})),
    answer(proposal("菜单.js", ("龙井: 38", "龙井: 42"), ("tax = 0", "tax = 0.06 // 税 🧾"))),
    answer(text("Two proposals 🍵.")),
    answer(text("As you like.")),
)


async def assert_good(tape: Path) -> None:
    """It plays without its editor, its model and its state folder; no rule is broken."""
    transcript = read_recording(tape)
    difference = (await replayed(tape, transcript, PROGRAM, PATIENCE)).difference
    assert difference is None, f"\n{difference}"
    states = {one.rule: one.state for one in verdicts(Talk(transcript))}
    assert [rule for rule, state in states.items() if state == "broken"] == []
    assert (states["applied-shown"], states["answered-once"]) == ("kept", "kept")


@pytest.mark.program
async def test_neovim_of_today(play: Play, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    tape = tmp_path / "talk" / "talk.jsonl"
    async with play(*ANSWERS, cmd=recorded(tape.parent, greased=False)) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit((...))", "菜单.js")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, {'// 没有存盘 😀'})")
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle()")
        await nvim.until("#require('kode.review').waiting() == 2")
        await nvim.kode("next")
        await nvim.until("require('kode.review').here() ~= nil")
        await nvim.kode("accept")
        await nvim.until("Kode.states()[1] == 'applied'")
        await nvim.kode("comment", "no tax, please 不要税")
        await nvim.until("Kode.states()[2] == 'rejected'")
        await nvim.kode("undo", "turn")
        await nvim.until("Kode.states()[1] == 'undone'")
        await nvim.kode("ask", "Go on")
        await nvim.until("Kode.said('As you like.') and Kode.idle()")
    await assert_good(tape)
    if request.config.getoption("--update-golden"):
        keep("neovim", tape, scene.root)


@pytest.mark.program
@pytest.mark.parametrize("tape", KEPT, ids=lambda tape: tape.stem)
async def test_kept_ones(tape: Path) -> None:
    await assert_good(tape)


def test_both_are_there() -> None:
    assert [tape.stem for tape in KEPT] == ["neovim", "vscode"]
