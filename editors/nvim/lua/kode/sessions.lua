--- The conversations that are open here: what is known of each, what is sent, what comes back.
local M = {}

local Fold = require('kode.fold')
local attention = require('kode.attention')
local client = require('kode.client')
local task = require('kode.task')

---@class kode.Session
---@field id string
---@field fold kode.Fold
---@field queue kode.QueuedPrompt[] prompts for after this turn
---@field attachments kode.Block[] go with the next prompt
---@field editing? { parent?: string, message: string } the next prompt takes the place of this one
---@field questions kode.Question[] that wait for the user
---@field since? integer when its turn began
---@field lost? boolean the process died; opened again when it is back
---@field context? number how full the model's window is, 0 to 1
---@field budget? kode.Budget what the user allows it to cost
---@field uses? kode.BudgetUse[] what of each limit is spent

---@class kode.QueuedPrompt
---@field text string
---@field input kode.Block[]
---@field attached kode.Block[] what of it the user has attached

---@type table<string, kode.Session>
M.all = {}
---@type kode.Session?
M.current = nil

local owners = {} ---@type table<string, kode.Session> of open blocks, for a delta names no session
local keys = 0

--- The session of an id, one of which nothing is known yet where there is none.
---@return kode.Session
function M.ensure(id)
  if not M.all[id] then
    local session = { id = id, fold = Fold.new(), queue = {}, attachments = {}, expanded = {} }
    session.questions = {}
    M.all[id] = session
  end
  return M.all[id]
end

local function show(session)
  require('kode.chat').paint_soon(session)
end

--- Make a session and let it be the current one; nil where that failed.
---@return kode.Session?
function M.new()
  local answer = client.ask('kode/session/new')
  if answer then
    M.current = M.ensure(answer.sessionId)
    local fold = M.current.fold
    fold.seq = math.max(fold.seq, answer.seq)
    fold.mode, fold.model = answer.session.mode, answer.session.model
    return M.current
  end
end

--- The current session, a new one if there is none.
---@return kode.Session?
function M.get()
  return M.current or M.new()
end

local function attach(id, after_seq)
  local answer, failed =
    client.request('kode/session/attach', { sessionId = id, afterSeq = after_seq })
  if failed and failed.name == 'ReplayGap' then
    answer, failed = client.request('kode/session/attach', { sessionId = id })
  end
  if not answer then
    return nil, failed
  end
  local session = M.ensure(id)
  session.fold:attach(answer) -- before anything that comes behind it, and before other pages
  for block_id, block in pairs(session.fold.blocks) do
    if block.parts then
      owners[block_id] = session
    end
  end
  session.lost = nil
  if answer.cursor then
    local params = { sessionId = id, all = true, cursor = answer.cursor }
    session.fold:page((client.pages('kode/message/list', params, 'messages')))
  end
  if answer.session then
    session.draft = session.draft or answer.session.draft
    session.kept_draft = answer.session.draft
  end
  require('kode.review').refresh_soon()
  M.measure(session)
  show(session)
  return session
end

--- Open a kept session and let it be the current one. One that another process holds can be copied.
---@return kode.Session?
function M.open(id)
  local session = M.all[id]
  if not session then
    local failed
    session, failed = attach(id)
    if failed and failed.name == 'ReadOnly' then
      local choice = task.select({ 'Go on in a copy', 'Leave it' }, { prompt = failed.message })
      return choice == 'Go on in a copy' and M.fork(id) or nil
    elseif failed then
      vim.notify('kode: ' .. failed.message, vim.log.levels.ERROR)
      return nil
    end
  end
  M.current = session
  return session
end

--- Open again what was open when the process ended.
function M.reopen()
  for id, session in pairs(M.all) do
    if session.lost then
      task.run(function()
        local _, failed = attach(id, session.fold.seq)
        if failed then
          vim.notify('kode: ' .. failed.message, vim.log.levels.ERROR)
        end
      end)
    end
  end
end

--- The process is gone.
function M.lost()
  owners = {}
  for _, session in pairs(M.all) do
    session.lost, session.questions = true, {}
    session.fold.moved = true
    show(session)
  end
  client.abandon()
end

--- A copy of the path to a message, opened; by default of the branch in sight.
---@return kode.Session?
function M.fork(id, message_id)
  local answer = client.ask('kode/session/fork', { sessionId = id, messageId = message_id })
  return answer and M.open(answer.sessionId)
end

--- Leave a session to other processes.
function M.forget(id)
  M.all[id] = nil
  if M.current and M.current.id == id then
    M.current = nil
  end
  require('kode.chat').close(id)
