--- From a place that an answer names, such as `src/receipt.js:12`, to that place in a window for code.
local M = {}

local documents = require('kode.documents')
local process = require('kode.process')

--- Show a buffer in a window for code, and go there.
---@param buffer integer
---@param at integer[] row from 1, column
function M.show(buffer, at)
  vim.api.nvim_set_current_win(require('kode.review').code_window())
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_buf(0, buffer)
  vim.bo[buffer].buflisted = true
  local row = math.max(1, math.min(at[1], vim.api.nvim_buf_line_count(buffer)))
  vim.api.nvim_win_set_cursor(0, { row, at[2] })
end

-- What is written at the cursor without what stands around a place in a text.
local function word_here()
  local line, column = vim.api.nvim_get_current_line(), vim.fn.col('.')
  for _, mark in ipairs({ '，', '。', '；', '：', '（', '）', '、', '“', '”' }) do
    line = line:gsub(mark, (' '):rep(#mark))
  end
  for first, word, last in line:gmatch('()([^%s`\'"()%[%]<>,;*|]+)()') do
    if first <= column and column < last then
      return (word:gsub('[.:!?]+$', ''))
    end
  end
  return ''
end

--- Go to the file at the cursor, and to its line. False where none is named there.
---@return boolean
function M.here()
  local client = process.client()
  local root = client and client.config.root_dir or process.root()
  local word = word_here()
  local path, line = word:match('^(.-):(%d+)')
  if not path then
    path, line = word:match('^(.-)#L(%d+)')
  end
  path = path or word
  for _, candidate in ipairs(path ~= '' and { vim.fs.joinpath(root, path), path } or {}) do
    local stat = vim.uv.fs_stat(candidate)
    if stat and stat.type == 'file' then
      local buffer = documents.open(vim.uri_from_fname(vim.fs.normalize(candidate)))
      M.show(buffer, { tonumber(line) or 1, 0 })
      return true
    end
  end
  return false
end

return M
