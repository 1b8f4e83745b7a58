--- Lists to choose from, by `vim.ui.select`: sessions, the tree, models, modes, the queue.
local M = {}

local client = require('kode.client')
local sessions = require('kode.sessions')
local task = require('kode.task')

-- The user's choice of things with a `label`.
local function choose(items, prompt, kind)
  return task.select(items, {
    prompt = prompt,
    kind = kind,
    format_item = function(item)
      return item.label
    end,
  })
end

local function clip(text, width)
  return vim.fn.strcharpart(text:gsub('%s+', ' '), 0, width)
end

-- "3 min", "2 h", "5 d"
local function age(stamp)
  local year, month, day, hour, minute, second = stamp:match('(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not year then
    return ''
  end
  local then_utc = os.time({
    year = tonumber(year) or 0,
    month = tonumber(month) or 0,
    day = tonumber(day) or 0,
    hour = tonumber(hour),
    min = tonumber(minute),
    sec = tonumber(second),
    isdst = false,
  })
  local now_utc = os.time(os.date('!*t') --[[@as osdateparam]])
  local minutes = math.max(0, math.floor((now_utc - then_utc) / 60))
  if minutes < 60 then
    return minutes .. ' min'
  elseif minutes < 48 * 60 then
    return math.floor(minutes / 60) .. ' h'
  end
  return math.floor(minutes / 1440) .. ' d'
end

--- A kept session, chosen by the user and opened; `query` is looked for in all that was said.
---@param query? string
function M.sessions(query)
  local asked = { query = query, limit = 200 }
  local found = client.pages('kode/session/list', asked, 'sessions', 1000)
  if #found == 0 then
    return vim.notify('kode: there is no session' .. (query and ' with ' .. query or ''))
  end
  found = vim.tbl_filter(function(session)
    return session.title ~= '' or session.draft ~= '' or sessions.all[session.sessionId] ~= nil
  end, found) -- the others hold nothing
  local items = vim.tbl_map(function(session)
    local open = sessions.all[session.sessionId] and '● ' or '  '
    local title = session.title ~= '' and session.title or 'New session ' .. session.draft
    local told = ('%s%s%s  · %s · %s'):format(
      open,
      session.kind and session.kind .. ': ' or '',
      clip(title, 60),
      age(session.updatedAt),
      session.model
    )
    return { id = session.sessionId, label = told }
  end, found)
  local prompt = query and ('Sessions with "%s"'):format(query) or 'Sessions'
  local choice = choose(items, prompt, 'kode_session')
  local session = choice and sessions.open(choice.id)
  if session then
    require('kode.chat').open(session)
  end
end

-- Prompts, indented by how many branchings lie above them; the end of each branch.
local function tree_items(nodes, head)
  local children, by_id = {}, {}
  for _, node in ipairs(nodes) do
    by_id[node.messageId] = node
    local parent = node.parentId or ''
    children[parent] = children[parent] or {}
    table.insert(children[parent], node)
  end
  local on_path, id = {}, head
  while id and by_id[id] do
    on_path[id], id = true, by_id[id].parentId
  end
  local items = {}
  local function walk(parent, depth)
    local below = children[parent] or {}
    for index, node in ipairs(below) do
      local deeper = depth + (#below > 1 and 1 or 0)
      local leaf = not children[node.messageId]
      if (node.role == 'user' and not node.origin) or leaf then
        local branch = #below > 1 and (index == #below and '└ ' or '├ ') or ''
        local who = node.role == 'user' and 'you: ' or ''
        local here = node.messageId == head and '  ← here' or ''
        local mark = on_path[node.messageId] and '● ' or '○ '
        local said = clip(node.text or table.concat(node.tools or {}, ', '), 60)
        local label = mark .. ('  '):rep(math.max(deeper - 1, 0)) .. branch .. who .. said .. here
        table.insert(items, { node = node, label = label })
      end
      walk(node.messageId, deeper)
    end
  end
  walk('', 0)
  return items
end

--- The tree of the conversation: go on elsewhere, edit a prompt, or fork.
---@param session kode.Session
function M.tree(session)
  local nodes, page = client.pages('kode/tree/get', { sessionId = session.id }, 'nodes')
  local choice = choose(tree_items(nodes, page and page.headId), 'Tree', 'kode_tree')
  if not choice then
    return
  end
  local node = choice.node
  local verbs = { 'Go on below this', 'Fork a session from here' }
  if node.role == 'user' then
    table.insert(verbs, 'Edit this prompt')
  end
  local verb = task.select(verbs, { prompt = clip(choice.label, 60), kind = 'kode_tree_verb' })
  if verb == verbs[1] then
    client.ask('kode/tree/setHead', { sessionId = session.id, messageId = node.messageId })
  elseif verb == verbs[2] then
    local copy = sessions.fork(session.id, node.messageId)
    if copy then
      require('kode.chat').open(copy)
    end
  elseif verb == verbs[3] then
    M.edit(session, node.messageId)
  end
end

--- Put an earlier prompt into the input; sent, it takes that one's place in a branch of its own.
---@param session kode.Session
---@param message_id string
function M.edit(session, message_id)
  local message = session.fold.messages[message_id]
  local texts = {}
  for _, id in ipairs(message.blocks) do
    local block = session.fold.blocks[id]
    if block.type == 'text' then
      table.insert(texts, block.text)
    end
  end
  session.editing = { message = message_id, parent = message.parentId }
  local chat = require('kode.chat')
  chat.open(session)
  chat.of(session):set_input(table.concat(texts, '\n'))
  chat.of(session):to_input(0)
  chat.paint_soon(session)
end

--- Choose the model of a session.
---@param session kode.Session
function M.model(session)
  local answer = client.ask('kode/models/list')
  if not answer then
    return
  end
  local items = {}
  for _, model in ipairs(answer.logical) do
    local first = model.candidates[1]
    local label = model.name .. (first and '  → ' .. first.name or '')
    table.insert(items, { name = model.name, label = label })
  end
  for _, provider in ipairs(answer.providers) do
    for _, model in ipairs(provider.models) do
      if not model.retired then
        local window = model.contextWindow and ('  %d k'):format(model.contextWindow / 1000) or ''
        table.insert(
          items,
          { name = model.name, label = model.name .. window .. '  · ' .. provider.name }
        )
      end
    end
  end
  local choice = choose(items, 'Model', 'kode_model')
  if choice then
    client.ask('kode/session/update', { sessionId = session.id, model = choice.name })
  end
end

--- Choose what a session may cost: "5 CNY"; nothing takes the limit away.
---@param session kode.Session
---@param said? string
function M.budget(session, said)
  local now = session.budget and ('%g %s'):format(session.budget.session, session.budget.currency)
  local prompt = 'What this session may cost, such as 5 CNY: '
  said = said or task.input({ prompt = prompt, default = now })
  local amount, currency = (said or ''):match('^%s*([%d.]+)%s*(%a%a%a)%s*$')
  if tonumber(amount) and tonumber(amount) > 0 then
    session.budget = { currency = currency:upper(), session = tonumber(amount) }
    session.uses = { { scope = 'session', spent = 0, limit = session.budget.session } }
    session.currency = session.budget.currency
  elseif said and vim.trim(said) == '' then
    session.budget, session.uses = nil, nil
  elseif said then
    return vim.notify('kode: say an amount and a currency, such as 5 CNY', vim.log.levels.WARN)
  end
  require('kode.chat').paint_soon(session)
end

local function edit_context(session, method, params)
  params.sessionId = session.id
  local told = client.ask(method, params)
  if told then
    local text = 'kode: the next request has %d tokens instead of %d; %d are read anew'
    vim.notify(text:format(told.tokensAfter, told.tokensBefore, told.rereadTokens))
  end
end

--- What the model is told next: leave a part out, pin it, restore it, undo the newest summary.
---@param session kode.Session
---@param undo? boolean at once
function M.context(session, undo)
  if undo then
    return edit_context(session, 'kode/context/undoCompaction', {})
  end
  local answer, parts = client.ask('kode/context/inspect', { sessionId = session.id }), {}
  for _, part in ipairs(answer and answer.segments or {}) do
    table.insert(parts, part.messageId and part or nil)
  end
  for _, part in ipairs(answer and answer.leftOut or {}) do
    part.leftOut = true
    table.insert(parts, part)
  end
  for _, part in ipairs(parts) do
    local sign = part.leftOut and '−' or part.pinned and '★' or '·'
    local head = clip(part.head, 60)
    part.label = ('%s %6d  %-9s %s'):format(sign, part.tokens, part.origin, head)
  end
  local part = choose(parts, 'Context', 'kode_context')
  if not part then
    return
  end
  local verbs = { { name = 'restore', label = 'Restore it' } }
  if not part.leftOut then
    verbs = { { name = 'leaveOut', label = 'Leave it out' } }
    local pin = { name = 'pin', label = 'Pin it: nothing takes its place' }
    table.insert(verbs, part.pinned and { name = 'restore', label = 'Unpin it' } or pin)
  end
  local verb = choose(verbs, clip(part.head, 60), 'kode_context_verb')
  if verb then
    edit_context(session, 'kode/context/edit', { [verb.name] = { part.messageId } })
  end
end

local modes = {
  { name = 'review', label = 'review: edits wait for you, the turn goes on' },
  { name = 'ask', label = 'ask: the turn waits for your decision' },
  {
    name = 'keep',
    label = 'keep: edits are applied and saved at once, then you keep or undo them',
  },
  { name = 'auto', label = 'auto: edits are applied at once, to be undone' },
  { name = 'plan', label = 'plan: no edits' },
}

--- Choose what becomes of proposed edits.
---@param session kode.Session
function M.mode(session)
  local choice = choose(modes, 'Mode', 'kode_mode')
  if choice then
    client.ask('kode/session/update', { sessionId = session.id, mode = choice.name })
  end
end

local efforts = {
  { name = vim.NIL, label = 'as the model does by itself' },
  { name = 'off', label = 'off: no thinking' },
  { name = 'low', label = 'low' },
  { name = 'medium', label = 'medium' },
  { name = 'high', label = 'high' },
  { name = 'max', label = 'max' },
}

--- Choose how hard the model thinks.
---@param session kode.Session
function M.effort(session)
  local choice = choose(efforts, 'Effort', 'kode_effort')
  if choice then
    client.ask('kode/session/update', { sessionId = session.id, effort = choice.name })
  end
end

--- What the agent remembers: accept a suggestion, or forget one.
function M.memory()
  local answer = client.ask('kode/memory/list')
  if not answer then
    return
  elseif #answer.memories == 0 then
    return vim.notify('kode: nothing is remembered')
  end
  for _, memory in ipairs(answer.memories) do
    memory.waits = memory.state == 'candidate'
    memory.label = (memory.waits and '? ' or '· ') .. clip(memory.content, 100)
  end
  local memory = choose(answer.memories, 'Memory', 'kode_memory')
  local verbs = { { name = 'reject', label = 'Forget it' } }
  if memory and memory.waits then
    table.insert(verbs, 1, { name = 'accept', label = 'Remember it' })
  end
  local verb = memory and choose(verbs, clip(memory.content, 60), 'kode_memory_verb')
  if verb then
    local decision = { memoryId = memory.memoryId, action = verb.name }
    client.ask('kode/memory/decide', { decisions = { decision } })
  end
end

local effects = {
  { name = 'allow', label = 'Allow it' },
  { name = 'ask', label = 'Ask each time' },
  { name = 'deny', label = 'Deny it' },
  { name = vim.NIL, label = 'Remove the rule' },
}

--- The rules that answer for the user in a session: change one, or remove it.
---@param session kode.Session
function M.permissions(session)
  local answer = client.ask('kode/permission/list', { sessionId = session.id })
  for _, rule in ipairs(answer and answer.rules or {}) do
    rule.label = ('%-5s %s %s  · %s'):format(rule.effect, rule.tool, rule.pattern, rule.reason)
  end
  local rule = answer and choose(answer.rules, 'Permissions', 'kode_permissions')
  if rule and rule.source == 'builtIn' then
    return vim.notify('kode: this rule is built in and cannot be changed')
  end
  local effect = rule and choose(effects, rule.label, 'kode_permissions_verb')
  if effect then
    client.ask('kode/permission/set', {
      sessionId = session.id,
      tool = rule.tool,
      pattern = rule.pattern,
      effect = effect.name,
    })
  end
end

local server_states = {
  unapproved = 'waits for your yes',
  refused = 'refused by you',
  idle = 'not started',
  ready = 'runs',
}

--- The MCP servers and how they are: start one, or decide on one that the project names.
function M.servers()
  local answer = client.ask('kode/mcp/list')
  if not answer then
    return
  end
  for _, problem in ipairs(answer.problems) do
    vim.notify('kode: ' .. problem, vim.log.levels.WARN)
  end
  if #answer.servers == 0 then
    return vim.notify('kode: there are no MCP servers; `kode-sidecar mcp add` makes one')
  end
  for _, server in ipairs(answer.servers) do
    server.where = server.url or table.concat(server.command or {}, ' ')
    local state = server_states[server.state] or server.state
    local failure = server.lastError and '  · ' .. server.lastError or ''
    local label = ('%s  · %s  · %s%s'):format(server.name, state, server.where, failure)
    server.label = clip(label, 200)
  end
  local choice = choose(answer.servers, 'MCP servers', 'kode_mcp')
  local undecided = choice and (choice.state == 'unapproved' or choice.state == 'refused')
  local actions = { undecided and 'Allow it' or 'Start it' }
  if choice and choice.source == 'project' then
    table.insert(actions, 'Refuse it')
  end
  local gets = choice and table.concat(choice.variables or {}, ', ') or ''
  local action = choice
    and task.select(actions, {
      prompt = ('%s in %s, gets: %s'):format(choice.where, choice.folder or '.', gets),
    })
  if action == 'Start it' then
    local started = client.ask('kode/mcp/start', { name = choice.name })
    if started then
      vim.notify(('kode: %s runs, and has %d tools'):format(choice.name, #started.tools))
    end
  elseif action then
    client.ask('kode/mcp/decide', {
      name = choice.name,
      fingerprint = choice.fingerprint,
      allowed = action == 'Allow it',
    })
  end
end

--- The prompts that wait: say one now, or take it away.
---@param session kode.Session
function M.queue(session)
  local prompt = task.select(session.queue, {
    prompt = 'Prompts that wait',
    kind = 'kode_queue',
    format_item = function(item)
      return item.text
    end,
  })
  local verb = prompt
    and task.select({ 'Say it now', 'Take it away' }, { prompt = clip(prompt.text, 60) })
  if not verb then
    return
  end
  for index, other in ipairs(session.queue) do
    if other == prompt then
      table.remove(session.queue, index)
    end
  end
  if verb == 'Say it now' and not sessions.steer(session, prompt.input) then
    table.insert(session.queue, 1, prompt)
  end
  require('kode.chat').paint_soon(session)
end

return M
