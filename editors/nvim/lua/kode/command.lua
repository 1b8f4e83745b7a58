--- `:Kode`: every verb by its name.
local M = {}

local sessions = require('kode.sessions')
local task = require('kode.task')

-- The functions of a module that is loaded when one of them is called.
local function lazy(module)
  return function(name)
    return require(module)[name]
  end
end

local chat, decide, review = lazy('kode.chat'), lazy('kode.decide'), lazy('kode.review')
local picker, pages = lazy('kode.picker'), lazy('kode.pages')
local findings = lazy('kode.findings')

-- What opens a session is waited for by the commands behind it: they are about that one.
local opening = task.queue()

-- The session of the chat one is in, else the current one, else a new one.
local function session()
  return opening(function()
    local here = package.loaded['kode.chat'] and chat('session_of')(vim.api.nvim_get_current_buf())
    return here or sessions.get()
  end)
end

local function with_session(body)
  return function(words, call)
    local current = session()
    if current then
      body(current, words, call)
    end
  end
end

local function tell(text)
  vim.notify('kode: ' .. text)
end

-- What was typed behind the verb as one text, nil for nothing.
local function said(words)
  return #words > 0 and table.concat(words, ' ') or nil
end

local function pick(name)
  return with_session(function(current, words)
    picker(name)(current, said(words))
  end)
end

local function attach(current, block, problem)
  if block then
    table.insert(current.attachments, block)
    chat('paint_soon')(current)
    tell('attached ' .. require('kode.cards').attachment(block)[1]:gsub('^▪ ', ''))
  else
    vim.notify('kode: ' .. (problem or 'there is nothing to attach'), vim.log.levels.WARN)
  end
end

local function add(current, words, call)
  local attachments, buffer = require('kode.attachments'), call.buffer
  if words[1] == 'diagnostics' then
    attach(current, attachments.diagnostics(buffer), 'there are no diagnostics here')
  elseif words[1] and words[1]:match('^@[^/:]+:') then
    local blocks, failed = attachments.resource(table.concat(words, ' '):sub(2))
    for _, block in ipairs(blocks or { false }) do
      attach(current, block, failed and failed.message or 'no MCP server is named there')
    end
  elseif words[1] then
    attach(current, attachments.file(table.concat(words, ' ')))
  elseif call.range > 0 then
    attach(current, attachments.selection(buffer, call.line1, call.line2))
  else
    attach(current, attachments.file(vim.api.nvim_buf_get_name(buffer)))
  end
end

-- The user's prompt at the cursor of the chat, else the last one.
local function prompt_here(current)
  local buffer, found = chat('of')(current), nil
  local row = buffer and vim.api.nvim_get_current_buf() == buffer.buffer and vim.fn.line('.') - 1
  for _, item in ipairs(buffer and buffer.items or {}) do
    if item.kind == 'header' and item.message.role == 'user' then
      if not found or not row or item.start <= row then
        found = item.message
      end
    end
  end
  return found
end

local function edit(current, _, call)
  if call.bang then
    current.editing = nil
    return chat('paint_soon')(current)
  end
  local message = prompt_here(current)
  if not message then
    return tell('there is no prompt to edit')
  end
  picker('edit')(current, message.id)
end

-- The message at the cursor of the chat; nil for the end of the branch.
local function message_here(current)
  local buffer = chat('of')(current)
  if not buffer or vim.api.nvim_get_current_buf() ~= buffer.buffer then
    return nil
  end
  local item = buffer:item_at(vim.fn.line('.') - 1)
  return item and (item.message and item.message.id or item.block and item.block.message)
end

local function open(made)
  opening(function()
    local current = made()
    if current then
      chat('open')(current)
    end
  end)
end

local function fork(current)
  local message = message_here(current)
  open(function()
    return sessions.fork(current.id, message)
  end)
end

local function ask(current, words, call)
  if call.range > 0 then
    add(current, {}, call)
  end
  local text = said(words) or task.input({ prompt = 'Ask: ' })
  if text and text ~= '' then
    chat('open')(current)
    chat('say')(current, text, 'next')
  end
end

-- Decisions are made one after the other: each is about what the one before has left.
local in_order = task.queue()

