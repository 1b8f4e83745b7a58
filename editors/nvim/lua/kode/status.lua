--- What goes on, in a line: for a status line and for the rule above the chat's input.
local M = {}

local sessions = require('kode.sessions')

--- "kimi-k2.6 · review · 12 % · 0.0123 CNY"
local function facts(session)
  local fold, told = session.fold, {}
  table.insert(told, fold.model)
  table.insert(told, fold.mode)
  if session.context then
    table.insert(told, ('%d %%'):format(math.ceil(session.context * 100)))
  end
  local limits = {}
  for _, use in ipairs(session.uses or {}) do
    local known = use.scope == 'session' and fold.cost and fold.cost.currency == session.currency
    local spent = known and fold.cost.amount or use.spent -- of the others only the start is told
    table.insert(limits, ('%s %.4f of %g'):format(use.scope, spent, use.limit))
  end
  if #limits > 0 then
    table.insert(told, table.concat(limits, ', ') .. ' ' .. session.currency)
  elseif fold.cost and fold.cost.amount > 0 then
    table.insert(told, ('%.4f %s'):format(fold.cost.amount, fold.cost.currency))
  end
  return table.concat(told, ' · ')
end

--- "running", "2 hunks wait", "ready"
function M.state(session)
  if session.lost then
    return 'restarting'
  elseif next(session.fold.pending) then
    return 'asks you'
  elseif session.fold.turnId then
    return session.fold.waiting and 'waiting' or 'running'
  end
  local count = #session.fold:waiting_hunks()
  return count > 0 and ('%d %s'):format(count, count == 1 and 'hunk waits' or 'hunks wait')
    or 'ready'
end

---@return string
function M.line()
  local session = sessions.current
  if not session then
    return ''
  end
  local told = facts(session)
  return 'kode ' .. M.state(session) .. (told ~= '' and ' · ' .. told or '')
end

-- Virtual lines are cut at the window's edge: a long text becomes several.
local function wrapped(text, group, width, lines)
  local line = ''
  for _, character in ipairs(vim.fn.split(text, '\\zs')) do
    if vim.fn.strdisplaywidth(line .. character) > width then
      local head, rest = line:match('^(.*%S) (.*)$')
      table.insert(lines, { { head or line, group } })
      line = head and rest or ''
    end
    line = line .. character
  end
  table.insert(lines, { { line, group } })
end

local frames = vim.fn.split('⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏', '\\zs')
M.FRAME_MS = 120

-- What turns while a turn runs, and for how long it has run.
local function working(session)
  local since = session.since and vim.uv.now() - session.since or 0
  local frame = frames[math.floor(vim.uv.now() / M.FRAME_MS) % #frames + 1]
  return ('%s %s %d s'):format(frame, M.state(session), math.floor(since / 1000))
end

--- The virtual lines between what was said and what is written.
---@param session kode.Session
---@param width integer of the window
function M.rule(session, width)
  local fold, lines = session.fold, {}
  if fold.waiting then
    wrapped(fold.waiting.message, 'KodeDim', width, lines)
  end
  for _, input in ipairs(fold.steered) do
    local text = 'sent, not read yet: ' .. (input[1] and input[1].text or '')
    wrapped(text:gsub('%s+', ' '), 'KodeRunning', width, lines)
  end
  for index, prompt in ipairs(session.queue) do
    local text = prompt.text:gsub('%s+', ' ')
    table.insert(lines, { { ('next %d: '):format(index), 'KodeTool' }, { text, 'KodeDim' } })
  end
  local state, told = M.state(session), facts(session)
  local running = next(fold.pending) and 'KodeWaiting'
    or fold.turnId and 'KodeRunning'
    or state == 'ready' and 'KodeOk'
    or 'KodeWaiting'
  table.insert(lines, {
    { '── ', 'KodeRule' },
    { fold.turnId and not next(fold.pending) and working(session) or state, running },
    { told ~= '' and ' · ' .. told .. ' ' or ' ', 'KodeDim' },
    { ('─'):rep(200), 'KodeRule' },
  })
  if session.editing then
    table.insert(
      lines,
      { { 'takes the place of an earlier prompt; :Kode edit! leaves it', 'KodeWaiting' } }
    )
  end
  for _, block in ipairs(session.attachments) do
    local shown = require('kode.cards').attachment(block)[1]
    table.insert(lines, { { shown, 'KodeTool' } })
  end
  return lines
end

local last

--- Something changed: let status lines know, if it shows.
function M.changed()
  local line = M.line()
  if line ~= last then
    last = line
    vim.cmd.redrawstatus({ bang = true })
  end
end

return M
