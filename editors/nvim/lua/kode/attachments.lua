--- What goes along with a prompt: files, selections, diagnostics, images.
local M = {}

local images = {
  png = 'image/png',
  jpg = 'image/jpeg',
  jpeg = 'image/jpeg',
  gif = 'image/gif',
  webp = 'image/webp',
}
local severities = { 'error', 'warning', 'information', 'hint' }

local function resource(path, extra)
  return vim.tbl_extend('force', { type = 'resource', uri = vim.uri_from_fname(path) }, extra or {})
end

--- Lines of a buffer as the user sees them, saved or not.
function M.selection(buffer, first, last)
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  return resource(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ':p'), {
    text = table.concat(lines, '\n'),
    languageId = vim.bo[buffer].filetype ~= '' and vim.bo[buffer].filetype or nil,
    startLine = first,
    endLine = last,
  })
end

--- A file or an image; nil where there is none.
---@return kode.Block? block
---@return string? problem
function M.file(path)
  path = vim.fn.fnamemodify(vim.fn.expand(path), ':p')
  local media = images[(path:match('%.(%w+)$') or ''):lower()]
  if vim.fn.filereadable(path) == 0 then
    return nil, path .. ' cannot be read'
  elseif media then
    local file = assert(io.open(path, 'rb'))
    local data = file:read('*a')
    file:close()
    return { type = 'image', mediaType = media, data = vim.base64.encode(data) }
  end
  local buffer = require('kode.documents').loaded(path)
  if buffer then
    local whole = M.selection(buffer, 1, vim.api.nvim_buf_line_count(buffer))
    whole.startLine, whole.endLine = nil, nil
    return whole
  end
  local text = table.concat(vim.fn.readfile(path), '\n') .. '\n'
  return resource(path, { text = text })
end

--- What is wrong in a buffer, as its language servers and linters say; nil where nothing is.
function M.diagnostics(buffer)
  local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ':.')
  local lines = {}
  for _, found in ipairs(vim.diagnostic.get(buffer)) do
    local severity = severities[found.severity] or 'note'
    table.insert(
      lines,
      ('%s:%d:%d: %s: %s'):format(name, found.lnum + 1, found.col + 1, severity, found.message)
    )
  end
  if #lines > 0 then
    return { type = 'text', text = 'Diagnostics:\n' .. table.concat(lines, '\n') }
  end
end

--- What an MCP server has at an address, as blocks; the server is started for it. Only in a task.
---@param name string `server:uri`
---@return kode.Block[]? blocks nil where there is no such server, or it failed
---@return kode.Failure? failure
function M.resource(name)
  local server, uri = name:match('^([%w_.-]+):(.+)$')
  if not server then
    return nil
  end
  local answer, failed =
    require('kode.client').request('kode/mcp/read', { name = server, uri = uri })
  return answer and answer.input, failed
end

--- What may follow an `@`: the resources of MCP servers, as far as it is known. Only in a task.
---@return string[]
function M.resources()
  local answer, names = require('kode.client').request('kode/mcp/list'), {}
  for _, server in ipairs(answer and answer.servers or {}) do
    for _, one in ipairs(server.resources or {}) do
      table.insert(names, ('@%s:%s'):format(server.name, one.uri))
    end
    for _, one in ipairs(server.templates or {}) do -- the rest is the user's to fill in
      table.insert(names, ('@%s:%s'):format(server.name, (one.uriTemplate:match('^[^{]*'))))
    end
  end
  return names
end

--- The blocks of a prompt: what is attached, what it names by `@path` or `@server:uri`, and its text.
---@param attached kode.Block[]
---@param text string
---@return kode.Block[]
function M.input(attached, text)
  local blocks = vim.list_extend({}, attached)
  local root = require('kode.process').root()
  for path in text:gmatch('%f[%S]@(%S+)') do
    path = path:gsub('[,.;:!?]+$', '')
    local full = vim.startswith(path, '/') and path or root .. '/' .. path
    local block = M.file(full)
    if block then
      table.insert(blocks, block)
    else
      local found, failed = M.resource(path)
      vim.list_extend(blocks, found or {})
      if failed and failed.name ~= 'NotFound' then
        vim.notify('kode: ' .. failed.message, vim.log.levels.WARN)
      end
    end
  end
  if text ~= '' then
    table.insert(blocks, { type = 'text', text = text })
  end
  return blocks
end

return M