end

--- Send a prompt. False where it was not taken; the user was told why.
---@param session kode.Session
---@param input kode.Block[]
---@return boolean
function M.send(session, input)
  keys = keys + 1
  local params = { sessionId = session.id, input = input }
  params.budget = session.budget or require('kode.config').get().budget
  params.clientTurnKey = ('nvim-%d-%d-%d'):format(vim.fn.getpid(), vim.uv.hrtime(), keys)
  if session.editing then
    params.parentId = session.editing.parent or vim.NIL
  end
  local answer, failed = client.request('kode/turn/start', params)
  if failed and failed.name == 'ProcessEnded' then -- with its key the prompt is never taken twice
    answer, failed = client.request('kode/turn/start', params)
  end
  if failed then
    vim.notify('kode: ' .. failed.message, vim.log.levels.ERROR)
    return false
  end
  session.editing = nil
  show(session)
  return answer ~= nil
end

--- Tell the running turn something; false where it could not be said.
function M.steer(session, input)
  if not session.fold.turnId then
    return M.send(session, input)
  end
  local params = { sessionId = session.id, turnId = session.fold.turnId, input = input }
  local answer, failed = client.request('kode/turn/steer', params)
  if failed and failed.name == 'NoActiveTurn' then
    return M.send(session, input)
  elseif failed then
    vim.notify('kode: ' .. failed.message, vim.log.levels.ERROR)
  end
  show(session)
  return answer ~= nil
end

--- Stop the turn that runs.
function M.cancel(session)
  local answer = client.ask('kode/turn/cancel', { sessionId = session.id })
  return answer ~= nil and answer.cancelled
end

--- Send what waits, if nothing runs.
function M.send_next(session)
  local prompt = not session.fold.turnId and table.remove(session.queue, 1)
  if prompt then
    task.run(function()
      if not M.send(session, prompt.input) then
        table.insert(session.queue, 1, prompt)
      end
      show(session)
    end)
  end
end

--- Ask how full the model's window is.
function M.measure(session)
  task.run(function()
    local answer = client.request('kode/context/inspect', { sessionId = session.id })
    if answer and answer.window then
      session.context = answer.tokens / answer.window
      show(session)
    end
  end)
end

-- Notify of a session while the user looks elsewhere.
local function away(session, text)
  local title = session.fold.title ~= '' and session.fold.title or 'New session'
  attention.away(title .. ' ' .. text)
end

local after = {}

after['block.started'] = function(session, event)
  owners[event.blockId] = session
end

after['turn.started'] = function(session)
  session.since = vim.uv.now()
end

after['block.completed'] = function(_, event)
  owners[event.blockId] = nil
end

after['changeSet.updated'] = function()
  require('kode.review').refresh_soon()
end

after['usage.updated'] = function(session, event)
  local use = event.context
  if use and use.window and use.window > 0 then
    session.context = use.tokens / use.window
  end
end

after['budget.updated'] = function(session, event)
  session.uses, session.currency = event.uses, event.currency
end

after['turn.completed'] = function(session, event)
  if event.stopReason == 'end_turn' then
    M.send_next(session)
  else
    require('kode.chat').take_back(session)
  end
  vim.api.nvim_exec_autocmds('User', {
    pattern = 'KodeTurnCompleted',
    data = { sessionId = session.id, stopReason = event.stopReason },
  })
  local ended = { end_turn = 'is done', error = 'has failed' }
  away(session, ended[event.stopReason] or 'has stopped: ' .. event.stopReason)
end

after['decision.requested'] = function(session)
  away(session, 'waits for your decision on its edits')
end

local function withdraw(session, event)
  require('kode.questions').withdraw(session, event.requestId)
end

after['permission.resolved'], after['ask.resolved'] = withdraw, withdraw

after['notice'] = function(_, event)
  local levels = { warning = vim.log.levels.WARN, error = vim.log.levels.ERROR }
  if levels[event.level] then
    attention.say(event.message, levels[event.level])
  end
end

--- `kode/event`.
function M.take_events(params)
  local session = M.ensure(params.sessionId)
  for _, event in ipairs(params.events) do
    session.fold:event(event)
    if after[event.type] then
      after[event.type](session, event)
    end
  end
  show(session)
end

--- `kode/delta`.
function M.take_deltas(params)
  for _, delta in ipairs(params.deltas) do
    local session = owners[delta.blockId]
    if session then
      session.fold:delta(delta)
      show(session)
    end
  end
end

return M
