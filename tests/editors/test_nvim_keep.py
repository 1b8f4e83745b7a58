"""Hunks under the keys of a review: the mode `keep`, and maps that live as long as hunks wait."""

from tests.editors.neovim_driver import Neovim
from tests.editors.neovim_scene import MENU, RECEIPT, Play, proposal
from tests.support.model_script import answer, text, tool_call

EDITS = (
    proposal("receipt.js", ("合计 = 1", "合计 = 2"), ("end = 1", "end = 2")),
    proposal("菜单.js", ("tax = 0", "tax = 1")),
)
BOTH = RECEIPT.replace("合计 = 1", "合计 = 2").replace("end = 1", "end = 2")
WAITING = "#require('kode.review').waiting()"


async def drawn(nvim: Neovim, count: int) -> None:
    """So many hunks wait, and those of `receipt.js` are drawn."""
    await nvim.until(
        f"{WAITING} == ... and vim.iter(require('kode.review').waiting()):all(function(hunk)"
        " return hunk.path ~= 'receipt.js' or require('kode.review').row(hunk.hunkId) ~= nil end)",
        count,
    )


async def test_edits_are_there_at_once_and_kept_or_undone_by_hunk_and_file(play: Play) -> None:
    new = tool_call("propose_file", {"action": "create", "path": "新.js", "content": "1;\n"})
    async with play(answer(*EDITS, new), answer(text("Done."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.g.kode = vim.tbl_extend('force', vim.g.kode, {mode = 'keep'})")
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Fix it")
        await nvim.until("Kode.idle() and Kode.said('Done.')")
        await drawn(nvim, 4)
        assert (scene.root / "receipt.js").read_bytes() == BOTH.encode()
        assert (scene.root / "新.js").read_text() == "1;\n"
        assert await nvim.lua("return Kode.said('2 applied, to keep or undo')")
        await nvim.lua("vim.cmd('wincmd p') vim.cmd.only() vim.o.columns = 100")
        rows = await nvim.lua("return Kode.screen()")
        old, now = (next(n for n, row in enumerate(rows) if f"合计 = {x}" in row) for x in (1, 2))
        assert old + 1 == now
        assert "applied 1 of 4" in rows[now]
        assert "\\y keep · \\n undo" in rows[old - 1]
        await nvim.typed("gg]k\\n")
        await nvim.until(f"{WAITING} == 3")
        one = BOTH.replace("合计 = 2", "合计 = 1")
        await nvim.until("Kode.text('receipt.js') == ...", one)
        await drawn(nvim, 3)
        await nvim.until("not table.concat(Kode.screen()):find('y keep', 1, true)")
        await nvim.until("require('kode.review').here() ~= nil")
        await nvim.typed("\\y")
        await nvim.until(f"{WAITING} == 2")
        assert (scene.root / "receipt.js").read_bytes() == one.encode()
        await nvim.typed("\\N")
        await nvim.until(f"{WAITING} == 0")
        assert (scene.root / "菜单.js").read_bytes() == MENU.encode()
        assert not (scene.root / "新.js").exists()
        states = await nvim.lua("return Kode.states()")
        assert states == ["undone", "applied", "undone", "undone"]


async def test_the_users_text_in_an_applied_hunk_is_not_undone(play: Play) -> None:
    async with play(answer(EDITS[0]), answer(text("Done."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.g.kode = vim.tbl_extend('force', vim.g.kode, {mode = 'keep'})")
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Fix it")
        await nvim.until("Kode.idle() and Kode.said('Done.')")
        await drawn(nvim, 2)
        await nvim.lua("vim.cmd('wincmd p')")
        await nvim.typed("gg]kA // mine<Esc>")
        await nvim.kode("reject", "all")
        await nvim.until("table.concat(Kode.notes):find('1 not undone: there is text of yours')")
        mine = RECEIPT.replace("合计 = 1;", "合计 = 2; // mine")
        assert await nvim.lua("return Kode.text('receipt.js')") == mine


async def test_maps_are_there_as_long_as_hunks_wait_and_never_in_place_of_the_users(
    play: Play,
) -> None:
    async with play(answer(*EDITS), answer(text("Done."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.keymap.set('n', '[k', 'gg')")
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Fix it")
        await nvim.until("Kode.idle()")
        await drawn(nvim, 3)
        own = "return vim.fn.maparg(..., 'n')"
        assert await nvim.lua(own, "]k") == ""  # in the chat
        await nvim.lua("vim.cmd('wincmd p')")
        assert "Kode next" in await nvim.lua(own, "]k")
        assert await nvim.lua(own, "[k") == "gg"
        await nvim.typed("gg]k\\y")
        await nvim.until("Kode.states()[1] == 'applied'")
        await nvim.typed("\\Y")
        await nvim.until(f"{WAITING} == 0")
        await nvim.until("vim.fn.maparg(']k', 'n') == ''")
        assert await nvim.lua(own, "[k") == "gg"
        assert (scene.root / "receipt.js").read_bytes() == BOTH.encode()


async def test_an_accepted_new_file_takes_the_place_of_what_showed_it(play: Play) -> None:
    new = tool_call("propose_file", {"action": "create", "path": "新.js", "content": "1;\n"})
    async with play(answer(new), answer(text("Done."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Make it")
        await nvim.until(f"Kode.idle() and {WAITING} == 1")
        await nvim.kode("next")
        await nvim.until("vim.b.kode_hunk ~= nil")
        await nvim.typed("\\y")
        await nvim.until("vim.fn.expand('%:t') == '新.js'")
        assert await nvim.lua("return vim.bo.modifiable and vim.bo.buftype == ''")
        await nvim.until("not vim.bo.modified")
        assert (scene.root / "新.js").read_text() == "1;\n"


async def test_typing_beside_hunks_asks_for_nothing(play: Play) -> None:
    async with play(answer(*EDITS), answer(text("Done."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Fix it")
        await nvim.until("Kode.idle()")
        await drawn(nvim, 3)
        await nvim.lua("vim.cmd('wincmd p')")
        # What is drawn may still be asked for; from now on nothing may begin to.
        await nvim.lua("""
          local review = require('kode.review')
          local soon = review.refresh_soon
          Kode.begun = 0
          review.refresh_soon = function()
            if not debug.getinfo(2, 'S').source:find('review.lua', 1, true) then
              Kode.begun = Kode.begun + 1
            end
            soon()
          end""")
        for letter in "// typed on and on":
            await nvim.typed(f"ggO{letter}<Esc>")
        await nvim.asked("kode/doctor", {})
        assert await nvim.lua("return Kode.begun") == 0
