--- What an editor shows of one session: feed it what is sent, read the fields. A snapshot with pages
--- of `kode/message/list`, a replay and the stream lead to the same fields, as in `fold.ts` and
--- `fold.py`. A block is as it was sent, with `parts` while it grows. Older sessions name no call.
-- stylua: ignore start
---@class kode.Fold
local Fold = {}
Fold.__index = Fold

function Fold.new()
  local fold = { seq = 0, title = '', mode = '', model = '', meta = {}, usage = {}, notices = {} }
  fold.messages, fold.blocks, fold.results, fold.changeSets, fold.hunks = {}, {}, {}, {}, {}
  fold.scouts, fold.progress, fold.pending, fold.plan, fold.findings, fold.touched = {}, {}, {}, {}, {}, {}
  return setmetatable(fold, Fold)
end

local function length(text) return select(2, text:gsub('[^\128-\191]', '')) end -- in code points

local function take(known, sent)
  for name, value in pairs(sent) do known[name] = value end
  return known
end

local function add_block(self, message_id, block_id, sent, open)
  local message, block = self.messages[message_id], take(self.blocks[block_id] or {}, sent)
  if not self.blocks[block_id] then table.insert(message.blocks, block_id) end
  block.id, block.messageId, block.open = block_id, message_id, open
  block.parts, block.points = open and {} or nil, 0
  self.blocks[block_id], self.touched[block_id], self.touched[message_id] = block, true, true
  if block.type == 'tool_result' then
    local call, above = block.callBlockId, self.messages[message.parentId] or { blocks = {} }
    for _, id in ipairs(call and {} or above.blocks) do call = self.blocks[id].toolUseId == block.toolUseId and id or call end
    self.results[call or ''], self.touched[call or ''] = block_id, true
  end
end

local function add_message(self, id, sent, complete, growing)
  local message = take(self.messages[id] or { blocks = {}, meta = {} }, sent)
  message.id, message.complete, message.content = id, complete, nil
  self.messages[id], self.touched[id] = message, true
  for _, block in ipairs(sent.content or {}) do add_block(self, id, block.id, block, (growing or {})[block.id] ~= nil) end
  return id
end

--- Take a change set: of an event, a snapshot, or `kode/changeSet/get`.
function Fold:change_set(sent)
  local id = sent.changeSetId
  local set = self.changeSets[id] or { id = id, turnId = sent.turnId, hunks = {} }
  self.changeSets[id], self.touched[id], set.state = set, true, sent.state
  for _, file in ipairs(sent.files or {}) do
    for _, news in ipairs(file.hunks) do
      local hunk = self.hunks[news.hunkId] or { turnId = set.turnId, eol = '\n' }
      table.insert(set.hunks, not self.hunks[news.hunkId] and news.hunkId or nil)
      self.hunks[news.hunkId] = take(hunk, news)
      hunk.changeSetId, hunk.uri, hunk.path = id, file.uri, file.path
      hunk.eol = (file.base or hunk).eol
    end
  end
end

local function session(self, sent)
  for _, name in ipairs({ 'title', 'mode', 'model', 'meta', 'headId' }) do
    self[name] = sent[name] or self[name]
  end
  self.headId = self.headId ~= '' and self.headId or nil
end

local on = { ['changeSet.updated'] = Fold.change_set, ['session.updated'] = session }
on['turn.started'] = function(self, event) self.turnId, self.lastTurn = event.turnId, nil end
on['turn.completed'] = function(self, event) self.turnId, self.lastTurn, self.progress, self.pending = nil, event, {}, {} end
on['message.added'] = function(self, event) self.headId = add_message(self, event.messageId, event, false) end
on['message.completed'] = function(self, event) add_message(self, event.messageId, event, true) end
on['block.started'] = function(self, event) add_block(self, event.messageId, event.blockId, event.block, true) end
on['block.completed'] = function(self, event) add_block(self, event.messageId, event.blockId, event.block, false) end
on['block.dropped'] = function(self, event)
  local blocks = self.messages[event.messageId].blocks
  for index = #blocks, 1, -1 do
    if blocks[index] == event.blockId then table.remove(blocks, index) end
  end
  self.blocks[event.blockId], self.touched[event.messageId] = nil, true
end
on['scout.updated'] = function(self, event) self.scouts[event.scoutId] = event end
on['tool.progress'] = function(self, event)
  self.progress[event.toolUseId] = event
  for _, call in ipairs(event.siblingToolUseIds or {}) do self.progress[call] = event end
end
local function ask(self, event) self.pending[event.requestId] = event end
local function resolve(self, event) self.pending[event.requestId] = nil end
for _, what in ipairs({ 'permission', 'ask', 'decision' }) do on[what .. '.requested'], on[what .. '.resolved'] = ask, resolve end
on['plan.updated'], on['review.updated'] = function(self, event) self.plan = event.items end, function(self, event) self.findings = event.findings end
on['usage.updated'] = function(self, event) self.usage, self.cost = event.usage, event.cost end
on['model.waiting'] = function(self, event) self.waiting = event end
on['notice'] = function(self, event) table.insert(self.notices, event) end

--- Fold one event; false if it was sent before. Kinds that came later do nothing.
function Fold:event(event)
  local seq = event.seq or 0
  local news = seq == 0 or seq > self.seq
  if news then
    self.seq, self.waiting = math.max(self.seq, seq), not event.turnId and self.waiting or nil
    if on[event.type] then on[event.type](self, event) end
  end
  return news
end

--- Add what is new of a delta; `at` counts code points.
function Fold:delta(delta)
  local block, first = self.blocks[delta.blockId], 1
  if block and block.parts and delta.at <= block.points then
    for _ = 1, block.points - delta.at do first = delta.add:find('[^\128-\191]', first + 1) or #delta.add + 1 end
    table.insert(block.parts, delta.add:sub(first))
    block.points = block.points + length(delta.add:sub(first))
    self.touched[block.id], self.touched[block.messageId] = true, true
  end
end

--- The text of a block as far as it has come.
function Fold.text(block)
  if block.parts then block.parts = { table.concat(block.parts) } end
  return block.parts and block.parts[1] or block.text or ''
end

--- Take complete messages: those of a snapshot, or a page of `kode/message/list`.
function Fold:page(messages)
  for _, message in ipairs(messages) do add_message(self, message.id, message, true) end
end

--- Take the answer of `kode/session/attach`: a replay, or a snapshot into a new fold.
function Fold:attach(sent)
  local growing = {}
  for _, open in ipairs(sent.openBlocks or {}) do growing[open.blockId] = open.text end
  for _, event in ipairs(sent.events or {}) do self:event(event) end
  if sent.mode == 'snapshot' then
    session(self, sent.session)
    self:page(sent.messages or {})
    self.usage, self.cost, self.lastTurn, self.headId, self.plan, self.findings = sent.usage, sent.cost, sent.lastTurn, sent.headId, sent.plan or {}, sent.findings or {}
    for _, message in ipairs(sent.openMessages or {}) do
      self.headId = add_message(self, message.id, message, false, growing) -- it stands at the tip
    end
    for _, set in ipairs(sent.changeSets or {}) do self:change_set(set) end
    for _, waiting in ipairs({ sent.pending, sent.asks }) do for _, asked in ipairs(waiting) do self.pending[asked.requestId] = asked end end
  end
  for id, text in pairs(growing) do
    local block = self.blocks[id] or {}
    block.points, block.parts = length(text), block.parts and { text }
  end
  self.seq, self.turnId = sent.seq, sent.activeTurnId
end

return Fold
