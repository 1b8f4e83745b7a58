"""The plugin asks the language servers of a real Neovim for the model (F6)."""

from tests.editors.neovim_scene import Play
from tests.support.model_script import answer, text, tool_call

# A server inside Neovim that counts in UTF-16, whatever is agreed with the sidecar.
SERVER = """
  vim.cmd.edit('菜单.js')
  Asked = {}
  local replies = {
    initialize = function()
      return { capabilities = {
        positionEncoding = 'utf-16', referencesProvider = true, definitionProvider = true,
        hoverProvider = true, renameProvider = true, documentSymbolProvider = true,
      } }
    end,
    ['textDocument/references'] = function(params)
      Asked.position = params.position
      local last = { line = params.position.line, character = params.position.character + 2 }
      return { { uri = params.textDocument.uri,
        range = { start = params.position, ['end'] = last } } }
    end,
    ['textDocument/rename'] = function(params)
      local last = { line = params.position.line, character = params.position.character + 2 }
      return { changes = { [params.textDocument.uri] = { {
        range = { start = params.position, ['end'] = last }, newText = params.newName } } } }
    end,
  }
  vim.lsp.start({ name = 'words', root_dir = vim.fn.getcwd(), cmd = function()
    return {
      request = function(method, params, callback)
        vim.schedule(function()
          local reply = replies[method]
          callback(nil, reply and reply(params) or vim.NIL)
        end)
        return true, 1
      end,
      notify = function() return true end,
      is_closing = function() return false end,
      terminate = function() end,
    }
  end })
  vim.diagnostic.set(vim.api.nvim_create_namespace('words'), 0, { {
    lnum = 1, col = 21, end_lnum = 1, end_col = 27, severity = 1, source = 'words',
    message = '龙井 is sold out' } })
"""


async def test_references_diagnostics_and_a_rename_by_hunks(play: Play) -> None:  # F6
    place = {"path": "菜单.js", "line": 2, "symbol": "龙井"}
    script = (
        answer(
            tool_call("references", place, call_id="one"),
            tool_call("diagnostics", {}, call_id="two"),
        ),
        answer(tool_call("rename_symbol", {**place, "new_name": "毛尖"}, call_id="three")),
        answer(text("Renamed.")),
    )
    async with play(*script) as scene:
        await scene.nvim.lua(SERVER)
        await scene.nvim.until(
            "#vim.lsp.get_clients({ name = 'words', method = 'textDocument/rename' }) == 1"
        )
        await scene.nvim.kode("ask", "Rename 龙井")
        await scene.nvim.until("table.concat(Kode.chat(), '\\n'):find('Renamed%.') ~= nil")
        assert await scene.nvim.lua("return Asked.position") == {"line": 1, "character": 19}
        reported = scene.asked(-1)
        assert "1 reference in 1 file" in reported
        assert "菜单.js:2: export const 价 = { 龙井: 38 };" in reported
        assert "菜单.js:2: error words: 龙井 is sold out" in reported
        assert "+export const 价 = { 毛尖: 38 };" in reported
