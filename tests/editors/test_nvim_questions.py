"""Questions of the model and of the sidecar: cards in the chat that never take the keyboard."""

from typing import Any

import pytest

from tests.editors.neovim_driver import Neovim
from tests.editors.neovim_scene import RECEIPT, Play, Scene, proposal
from tests.support.model_script import answer, hold, text, tool_call

CHOICES = ["prices.json", "a database", "环境变量"]
TASKS = ".vscode/tasks.json"


def asking(multi: bool = False) -> Any:
    return tool_call("ask_user", {"question": "Where 哪里?", "choices": CHOICES, "multi": multi})


def sensitive(scene: Scene) -> None:
    (scene.root / ".vscode").mkdir()
    (scene.root / TASKS).write_text("{}\n")


async def go_to_question(nvim: Neovim) -> None:
    await nvim.kode("answer")
    await nvim.until("require('kode.chat').of(Kode.session()):entered() ~= nil")


async def nothing_waits(nvim: Neovim) -> bool:
    return await nvim.lua(
        "return next(Kode.fold().pending) == nil and #Kode.session().questions == 0"
    )


async def test_questions_are_put_to_the_user(play: Play) -> None:  # F1
    proposed = proposal(TASKS, ("{}", '{"a": 1}'))
    async with play(answer(asking()), answer(proposed), answer(text("Thanks."))) as scene:
        nvim = scene.nvim
        sensitive(scene)
        await nvim.kode("ask", "Go")
        await nvim.until("#Kode.session().questions == 1")
        lines = await nvim.chat()
        at = lines.index("? Where 哪里?")
        assert [line.split(" ", 3)[3] for line in lines[at + 1 : at + 4]] == CHOICES
        await go_to_question(nvim)
        await nvim.typed("j")
        await nvim.typed("<CR>")
        await nvim.until("Kode.said('Edit .vscode/tasks.json')")
        lines = await nvim.chat()
        assert not [line for line in lines if line.startswith("? Where")]
        at = lines.index("? Edit .vscode/tasks.json")
        assert "  ┆ -{}" in lines[at:]
        assert '  ┆ +{"a": 1}' in lines[at:]
        answers = [line for line in lines[at:] if line.startswith(("  1", "  2", "  3"))]
        assert answers == ["  1 Reject", "  2 Allow once", "  3 Allow in this session"]
        await go_to_question(nvim)
        await nvim.typed("1")
        await nvim.until("Kode.idle()")
        assert "a database" in scene.asked(1)
        assert "not allow" in scene.asked(2)
        assert await nothing_waits(nvim)
        notes = await nvim.lua("return table.concat(Kode.notes, '\\n')")
        assert ":Kode answer — Where 哪里?" in notes
        assert ":Kode answer — Edit .vscode/tasks.json" in notes


@pytest.mark.parametrize("place", ["code", "input", "transcript"])
async def test_who_types_on_while_a_question_comes_grants_nothing_and_loses_no_letter(
    play: Play, place: str
) -> None:
    edit = proposal(TASKS, ("{}", '{"a": 1}'))
    first = answer(text("I look.\n\nStill."), hold("gate"), edit)
    async with play(first, answer(text("Done."))) as scene:
        nvim = scene.nvim
        sensitive(scene)
        await nvim.lua("vim.cmd.edit('receipt.js') vim.bo.formatoptions = ''")
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('Still.')")
        await nvim.typed({"code": "<C-w>pggO", "input": "GA", "transcript": "Gk"}[place])
        await nvim.typed("let x<Space>" if place != "transcript" else "j" * 3 + "k")
        scene.model.release("gate")
        await nvim.until("Kode.said('? Edit .vscode/tasks.json')")
        # What a user of code types, among it every key that answers in a card.
        await nvim.typed("= 12<CR>2y<CR>" if place != "transcript" else "<CR>2<CR>3<CR>1")
        await nvim.typed("3 end" if place != "transcript" else "<CR>")
        await nvim.until("Kode.session().questions[1] ~= nil")
        mode = await nvim.request("nvim_get_mode")
        assert mode["mode"] == ("n" if place == "transcript" else "i")
        letters = "let x = 12\n2y\n3 end"
        if place == "code":
            got = await nvim.lua("return Kode.text('receipt.js')")
            assert got == letters.replace("\n", "\r\n") + "\r\n" + RECEIPT
        elif place == "input":
            written = "return require('kode.chat').of(Kode.session()):input()"
            assert await nvim.lua(written) == letters
        assert not await nothing_waits(nvim)
        assert len(scene.model.chats) == 1
        await nvim.typed("<Esc>")
        await go_to_question(nvim)
        await nvim.typed("2")
        await nvim.until("Kode.idle() and Kode.said('Done.')")
        assert await nvim.lua("return Kode.states()") == ["applied"]


