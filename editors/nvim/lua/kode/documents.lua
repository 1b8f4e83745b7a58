--- Which buffers the sidecar sees, and what the user looks at.
local M = {}

local process = require('kode.process')

local group

--- Does this buffer hold a file below the open folder?
local function belongs(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) or vim.bo[buffer].buftype ~= '' or name == '' then
    return false
  end
  if name:find('^%a[%w+.-]+://') then
    return false
  end
  local client = process.client()
  local root = client and client.config.root_dir or process.root()
  local path = vim.fs.normalize(name)
  return path:sub(1, #root + 1) == root .. '/'
end

--- Tell in which encoding a buffer will be saved: it may be unable to hold what the model writes.
function M.tell_encoding(buffer)
  local encoding = vim.bo[buffer].fileencoding
  if encoding ~= '' and belongs(buffer) then
    local params = { uri = vim.uri_from_bufnr(buffer), encoding = encoding }
    require('kode.client').notify('kode/editor/didChangeEncoding', params)
  end
end

-- When and how large the file of a buffer was written last.
local function written(buffer)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(buffer))
  return stat and { stat.mtime, stat.size } or {}
end

-- The same of each buffer, as of its last read or write: what differs is somebody else's.
local on_disk = {}

--- Let the sidecar see a buffer.
function M.attach(buffer)
  local client = process.client()
  if client and process.state.ready and belongs(buffer) then
    on_disk[buffer] = on_disk[buffer] or written(buffer)
    M.tell_encoding(buffer)
    return vim.lsp.buf_attach_client(buffer, client.id)
  end
  return false
end

--- Let it see all buffers of the open folder, these and those to come.
function M.watch()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    M.attach(buffer)
  end
  if group then
    return
  end
  group = vim.api.nvim_create_augroup('kode_documents', {})
  vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'BufWritePost' }, {
    group = group,
    callback = function(event)
      on_disk[event.buf] = written(event.buf)
      if M.attach(event.buf) then
        require('kode.review').refresh_soon()
      end
    end,
  })
  vim.api.nvim_create_autocmd('OptionSet', {
    group = group,
    pattern = 'fileencoding',
    callback = function()
      M.tell_encoding(vim.api.nvim_get_current_buf())
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'CursorHold', 'ModeChanged' }, {
    group = group,
    callback = function(event)
      M.tell_context(event.buf)
    end,
  })
end

local told

--- Tell what the user looks at, if it is something else than before.
function M.tell_context(buffer)
  if buffer ~= vim.api.nvim_get_current_buf() or not belongs(buffer) then
    return
  end
  local params = { uri = vim.uri_from_bufnr(buffer) }
  if vim.fn.mode():find('^[vV\22]') then
    local first, last = vim.fn.line('v'), vim.fn.line('.')
    params.selection = {
      start = { line = math.min(first, last) - 1, character = 0 },
      ['end'] = { line = math.max(first, last), character = 0 },
    }
  end
  if not vim.deep_equal(params, told) then
    told = params
    require('kode.client').notify('kode/editor/didChangeContext', params)
  end
end

--- The buffer of a file, if it is loaded.
---@param path string
---@return integer?
function M.loaded(path)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer) == path then
      return buffer
    end
  end
end

--- The loaded buffer of a file, which the sidecar sees; nil where there is no such file.
---@param uri string
---@return integer?
function M.open(uri)
  local path = vim.uri_to_fname(uri)
  local buffer = M.loaded(path)
  if not buffer then
    if not vim.uv.fs_stat(path) then
      return nil
    end
    buffer = vim.fn.bufadd(path)
    local messages = vim.o.shortmess
    vim.o.shortmess = messages .. 'A' -- a swap file must not ask in the middle of a decision
    vim.fn.bufload(buffer)
    vim.o.shortmess = messages
    vim.bo[buffer].buflisted = true
    if vim.bo[buffer].filetype == '' then
      local filetype = vim.filetype.match({ buf = buffer })
      vim.bo[buffer].filetype = filetype or ''
    end
  end
  M.attach(buffer)
  return buffer
end

--- The version of a buffer that the sidecar was told last.
function M.version(buffer)
  return vim.lsp.util.buf_versions[buffer]
end

--- Write buffers that still have the version that the sidecar knows, without asking the user.
---@param documents { uri: string, version: integer }[]
---@return string[] saved their URIs
function M.save(documents)
  local saved = {}
  for _, document in ipairs(documents) do
    local buffer = M.loaded(vim.uri_to_fname(document.uri))
    if
      buffer
      and M.version(buffer) == document.version
      and not vim.bo[buffer].readonly
      and vim.deep_equal(on_disk[buffer], written(buffer))
      and pcall(vim.api.nvim_buf_call, buffer, function()
        vim.cmd('silent keepalt lockmarks write!')
      end)
    then
      table.insert(saved, document.uri)
    end
  end
  return saved
end

return M
