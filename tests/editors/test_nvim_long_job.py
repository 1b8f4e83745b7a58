"""Forty rounds in real Neovim: tests that fail, diagnostics, edits, a summary, a steer, a second
session over the same files; and the chat, the buffers and the disk agree in the end. F1 F6 F9
"""

from pathlib import Path

from tests.editors.neovim_scene import Play
from tests.support.long_job import FILES, ROUNDS, Worker, lay_out

# A user who saves at once, and a language server that takes its time.
SAVES = """
  local apply = vim.lsp.util.apply_text_edits
  vim.lsp.util.apply_text_edits = function(edits, buffer, encoding)
    apply(edits, buffer, encoding)
    vim.api.nvim_buf_call(buffer, function() vim.cmd('silent write') end)
  end
  vim.cmd.edit('shop.py')
  vim.lsp.start({ name = 'linter', root_dir = vim.fn.getcwd(), cmd = function(dispatchers)
    local function lint(uri)
      local found, buffer = {}, vim.uri_to_bufnr(uri)
      for index, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
        local at = line:find('BUGGY')
        local place = { line = index - 1, character = (at or 1) - 1 }
        local range = { start = place, ['end'] = place }
        local wrong = { range = range, severity = 1, source = 'linter', message = 'BUGGY is wrong' }
        table.insert(found, at and wrong or nil)
      end
      local told = { uri = uri, diagnostics = found }
      dispatchers.notification('textDocument/publishDiagnostics', told)
    end
    return {
      request = function(method, _, callback)
        local able = { textDocumentSync = { openClose = true, change = 1, save = true } }
        local reply = method == 'initialize' and { capabilities = able } or vim.NIL
        vim.schedule(function() callback(nil, reply) end)
        return true, 1
      end,
      notify = function(method, params)
        if method == 'textDocument/didSave' then
          vim.defer_fn(function() lint(params.textDocument.uri) end, 100)
        end
        return true
      end,
      is_closing = function() return false end,
      terminate = function() end,
    }
  end })
"""
FIRST = "require('kode.sessions').all[...].fold"


async def test_forty_rounds_end_well_in_neovim(play: Play, tmp_path: Path) -> None:
    worker = Worker({8: "steer"})
    root = tmp_path / "项目 one"
    environment = lay_out(root, tmp_path / "config.yaml")
    options = {"env": environment, "trusted": True, "mode": "auto", "model": "kimi-k2.6"}
    async with play(respond=worker, **options) as scene:
        nvim = scene.nvim
        await nvim.lua(SAVES)
        await nvim.until("#vim.lsp.get_clients({ name = 'linter', bufnr = 0 }) == 1")
        await nvim.kode("ask", "Make the tests pass")
        await scene.model.reached("steer")
        first = await nvim.lua("return Kode.session().id")
        await nvim.kode("steer", "Mind the notes, 谢谢")
        await nvim.kode("new")
        await nvim.until("Kode.session().id ~= ...", first)
        await nvim.kode("ask", "A second job")
        await nvim.until("Kode.idle() and Kode.said('ok')")
        scene.model.release("steer")
        await nvim.until(f"{FIRST}.lastTurn and not {FIRST}.turnId", first)

        assert await nvim.lua(f"return {FIRST}.lastTurn.stopReason", first) == "end_turn"
        assert (worker.round, worker.summed_up, worker.other) == (ROUNDS + 1, 1, 2)
        plan = await nvim.lua(f"return {FIRST}.plan", first)
        assert {step["state"] for step in plan} == {"done"}
        texts = {path.name: path.read_text("utf-8") for path in root.glob("*.py")}
        assert texts["shop.py"] == FILES["shop.py"].replace("1", "2")
        assert (texts["notes.py"], texts["shared.py"]) == ("DONE = True\n", "x = 2\n")
        for name in ("shop.py", "notes.py", "shared.py"):
            assert await nvim.lua("return Kode.text(...)", name) == texts[name]
        reported = "\n".join(worker.reported)
        assert reported.count("BUGGY is wrong") == 1
        assert "Mind the notes, 谢谢" in reported
        assert "shared.py, in the conversation “A second job”" in reported
        assert reported.count("Your plan as it stands:") == 1, "after the summary"
        await nvim.lua("local all = require('kode.sessions') all.current = all.all[...]", first)
        await nvim.lua("require('kode.chat').open(Kode.session())")
        said = "\n".join(await nvim.chat())
        assert "All done. 完成" in said
        assert "a summary of what was said before" in said
