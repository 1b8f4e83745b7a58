--- What the language servers of this Neovim know, for the model: the answers to `kode/editor/*`.
local M = {}

local call = require('kode.client').call
local documents = require('kode.documents')
local process = require('kode.process')
local task = require('kode.task')

local modern = vim.fn.has('nvim-0.11') == 1
local AFTER_EDIT_MS = 4000
local ANSWER_MS = 15000

local function byte_column(line, character, encoding)
  if encoding == 'utf-8' then
    return math.min(character, #line)
  elseif modern then
    return vim.str_byteindex(line, encoding, character, false)
  end
  local ok, column = pcall(vim.str_byteindex, line, character, encoding == 'utf-16')
  return ok and column or #line
end

local function encoded_column(line, column, encoding)
  if encoding == 'utf-8' then
    return column
  elseif modern then
    return vim.str_utfindex(line, encoding, column, false)
  end
  local utf32, utf16 = vim.str_utfindex(line, math.min(column, #line))
  return encoding == 'utf-16' and utf16 or utf32
end

-- The lines of files, read once for an answer.
local function reader()
  local known = {}
  return function(uri, line)
    if not known[uri] then
      local path = vim.uri_to_fname(uri)
      local buffer = documents.loaded(path)
      local ok, lines = pcall(vim.fn.readfile, path)
      known[uri] = buffer and vim.api.nvim_buf_get_lines(buffer, 0, -1, false) or ok and lines or {}
    end
    return known[uri][line + 1] or ''
  end
end

-- A position as another server counts it.
local function moved(text, position, from, to)
  local column = encoded_column(text, byte_column(text, position.character, from), to)
  return { line = position.line, character = column }
end

local function our_encoding()
  return process.client().offset_encoding
end

local function our_range(line_of, uri, range, encoding)
  local ours = our_encoding()
  return {
    start = moved(line_of(uri, range.start.line), range.start, encoding, ours),
    ['end'] = moved(line_of(uri, range['end'].line), range['end'], encoding, ours),
  }
end

local function servers(method, buffer)
  return vim.tbl_filter(function(client)
    return client.name ~= 'kode'
  end, vim.lsp.get_clients({ bufnr = buffer, method = method }))
end

-- What every server answers; `params_for` one of them. Only in a task.
local function ask(method, buffer, params_for, take)
  local clients = servers(method, buffer)
  local waiting = #clients
  if waiting == 0 then
    return
  end
  task.await(function(resume)
    local function answered(client, result)
      if result then
        take(result, client)
      end
      waiting = waiting - 1
      if waiting == 0 then
        vim.schedule(resume)
      end
    end
    for _, client in ipairs(clients) do
      local function handler(_, result)
        answered(client, result)
      end
      if not call(client, 'request', method, params_for(client), handler, buffer) then
        answered(client, nil)
      end
    end
    vim.defer_fn(resume, ANSWER_MS)
  end)
end

local function at_place(params, line_of, more)
  return function(client)
    local text = line_of(params.uri, params.position.line)
    return vim.tbl_extend('error', {
      textDocument = { uri = params.uri },
      position = moved(text, params.position, our_encoding(), client.offset_encoding),
    }, more or {})
  end
end

local function locations(method, more)
  return function(params)
    local found, line_of = {}, reader()
    local buffer = documents.open(params.uri)
    ask(method, buffer, at_place(params, line_of, more), function(result, client)
      for _, place in ipairs(vim.islist(result) and result or { result }) do
        local uri, range = place.uri or place.targetUri, place.range or place.targetSelectionRange
        range = our_range(line_of, uri, range, client.offset_encoding)
        table.insert(found, { uri = uri, range = range })
      end
    end)
    return { locations = found }
  end
end

M.definition = locations('textDocument/definition')
M.references = locations('textDocument/references', { context = { includeDeclaration = true } })

function M.hover(params)
  local told, line_of = {}, reader()
  local buffer = documents.open(params.uri)
  ask('textDocument/hover', buffer, at_place(params, line_of), function(result)
    vim.list_extend(told, vim.lsp.util.convert_input_to_markdown_lines(result.contents))
  end)
  return { text = table.concat(told, '\n') }
end

function M.symbols(params)
  local found, line_of = {}, reader()
  local function take(result, client)
    local function add(symbol, container)
      local uri = params.uri or symbol.location.uri
      local range = symbol.selectionRange or symbol.location.range
      range = range and our_range(line_of, uri, range, client.offset_encoding)
      container = symbol.containerName or container or ''
      if range then
        local one = { name = symbol.name, kind = symbol.kind, uri = uri, range = range }
        one.container = container ~= '' and container or nil
        table.insert(found, one)
      end
      for _, child in ipairs(symbol.children or {}) do
        add(child, symbol.name)
      end
    end
    for _, symbol in ipairs(result) do
      add(symbol)
    end
  end
  local method = params.uri and 'textDocument/documentSymbol' or 'workspace/symbol'
  ask(method, params.uri and documents.open(params.uri), function()
    local document = params.uri and { uri = params.uri }
    return { textDocument = document or nil, query = not document and params.query or nil }
  end, take)
  return { symbols = found }
end

function M.rename(params)
  local files, refused, line_of = {}, nil, reader()
  local place = at_place(params, line_of, { newName = params.newName })
  local buffer = documents.open(params.uri)
  -- One server renames: edits of two would meet.
  ask('textDocument/rename', buffer, place, function(result, client)
    if #files > 0 then
      return
    end
    local changes = result.documentChanges or {}
    for uri, edits in pairs(not result.documentChanges and result.changes or {}) do
      table.insert(changes, { textDocument = { uri = uri }, edits = edits })
    end
    for _, change in ipairs(changes) do
      if change.kind then
        refused = 'the rename would also create, move or delete files'
      else
        local uri, edits = change.textDocument.uri, {}
        for _, edit in ipairs(change.edits) do
          local range = our_range(line_of, uri, edit.range, client.offset_encoding)
          table.insert(edits, { range = range, newText = edit.newText })
        end
        table.insert(files, { uri = uri, edits = edits })
      end
    end
  end)
  return { files = files, refused = refused }
end

-- Until diagnostics of a buffer arrive, or nobody has anything to say.
local function wait_for_servers(buffer)
  if #servers(nil, buffer) == 0 then
    return
  end
  task.await(function(resume)
    local id = vim.api.nvim_create_autocmd('DiagnosticChanged', {
      buffer = buffer,
      once = true,
      callback = function()
        vim.schedule(resume)
      end,
    })
    vim.defer_fn(function()
      pcall(vim.api.nvim_del_autocmd, id)
      resume()
    end, AFTER_EDIT_MS)
  end)
end

function M.diagnostics(params)
  local buffer = params.uri and documents.open(params.uri)
  if buffer and params.afterEdit then
    wait_for_servers(buffer)
  end
  local by_uri, line_of, ours = {}, reader(), our_encoding()
  for _, one in ipairs(vim.diagnostic.get(buffer)) do
    local uri = vim.uri_from_bufnr(one.bufnr)
    local function position(line, column)
      local text = line_of(uri, line)
      return { line = line, character = encoded_column(text, math.min(column, #text), ours) }
    end
    by_uri[uri] = by_uri[uri] or {}
    table.insert(by_uri[uri], {
      range = {
        start = position(one.lnum, one.col),
        ['end'] = position(one.end_lnum or one.lnum, one.end_col or one.col),
      },
      message = one.message,
      severity = one.severity,
      source = one.source,
      code = one.code and tostring(one.code) or nil,
    })
  end
  local files = {}
  for uri, found in pairs(by_uri) do
    table.insert(files, { uri = uri, diagnostics = found })
  end
  return { files = files }
end

return M
