--- The chat's windows: one buffer a session, above a rule what was said, below it what is written.
local M = {}

local config = require('kode.config')
local sessions = require('kode.sessions')
local task = require('kode.task')

---@type table<string, kode.ChatBuffer>
local buffers = {}

local links = {
  KodeTitle = 'Title',
  KodeYou = 'Identifier',
  KodeAgent = 'Function',
  KodeCard = 'Comment',
  KodeTool = 'Special',
  KodeOk = 'DiagnosticOk',
  KodeError = 'DiagnosticError',
  KodeRunning = 'DiagnosticInfo',
  KodeWaiting = 'DiagnosticWarn',
  KodeChanges = 'Function',
  KodeDim = 'Comment',
  KodeRule = 'WinSeparator',
  KodeHeading = '@markup.heading',
  KodeCode = '@markup.raw',
  KodeCodeBlock = 'ColorColumn',
  KodeFence = 'ColorColumn',
  KodeStrong = '@markup.strong',
  KodeList = '@markup.list',
}

local function highlights()
  for name, target in pairs(links) do
    vim.api.nvim_set_hl(0, name, { link = target, default = true })
  end
end

--- Does the chat have a buffer for this session?
---@return kode.ChatBuffer?
function M.of(session)
  return session and buffers[session.id]
end

--- The session of a buffer of the chat.
---@return kode.Session?
function M.session_of(buffer)
  for id, chat in pairs(buffers) do
    if chat.buffer == buffer then
      return sessions.all[id]
    end
  end
end

local function make(session)
  highlights()
  local chat = require('kode.chat_buffer').new(session)
  buffers[session.id] = chat
  local group = vim.api.nvim_create_augroup('kode_chat_' .. chat.buffer, {})
  local function on(events, callback)
    local options = { group = group, buffer = chat.buffer, callback = callback }
    vim.api.nvim_create_autocmd(events, options)
  end
  on({ 'CursorMoved', 'CursorMovedI', 'InsertEnter', 'BufEnter' }, function()
    chat:guard()
  end)
  on({ 'TextChanged', 'TextChangedI' }, function()
    chat:draw_rule()
  end)
  on({ 'InsertLeave', 'BufLeave' }, function()
    M.keep_draft(session)
  end)
  on('BufWipeout', function()
    session.draft = chat:input()
    buffers[session.id] = nil
  end)
  if config.get().chat.keys then
    require('kode.chat_keys').set(chat.buffer)
  end
  if session.draft and session.draft ~= '' then
    chat:set_input(session.draft)
  end
  return chat
end

--- What is written and not sent lives in the session, so that it is there tomorrow.
function M.keep_draft(session)
  local chat = buffers[session.id]
  local draft = chat and chat:input()
  if not draft or draft == (session.kept_draft or '') or session.lost then
    return
  end
  session.kept_draft = draft
  task.run(function()
    require('kode.client').request('kode/session/update', { sessionId = session.id, draft = draft })
  end)
end

local function new_window()
  local options = config.get().chat
  local wide = options.position == 'right' or options.position == 'left'
  local screen = wide and vim.o.columns or vim.o.lines
  local size = options.size < 1 and math.floor(screen * options.size) or options.size
  local commands = {
    right = ('botright vertical %dsplit'):format(size),
    left = ('topleft vertical %dsplit'):format(size),
    bottom = ('botright %dsplit'):format(size),
    tab = 'tab split',
  }
  if commands[options.position] then
    vim.cmd(commands[options.position])
    vim.w.kode_chat = true
  end
  return vim.api.nvim_get_current_win()
end

-- A file that is opened in the chat's own window, by a jump or `:edit`, goes to a window for code.
local function give_back(window, file)
  local chat = buffers[(sessions.current or {}).id]
  if not vim.api.nvim_win_is_valid(window) then
    return
  elseif not chat then -- its session was deleted
    vim.w[window].kode_chat = nil
  elseif vim.api.nvim_win_get_buf(window) == file and vim.bo[file].buftype == '' then
    local at = vim.api.nvim_win_get_cursor(window)
    vim.api.nvim_win_set_buf(window, chat.buffer)
    require('kode.follow').show(file, at)
  end
end

