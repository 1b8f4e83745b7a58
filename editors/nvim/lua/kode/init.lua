--- The public face. Everything else is loaded when it is first used.
local M = {}

--- Set options; not needed. `vim.g.kode` is read too, and counts less.
---@param options kode.Options
function M.config(options)
  require('kode.config').set(options)
end

--- A text for a status line: model, context, cost, and what goes on. Empty while nothing runs.
---@return string
function M.statusline()
  return package.loaded['kode.status'] and package.loaded['kode.status'].line() or ''
end

--- Run `:Kode` with these words, for maps in Lua.
---@param ... string
function M.run(...)
  require('kode.command').run({ fargs = { ... }, range = 0, bang = false })
end

return M