async def test_a_card_takes_keys_once_there_was_time_to_read_it(play: Play) -> None:
    async with play(answer(asking()), answer(text("Thanks."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('? Where') and Kode.session().questions[1].seen")
        await nvim.lua("Kode.session().questions[1].seen = false")
        row = (await nvim.chat()).index("  2 a database") + 1
        await nvim.typed(f"<Esc>{row}G<CR>")
        assert await nvim.lua("return #Kode.session().questions") == 1
        await nvim.lua("Kode.session().questions[1].seen = true")
        await nvim.typed("<CR>")
        await nvim.until("Kode.idle()")
        assert "a database" in scene.asked(1)


async def test_a_card_that_is_drawn_under_the_cursor_takes_no_keys(play: Play) -> None:
    first = answer(text("I look."), hold("gate"), asking())
    async with play(first, answer(text("Thanks."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('I look.')")
        scene.model.release("gate")
        await nvim.until("Kode.said('? Where') and Kode.session().questions[1].seen")
        row = (await nvim.chat()).index("  2 a database") + 1
        await nvim.lua("vim.api.nvim_win_set_cursor(0, {..., 0})", row)
        # As if lines had come or gone: the same place, in a card that was not there before.
        await nvim.lua("require('kode.chat').of(Kode.session()):note_fall({1, 0}, nil)")
        await nvim.typed("<CR>2")
        await nvim.typed("<Esc>")
        assert await nvim.lua("return #Kode.session().questions") == 1
        await nvim.typed("k")
        await nvim.typed("2")
        await nvim.until("Kode.idle()")
        assert "a database" in scene.asked(1)


async def test_several_are_chosen_and_own_words_are_heard(play: Play) -> None:
    first, again = answer(asking(multi=True)), answer(asking())
    async with play(first, again, answer(text("Thanks."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('[ ] prices.json')")
        await go_to_question(nvim)
        await nvim.typed("1")
        await nvim.until("Kode.said('[x] prices.json')")
        await nvim.typed("3")
        await nvim.until("Kode.said('[x] 环境变量')")
        await nvim.typed("4")
        await nvim.until("Kode.said('  4 Answer in your own words')")
        reported = scene.asked(1)
        assert "- prices.json" in reported
        assert "- a database" not in reported
        await nvim.lua("vim.ui.input = function(_, done) done('in the cloud 云') end")
        await go_to_question(nvim)
        await nvim.typed("4")
        await nvim.until("Kode.idle()")
        assert "in the cloud 云" in scene.asked(2)
        assert await nothing_waits(nvim)


async def test_a_question_that_is_taken_back_is_gone(play: Play) -> None:
    async with play(answer(asking())) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('? Where')")
        await nvim.kode("stop")
        await nvim.until("Kode.idle()")
        assert not await nvim.lua("return Kode.said('? Where')")
        assert await nothing_waits(nvim)
        await nvim.kode("answer")
        assert (await nvim.lua("return Kode.notes"))[-1] == "kode: there is no question"


async def test_the_terminal_notifies_while_neovim_has_not_the_focus(play: Play) -> None:
    async with play(answer(text("One.")), answer(asking()), answer(text("Three."))) as scene:
        nvim = scene.nvim
        await nvim.lua("Kode.sent = {}")
        await nvim.lua("vim.api.nvim_ui_send = function(text) table.insert(Kode.sent, text) end")
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle()")
        assert await nvim.lua("return Kode.sent") == []
        await nvim.lua("vim.cmd.doautocmd('FocusLost')")
        await nvim.kode("ask", "Go on")
        await nvim.until("Kode.said('? Where')")
        assert await nvim.lua("return Kode.sent") == [
            "\x1b]9;kode: :Kode answer — Where 哪里?\x1b\\"
        ]
        await go_to_question(nvim)
        await nvim.typed("1")
        await nvim.until("Kode.idle() and Kode.said('Three.')")
        assert (await nvim.lua("return Kode.sent"))[-1] == "\x1b]9;kode: Go is done\x1b\\"
