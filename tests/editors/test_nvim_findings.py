"""Findings of a code review in Neovim: diagnostics, quickfix list, next and previous, decisions."""

from tests.editors.neovim_scene import Play
from tests.support.model_script import answer, text, tool_call
from tests.support.review_model import FAULT, INFO, NEW, OLD, changed_project, reviewing, reviews

SHOWN = """
  local shown = {}
  for _, one in ipairs(vim.diagnostic.get(vim.fn.bufnr('app.py'))) do
    table.insert(shown, { one.lnum, one.severity, one.source, one.code })
  end
  table.sort(shown, function(a, b) return a[1] < b[1] end)
  return shown
"""


async def test_the_whole_loop_of_a_review(play: Play) -> None:
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": OLD, "new": NEW}]})
    main = [
        *(*reviews(), answer(text("It leaves one out."))),
        *(answer(tool_call("read_file", {"path": "app.py"})), answer(edit), answer(text("Done."))),
        *reviews(),
    ]
    found = [[FAULT, INFO], [INFO]]
    respond = reviewing(main, lambda _: found.pop(0))
    async with play(respond=respond) as scene:
        nvim = scene.nvim
        changed_project(scene.root)
        await nvim.lua("vim.cmd.edit('app.py')")
        await nvim.kode("findings")
        assert "no review found anything" in str(await nvim.lua("return Kode.notes"))
        await nvim.kode("review")
        await nvim.until("#vim.diagnostic.get(vim.fn.bufnr('app.py')) == 2")
        await nvim.until("Kode.idle()")
        assert await nvim.lua(SHOWN) == [[2, 1, "kode review", "f1"], [4, 3, "kode review", "f2"]]

        await nvim.kode("findings")
        await nvim.until("#vim.fn.getqflist() == 2")
        listed = await nvim.lua(
            "return vim.tbl_map(function(one) return { one.lnum, one.type, one.text } end,"
            " vim.fn.getqflist())"
        )
        assert listed[0] == [3, "E", "f1: The last item is not counted"]
        assert listed[1] == [5, "I", "f2: No type"]
        await nvim.lua("vim.cmd.cclose()")

        for way, line in (("next", 3), ("next", 5), ("next", 3), ("prev", 5)):
            await nvim.kode("findings", way)
            await nvim.until(f"vim.fn.expand('%:t') == 'app.py' and vim.fn.line('.') == {line}")
        await nvim.kode("finding", "dismiss", "types", "come", "later")
        await nvim.until("#vim.diagnostic.get(vim.fn.bufnr('app.py')) == 1")
        await nvim.kode("finding", "explain", "f1")
        await nvim.until("Kode.said('leaves one out') and Kode.idle()")

        await nvim.lua(
            "vim.api.nvim_buf_set_lines(vim.fn.bufnr('app.py'), 0, 0, false, { '# 茶' })"
        )
        await nvim.kode("finding", "fix", "f1")
        await nvim.until("#require('kode.review').waiting() == 1")
        await nvim.until("Kode.idle()")
        await nvim.kode("accept", "all")
        await nvim.until("#vim.diagnostic.get(vim.fn.bufnr('app.py')) == 0")
        assert NEW in await nvim.lua("return Kode.text('app.py')")

        await nvim.kode("review")
        await nvim.until("Kode.session().fold.findings[1].state == 'fixed'")
        states = (
            "return vim.tbl_map(function(one) return one.state end, Kode.session().fold.findings)"
        )
        assert await nvim.lua(states) == ["fixed", "dismissed"]
        asked = [scene.asked(number) for number in range(len(scene.model.chats))]
        reported = [one for one in asked if "The user dismissed these before" in one]
        assert reported
        assert all("types come later" in one for one in reported)
