--- `workspace/applyEdit`, answered truly: an edit is made only in the text it was made for, the text
--- is compared afterwards, and what cannot be so is said.
local M = {}

local documents = require('kode.documents')

local modern = vim.fn.has('nvim-0.11') == 1

local function byte_column(line, character, encoding)
  if encoding == 'utf-8' then
    return character <= #line and character or nil
  end
  local ok, column
  if modern then
    ok, column = pcall(vim.str_byteindex, line, encoding, character, true)
  else
    ok, column = pcall(vim.str_byteindex, line, character, encoding == 'utf-16')
  end
  return ok and column or nil
end

local function lf(text)
  return (text:gsub('\r\n?', '\n'))
end

-- The buffer as one text with line feeds, as far as ranges are about it.
local function text_of(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, true)
  local ends = vim.bo[buffer].endofline
    or (vim.bo[buffer].fixendofline and not vim.bo[buffer].binary)
  return table.concat(lines, '\n') .. (ends and '\n' or ''), lines
end

--- The text after edits, nil where a range is not in it.
---@param text string
---@param lines string[]
---@param edits lsp.TextEdit[] in the order of the text
---@param encoding string
---@return string?
function M.expected(text, lines, edits, encoding)
  local starts, at = {}, 1
  for index, line in ipairs(lines) do
    starts[index] = at
    at = at + #line + 1
  end
  starts[#lines + 1] = #text + 1
  local function offset(position)
    local start = starts[position.line + 1]
    local column = start
      and byte_column(lines[position.line + 1] or '', position.character, encoding)
    return column and start + column
  end
  local parts, done = {}, 1
  for _, edit in ipairs(edits) do
    local first, last = offset(edit.range.start), offset(edit.range['end'])
    if not first or not last or first < done or last < first then
      return nil
    end
    table.insert(parts, text:sub(done, first - 1))
    table.insert(parts, lf(edit.newText))
    done = last
  end
  table.insert(parts, text:sub(done))
  return table.concat(parts)
end

-- Whatever is done before and after it is another step of the undo history.
local function own_undo_step(buffer, change)
  vim.bo[buffer].undolevels = vim.bo[buffer].undolevels
  change()
  vim.bo[buffer].undolevels = vim.bo[buffer].undolevels
end

local function refused(reason)
  return { applied = false, failureReason = reason }
end

local function edit_text(change, client)
  local uri, version = change.textDocument.uri, change.textDocument.version
  local buffer = documents.open(uri)
  if not buffer then
    return refused('there is no such file: ' .. uri)
  elseif not vim.bo[buffer].modifiable then
    return refused('the buffer cannot be changed')
  elseif version ~= nil and version ~= vim.NIL and version ~= documents.version(buffer) then
    return refused(
      ('the buffer has version %s, the edit is for %d'):format(documents.version(buffer), version)
    )
  end
  local text, lines = text_of(buffer)
  local wanted = M.expected(text, lines, change.edits, client.offset_encoding)
  if not wanted then
    return refused('a range is not in the text')
  end
  own_undo_step(buffer, function()
    vim.lsp.util.apply_text_edits(change.edits, buffer, client.offset_encoding)
  end)
  if text_of(buffer) ~= wanted then
    own_undo_step(buffer, function()
      vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
    end)
    return refused('the text came out otherwise and was put back')
  end
  return { applied = true }
end

local function create(uri, text)
  local path = vim.uri_to_fname(uri)
  if vim.uv.fs_stat(path) or documents.loaded(path) then
    return refused('there is such a file already')
  end
  local buffer = vim.fn.bufadd(path)
  vim.fn.bufload(buffer)
  vim.bo[buffer].buflisted = true
  vim.bo[buffer].fileformat = text:find('\r\n') and 'dos' or 'unix'
  local lines = vim.split(lf(text), '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  else
    vim.bo[buffer].endofline, vim.bo[buffer].fixendofline = false, false
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].filetype = vim.filetype.match({ buf = buffer, filename = path }) or ''
  vim.api.nvim_create_autocmd('BufWritePre', {
    buffer = buffer,
    once = true,
    desc = 'kode: the folders of a new file',
    callback = function()
      vim.fn.mkdir(vim.fs.dirname(path), 'p')
    end,
  })
  documents.attach(buffer)
  return { applied = true }
end

local function rename(change, client)
  local old, new = vim.uri_to_fname(change.oldUri), vim.uri_to_fname(change.newUri)
  if vim.uv.fs_stat(new) then
    return refused('there is such a file already')
  end
  local buffer = documents.loaded(old)
  if buffer and vim.lsp.buf_is_attached(buffer, client.id) then
    vim.lsp.buf_detach_client(buffer, client.id)
  end
  local ok, problem = pcall(vim.lsp.util.rename, old, new, { overwrite = false })
  if not ok or not vim.uv.fs_stat(new) or vim.uv.fs_stat(old) then
    return refused('the file could not be renamed: ' .. tostring(problem))
  end
  if buffer then
    documents.open(change.newUri)
  end
  return { applied = true }
end

local function delete(change)
  local path = vim.uri_to_fname(change.uri)
  local buffer = documents.loaded(path)
  if buffer and vim.bo[buffer].modified then
    return refused('its buffer has changes that are not saved')
  end
  if vim.fn.delete(path) ~= 0 and vim.uv.fs_stat(path) then
    return refused('the file could not be deleted')
  end
  if buffer then
    vim.api.nvim_buf_delete(buffer, { force = true })
  end
  return { applied = true }
end

local function apply_change(changes, client)
  local change = changes[1]
  if change.kind == 'create' then
    local filled = changes[2]
    return create(change.uri, filled and filled.edits[1].newText or '')
  elseif change.kind == 'rename' then
    return rename(change, client)
  elseif change.kind == 'delete' then
    return delete(change)
  end
  return edit_text(change, client)
end

---@param params lsp.ApplyWorkspaceEditParams
---@param client_id integer
---@return lsp.ApplyWorkspaceEditResult
function M.apply(params, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  local changes = params.edit.documentChanges
  if not client or not changes or #changes == 0 then
    return refused('there are no documentChanges')
  elseif #changes > 1 and not (changes[1].kind == 'create' and #changes == 2) then
    return refused('one file at a time')
  end
  local ok, answer = pcall(apply_change, changes, client)
  return ok and answer or refused(tostring(answer))
end

return M