vim.api.nvim_create_autocmd('BufEnter', {
  group = vim.api.nvim_create_augroup('kode_chat_window', {}),
  callback = function(event)
    local window = vim.api.nvim_get_current_win()
    if vim.w.kode_chat and not M.session_of(event.buf) then
      vim.schedule(function()
        give_back(window, event.buf)
      end)
    end
  end,
})

local function chat_window()
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if M.session_of(vim.api.nvim_win_get_buf(window)) then
      return window
    end
  end
end

--- Show a session and go there; in the window of the chat, if there is one in this tab page.
---@param session kode.Session
---@return kode.ChatBuffer
function M.open(session)
  sessions.current = session
  local chat = buffers[session.id] or make(session)
  local window = chat_window() or new_window()
  vim.api.nvim_set_current_win(window)
  vim.api.nvim_win_set_buf(window, chat.buffer)
  for name, value in pairs({
    wrap = true,
    linebreak = true,
    breakindent = true,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldcolumn = '0',
    foldenable = false,
    spell = false,
    conceallevel = 2,
    winfixwidth = true,
  }) do
    vim.api.nvim_set_option_value(name, value, { win = window, scope = 'local' })
  end
  chat:paint()
  chat:to_input(window)
  return chat
end

--- Close the chat's windows in this tab page. True if there was one.
function M.hide()
  local window = chat_window()
  if window and #vim.api.nvim_tabpage_list_wins(0) > 1 then
    vim.api.nvim_win_close(window, false)
    return true
  end
  return window ~= nil
end

--- Take the buffer of a session away.
function M.close(id)
  local chat = buffers[id]
  if chat and vim.api.nvim_buf_is_valid(chat.buffer) then
    vim.api.nvim_buf_delete(chat.buffer, { force = true })
  end
  buffers[id] = nil
end

--- Draw what has changed with the next frame; more that changes until then is drawn with it.
---@param session kode.Session
function M.paint_soon(session)
  local chat = buffers[session.id]
  if not chat then
    require('kode.status').changed()
    return
  end
  if chat.soon then
    return
  end
  chat.soon = true
  vim.defer_fn(function()
    chat.soon = false
    if vim.api.nvim_buf_is_valid(chat.buffer) then
      chat:paint()
      require('kode.status').changed()
    end
  end, config.get().chat.frame_ms)
end

-- An MCP server may be waited for: prompts stay in the order in which they were given.
local taking = task.queue()

local function taken(attached, text)
  return taking(function()
    return require('kode.attachments').input(attached, text)
  end)
end

--- Send what is written: now, or after the turn that runs.
---@param session kode.Session
---@param how 'next'|'now'
function M.submit(session, how)
  local chat = buffers[session.id]
  local text = chat and vim.trim(chat:input()) or ''
  if text == '' and #session.attachments == 0 then
    return
  end
  chat:set_input('')
  M.say(session, text, how, function()
    if chat:input() == '' then
      chat:set_input(text)
    end
  end)
end

--- A turn was stopped, or has failed: what waited for its end comes back into the input.
---@param session kode.Session
function M.take_back(session)
  local chat, texts = buffers[session.id], {}
  for _, prompt in ipairs(session.queue) do
    table.insert(texts, prompt.text)
    vim.list_extend(session.attachments, prompt.attached)
  end
  local draft = chat and chat:input() or session.draft or ''
  table.insert(texts, draft ~= '' and draft or nil)
  if #session.queue > 0 and chat then
    chat:set_input(table.concat(texts, '\n'))
  elseif #session.queue > 0 then
    session.draft = table.concat(texts, '\n')
  end
  session.queue = {}
end

--- Say something in a session; `refused` is called where it was not taken.
---@param session kode.Session
---@param text string
---@param how 'next'|'now'
---@param refused? fun()
function M.say(session, text, how, refused)
  local attached = session.attachments
  session.attachments = {}
  local input = taken(attached, text)
  if session.fold.turnId and how == 'next' then
    table.insert(session.queue, { text = text, input = input, attached = attached })
    return M.paint_soon(session)
  end
  task.run(function()
    local send = how == 'now' and sessions.steer or sessions.send
    if not send(session, input) then
      session.attachments = attached
      if refused then
        refused()
      end
    else
      M.keep_draft(session)
    end
    M.paint_soon(session)
  end)
end

return M