local function ordered(body)
  return function(words)
    in_order(function()
      body(words)
    end)
  end
end

local function decision(action)
  return ordered(function(words)
    if words[1] == 'all' then
      decide('all')(action)
    elseif words[1] == 'file' then
      decide('all')(action, vim.uri_from_bufnr(0))
    else
      decide('one')({ action = action, comment = said(words) })
    end
  end)
end

local function step(direction)
  return ordered(function()
    local hunk = review('neighbour')(direction)
    if hunk then
      review('go')(hunk)
    else
      tell('no hunk waits')
    end
  end)
end

local function context(current, words)
  if words[1] == 'edit' or words[1] == 'undo' then
    return picker('context')(current, words[1] == 'undo')
  end
  pages('context')(current)
end

-- All that the call at the cursor of the chat has answered.
local function output(current)
  local buffer, fold = chat('of')(current), current.fold
  local item = buffer and buffer:item_at(vim.fn.line('.') - 1)
  local result = item and item.block and fold.blocks[fold.results[item.block.id] or '']
  if not result then
    return tell('there is no output here; go to a call in the chat')
  end
  pages('output')(result)
end

-- `kode-sidecar setup` asks for a key and saves it; the process that runs has read the old ones.
local function key()
  local process = require('kode.process')
  local command, problem = process.command()
  if not command then
    return vim.notify('kode: ' .. problem, vim.log.levels.ERROR)
  end
  local env = require('kode.config').get().env
  vim.cmd('botright new')
  vim.fn.termopen(process.program(command, { 'setup' }), {
    env = next(env) and env or nil,
    on_exit = function(_, code)
      if code == 0 and process.client() then
        process.stop(true)
      end
    end,
  })
  vim.cmd.startinsert()
end

local verbs = {
  chat = function(words)
    if #words > 0 then
      return ask(session(), words, { range = 0 })
    elseif
      not (package.loaded['kode.chat'] and chat('session_of')(vim.api.nvim_get_current_buf()))
    then
      local current = session()
      return current and chat('open')(current)
    end
    chat('hide')()
  end,
  new = function()
    open(sessions.new)
  end,
  ask = with_session(ask),
  add = with_session(add),
  detach = with_session(function(current)
    current.attachments = {}
    chat('paint_soon')(current)
  end),
  send = with_session(function(current)
    chat('submit')(current, 'next')
  end),
  steer = with_session(function(current, words)
    if #words > 0 then
      return chat('say')(current, table.concat(words, ' '), 'now')
    end
    chat('submit')(current, 'now')
  end),
  stop = with_session(function(current)
    if not sessions.cancel(current) then
      tell('nothing runs')
    end
  end),
  ['continue'] = with_session(function(current)
    sessions.send(current, {})
  end),
  retry = with_session(function(current)
    local message = prompt_here(current)
    if not message then
      return tell('there is no prompt to send again')
    end
    current.editing = { message = message.id, parent = message.parentId }
    if not sessions.send(current, current.fold:content(message)) then
      current.editing = nil
    end
  end),
  answer = function()
    require('kode.questions').go()
  end,
  queue = pick('queue'),
  edit = with_session(edit),
  fork = with_session(fork),
  tree = pick('tree'),
  sessions = function(words)
    picker('sessions')(said(words))
  end,
  title = with_session(function(current, words)
    local title = said(words) or task.input({ prompt = 'Title: ' })
    if title then
      require('kode.client').ask('kode/session/update', { sessionId = current.id, title = title })
    end
  end),
  delete = with_session(function(current)
    local choice = task.select(
      { 'Delete it', 'Keep it' },
      { prompt = 'Delete this session for good?' }
    )
    if choice == 'Delete it' then
      if require('kode.client').ask('kode/session/delete', { sessionId = current.id }) then
        sessions.forget(current.id)
      end
    end
  end),
  compact = with_session(function(current)
    require('kode.client').ask('kode/context/compact', { sessionId = current.id })
  end),
  model = pick('model'),
  mode = pick('mode'),
  effort = pick('effort'),
  budget = pick('budget'),
  mcp = function()
    picker('servers')()
  end,
  context = with_session(context),
  next = step(1),
  prev = step(-1),
  accept = decision('accept'),
  reject = decision('reject'),
  comment = ordered(function(words)
    local comment = said(words) or task.input({ prompt = 'Why not: ' })
    if comment then
      decide('one')({ action = 'reject', comment = comment })
    end
  end),
  change = function()
    decide('change')()
  end,
  hunks = function()
    decide('list')()
  end,
  findings = function(words)
    local steps = { next = 1, prev = -1 }
    if steps[words[1]] then
      return findings('step')(steps[words[1]])
    end
    findings('list')()
  end,
  finding = function(words)
    findings('act')(words)
  end,
  undo = ordered(function(words)
    decide('undo')(words[1] or 'hunk')
  end),
  redo = ordered(function()
    decide('redo')()
  end),
  restart = function()
    require('kode.process').stop(true)
  end,
  quit = function()
    require('kode.process').stop(false)
  end,
  log = function()
    vim.cmd('tabedit ' .. vim.fn.fnameescape(vim.lsp.get_log_path()))
  end,
  doctor = function()
    pages('doctor')()
  end,
  usage = function()
    pages('usage')()
  end,
  skills = function()
    pages('skills')()
  end,
  output = with_session(output),
  memory = function()
    picker('memory')()
  end,
  permissions = pick('permissions'),
  trust = function()
    if require('kode.client').ask('kode/workspace/setTrust', { trusted = true }) then
      tell('this folder is trusted until the sidecar ends')
    end
  end,
  key = key,
  demo = function()
    require('kode.demo').run()
  end,
  help = function()
    if not pcall(vim.cmd.help, 'kode-keys') then -- nobody has made the tags yet
      local page = vim.api.nvim_get_runtime_file('doc/kode.txt', false)[1]
      vim.cmd.helptags(vim.fn.fnameescape(vim.fs.dirname(page)))
      vim.cmd.help('kode-keys')
    end
  end,
}

