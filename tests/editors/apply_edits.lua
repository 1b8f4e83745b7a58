-- Applies WorkspaceEdits to buffers with Neovim's own LSP client; cases in, texts out.
local function read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

local function fill(case)
  local buffer = vim.uri_to_bufnr(case.uri)
  vim.fn.bufload(buffer)
  local lines = vim.split((case.before:gsub('\n$', '')), '\n', { plain = true })
  vim.bo[buffer].modifiable = true
  vim.bo[buffer].fixendofline = false
  vim.bo[buffer].endofline = case.before:sub(-1) == '\n'
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
end

local function run()
  local cases = vim.json.decode(read(vim.env.EDITS_IN), { luanil = { object = true } })
  local results = {}
  for _, case in ipairs(cases) do
    if case.before then
      fill(case)
    end
    vim.lsp.util.apply_workspace_edit(case.edit, case.encoding)
    local buffer = vim.uri_to_bufnr(case.uri)
    local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
    table.insert(results, text .. (vim.bo[buffer].endofline and '\n' or '')) -- as its client syncs
    vim.api.nvim_buf_delete(buffer, { force = true })
  end
  local file = assert(io.open(vim.env.EDITS_OUT, 'wb'))
  file:write(vim.json.encode(results))
  file:close()
end

local ok, failure = xpcall(run, debug.traceback)
if not ok then
  io.stderr:write(failure .. '\n')
end
vim.cmd(ok and 'qall!' or 'cquit 1')
