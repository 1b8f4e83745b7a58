-- Stock Neovim with the sidecar as a language server: no plugin is on the path.
vim.opt.shortmess:append('FIW')
vim.opt.more = false
vim.opt.swapfile = false
vim.opt.hidden = true
vim.opt.rtp:append(vim.env.KODE_NVIM_LIB)

local HANG_MS = 30000
local options = vim.json.decode(vim.env.KODE_NVIM_OPTIONS)
local answers = {}
Plain = {}
assert(not pcall(require, 'kode'), 'the plugin must not be there')

local function choose(items, label, on_choice)
  local wanted = table.remove(answers, 1)
  for _, item in ipairs(items) do
    if wanted and label(item):find(wanted, 1, true) then
      return on_choice(item)
    end
  end
  on_choice(nil)
end

vim.ui.select = function(items, opts, on_choice)
  choose(items, opts.format_item or tostring, on_choice)
end

local said = {}
vim.notify = function(text)
  table.insert(said, text)
end

local function start(buffer)
  vim.lsp.start({ name = 'kode', cmd = options.cmd, root_dir = vim.fn.getcwd() }, { bufnr = buffer })
end

vim.api.nvim_create_autocmd('FileType', {
  callback = function(event)
    if event.match ~= '' and vim.bo[event.buf].buftype == '' then
      start(event.buf)
    end
  end,
})
vim.cmd('filetype on')

local function client()
  return vim.lsp.get_clients({ name = 'kode' })[1]
end

local function buffer_of(uri)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.uri_from_bufnr(buffer):find(uri, 1, true) then
      return buffer
    end
  end
end

local function text_of(uri)
  local buffer = buffer_of(uri)
  return buffer and table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), '\n') .. '\n' or ''
end

local function messages()
  return table.concat(said, '\n') .. '\n' .. vim.fn.execute('messages')
end

function Plain.open(path)
  vim.cmd('edit ' .. vim.fn.fnameescape(path))
  local buffer = vim.api.nvim_get_current_buf()
  assert(vim.wait(HANG_MS, function()
    local found = client()
    return found and found.initialized and vim.lsp.buf_is_attached(buffer, found.id)
  end, 10))
  return vim.uri_from_bufnr(buffer)
end

function Plain.act(uri, first, last, words)
  vim.api.nvim_set_current_buf(buffer_of(uri))
  vim.api.nvim_win_set_cursor(0, { first + 1, 0 })
  local range
  if last > first then
    range = { start = { first + 1, 0 }, ['end'] = { last + 1, 0 } }
  end
  local select, done = vim.ui.select, nil
  vim.ui.select = function(items, opts, on_choice)
    for _, item in ipairs(items) do
      if opts.format_item(item):find(words, 1, true) then
        done = true
        return on_choice(item)
      end
    end
    done = vim.tbl_map(opts.format_item, items)
    on_choice(nil)
  end
  local others = vim.tbl_map(function(one)
    return one.user_data and one.user_data.lsp
  end, vim.diagnostic.get(0, { lnum = first }))
  vim.lsp.buf.code_action({ range = range, context = { diagnostics = vim.tbl_values(others) } })
  vim.wait(HANG_MS, function()
    return done ~= nil
  end, 10)
  vim.ui.select = select
  assert(done == true, vim.inspect(done or messages()))
end

function Plain.run(command, ...)
  local params = { command = command, arguments = { ... } }
  if client().exec_cmd then
    client():exec_cmd({ title = command, command = command, arguments = { ... } })
  else
    client().request('workspace/executeCommand', params, function() end)
  end
end

function Plain.answer(words)
  table.insert(answers, words)
end

function Plain.insert(uri, line, text)
  local buffer = buffer_of(uri)
  local lines = vim.split(text, '\n')
  local at = line < 0 and vim.api.nvim_buf_line_count(buffer) or line
  vim.api.nvim_buf_set_lines(buffer, at, at, true, lines)
end

function Plain.tick(uri, words)
  local buffer = buffer_of(uri)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
    if line:find(words, 1, true) then
      vim.api.nvim_buf_set_lines(buffer, number - 1, number, true, { (line:gsub('%[ %]', '[x]')) })
    end
  end
end

function Plain.text(uri)
  return text_of(uri)
end

function Plain.wait_text(uri, words)
  local found = vim.wait(HANG_MS, function()
    return text_of(uri):find(words, 1, true) ~= nil
  end, 10)
  assert(found, ('no %q in %s\n%s'):format(words, text_of(uri), messages()))
end

function Plain.wait_hunks(uri, count, first)
  local buffer, seen = buffer_of(uri), nil
  local found = vim.wait(HANG_MS, function()
    seen = vim.tbl_filter(function(one)
      return one.source == 'kode'
    end, vim.diagnostic.get(buffer))
    return #seen == count and (not first or seen[1].lnum == first)
  end, 10)
  assert(found, vim.inspect(seen) .. messages())
  return vim.tbl_map(function(one)
    return one.lnum
  end, seen)
end

function Plain.wait_message(words)
  local found = vim.wait(HANG_MS, function()
    return messages():find(words, 1, true) ~= nil
  end, 10)
  assert(found, words .. ' is not in\n' .. messages())
end

function Plain.complain(uri, line, message)
  local buffer = buffer_of(uri)
  local place = { start = { line = line, character = 4 }, ['end'] = { line = line, character = 10 } }
  local problem = { range = place, message = message, source = 'other', severity = 1 }
  vim.diagnostic.set(vim.api.nvim_create_namespace('other'), buffer, {
    { lnum = line, col = 4, end_lnum = line, end_col = 10, message = message, user_data = { lsp = problem } },
  })
end

function Plain.add_folder(path)
  vim.lsp.buf.add_workspace_folder(path)
end

function Plain.restart()
  for _, found in ipairs(vim.lsp.get_clients({ name = 'kode' })) do
    found.stop(true)
  end
  assert(vim.wait(HANG_MS, function()
    return client() == nil
  end, 10))
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].filetype ~= '' then
      start(buffer)
    end
  end
end