local more = {
  accept = { 'all', 'file' },
  reject = { 'all', 'file' },
  findings = { 'next', 'prev' },
  finding = { 'fix', 'explain', 'dismiss', 'done', 'open' },
  undo = { 'hunk', 'turn', 'changes' },
  context = { 'edit', 'undo' },
}

-- What a prompt `/name` can call, by name; the process has the list.
local function prompts()
  local answer = require('kode.client').ask('kode/verbs/list')
  local found = {}
  for _, verb in ipairs(answer and answer.verbs or {}) do
    found[verb.name] = verb
  end
  return found
end

-- Send `/name words`, with the selection, to the chat.
local function call_prompt(name, words, call)
  if not prompts()[name] then
    return vim.notify(('kode: there is no :Kode %s'):format(name), vim.log.levels.ERROR)
  end
  ask(session(), { '/' .. name, unpack(words) }, call)
end

--- Run the command with what Neovim gives it.
function M.run(call)
  local words = vim.list_slice(call.fargs)
  local name = table.remove(words, 1) or 'chat'
  call.buffer = vim.api.nvim_get_current_buf()
  task.run(function()
    local verb = verbs[name]
    if verb then
      verb(words, call)
    else
      call_prompt(name, words, call)
    end
  end)
end

-- What a function asks of the process; nobody starts one for that, nor waits long.
local function asked(list)
  local found
  if require('kode.process').client() then
    task.run(function()
      found = list()
    end)
    vim.wait(1000, function()
      return found ~= nil
    end, 10)
  end
  return found or {}
end

--- What may follow, for the command line.
function M.complete(lead, line)
  local words = vim.split(line, '%s+')
  local first = vim.iter(ipairs(words)):find(function(_, word)
    return word:find('Kode')
  end) or 1
  local candidates
  if #words - first <= 1 then
    candidates = vim.tbl_keys(vim.tbl_extend('force', asked(prompts), verbs))
  elseif words[first + 1] == 'add' then
    candidates = vim.list_extend({ 'diagnostics' }, vim.fn.getcompletion(lead, 'file'))
    if vim.startswith(lead, '@') then
      vim.list_extend(candidates, asked(require('kode.attachments').resources))
    end
  else
    candidates = more[words[first + 1]] or {}
  end
  table.sort(candidates)
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
