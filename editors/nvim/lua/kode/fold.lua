--- What an editor shows of one session, folded from its events and deltas. Knows nothing of Neovim.
---
--- `touched` collects the ids of what changed (blocks, messages, change sets); whoever draws takes it.
--- `moved` says that messages or blocks came or went, or another branch is in sight.

---@class kode.Fold
---@field seq integer the last stored event
---@field turn? string the turn that runs
---@field leaf? string the message at the end of the branch in sight
---@field messages table<string, kode.FoldedMessage>
---@field blocks table<string, kode.FoldedBlock>
---@field results table<string, string> tool call (`message id` + NUL + `toolUseId`) to the result's block
---@field change_sets table<string, kode.FoldedChangeSet>
---@field hunks table<string, kode.FoldedHunk>
local Fold = {}
Fold.__index = Fold

function Fold.new()
  return setmetatable({
    seq = 0,
    messages = {},
    blocks = {},
    results = {},
    change_sets = {},
    change_set_order = {},
    hunks = {},
    scouts = {},
    progress = {},
    pending = {},
    steered = {},
    notices = {},
    usage = {},
    title = '',
    touched = {},
    moved = true,
  }, Fold)
end

--- How many code points a text has.
local function length(text)
  local _, count = text:gsub('[^\128-\191]', '')
  return count
end

--- The text without its first `count` code points.
local function after(text, count)
  local offset = 1
  for _ = 1, count do
    offset = text:find('[^\128-\191]', offset + 1) or #text + 1
  end
  return text:sub(offset)
end

--- The text of a block, open or not.
function Fold.text(block)
  if block.parts and #block.parts > 1 then
    block.parts = { table.concat(block.parts) }
  end
  return block.parts and block.parts[1] or block.text or ''
end

local on = {}

on['turn.started'] = function(self, event)
  self.turn, self.stop, self.waiting = event.turnId, nil, nil
end

on['turn.completed'] = function(self, event)
  self.turn, self.stop, self.waiting, self.progress = nil, event, nil, {}
  self.steered = {}
  self.moved = true
end

on['turn.steered'] = function(self, event)
  table.insert(self.steered, event.input)
end

on['message.added'] = function(self, event)
  local message = { id = event.messageId, role = event.role, parent = event.parentId, blocks = {} }
  message.meta, message.version, message.at = event.meta or {}, event.version, event.createdAt
  if message.meta.origin == 'steer' then
    table.remove(self.steered, 1)
  end
  self.messages[message.id], self.leaf, self.moved = message, message.id, true
end

on['message.completed'] = function(self, event)
  local message = self.messages[event.messageId]
  message.done, message.model, message.error = true, event.model, event.isApiErrorMessage
  self.touched[message.id] = true
end

on['block.started'] = function(self, event)
  local block = { id = event.blockId, message = event.messageId, parts = {}, length = 0 }
  block.type, block.name, block.call = event.block.type, event.block.name, event.block.toolUseId
  self.blocks[block.id], self.moved = block, true
  table.insert(self.messages[event.messageId].blocks, block.id)
end

on['block.completed'] = function(self, event)
  local block = self.blocks[event.blockId]
  block.as_grown = block.parts and Fold.text(block) == event.block.text
  for name, value in pairs(event.block) do
    block[name] = value
  end
  block.parts, block.length, block.done, block.call = nil, nil, true, event.block.toolUseId
  self.touched[block.id] = true
  if block.type == 'tool_result' then
    local asking = self.messages[self.messages[block.message].parent]
    self.results[asking.id .. '\0' .. block.call] = block.id
    for _, id in ipairs(asking.blocks) do
      self.touched[id] = true
    end
  end
end

on['block.dropped'] = function(self, event)
  local block = self.blocks[event.blockId]
  if event.reason == 'interrupted' and block.type == 'text' then
    -- The process died and keeps nothing of it; what was read stays where it was read.
    block.text, block.parts, block.done = Fold.text(block), nil, true
    self.touched[block.id] = true
    return
  end
  local ids = self.messages[block.message].blocks
  for index, id in ipairs(ids) do
    if id == event.blockId then
      table.remove(ids, index)
    end
  end
  self.blocks[event.blockId], self.moved = nil, true
end

on['changeSet.updated'] = function(self, event)
  local set = self.change_sets[event.changeSetId]
  if not set then
    set = { id = event.changeSetId, turn = event.turnId, hunks = {} }
    self.change_sets[set.id], self.moved = set, true
    table.insert(self.change_set_order, set.id)
  end
  set.state = event.state
  for _, file in ipairs(event.files or {}) do
    for _, told in ipairs(file.hunks) do
      local hunk = self.hunks[told.hunkId]
      if not hunk then
        hunk = { set = set.id, uri = file.uri, path = file.path, flags = {} }
        self.hunks[told.hunkId] = hunk
        table.insert(set.hunks, told.hunkId)
      end
      for name, value in pairs(told) do
        hunk[name] = value
      end
    end
  end
  self.touched[set.id] = true
end

on['session.updated'] = function(self, event)
  self.title, self.meta = event.title or self.title, event.meta or self.meta
  self.mode, self.model = event.mode or self.mode, event.model or self.model
  if event.headId then
    self.leaf, self.moved = event.headId ~= '' and event.headId or nil, true
  end
end

on['usage.updated'] = function(self, event)
  self.usage, self.cost = event.usage, event.cost
end

on['model.waiting'] = function(self, event)
  self.waiting = event.message
end

on['tool.progress'] = function(self, event)
  self.progress[event.toolUseId] = event
  for _, id in ipairs((self.messages[event.messageId] or { blocks = {} }).blocks) do
    self.touched[id] = true
  end
end

on['scout.updated'] = function(self, event)
  local scouts = self.scouts[event.toolUseId] or { order = {} }
  if not scouts[event.scoutId] then
    table.insert(scouts.order, event.scoutId)
  end
  scouts[event.scoutId], self.scouts[event.toolUseId] = event, scouts
  for id, block in pairs(self.blocks) do
    if block.type == 'tool_use' and block.call == event.toolUseId then
      self.touched[id] = true
    end
  end
end

on['permission.requested'] = function(self, event)
  self.pending[event.requestId] = event
end

on['permission.resolved'] = function(self, event)
  self.pending[event.requestId] = nil
end

on['notice'] = function(self, event)
  table.insert(self.notices, event)
end

function Fold:event(event)
  if event.seq then
    if event.seq <= self.seq then
      return
    end
    self.seq = event.seq
  end
  if self.turn and event.turnId == self.turn and event.type ~= 'model.waiting' then
    self.waiting = nil
  end
  if on[event.type] then
    on[event.type](self, event)
  end
end

function Fold:delta(delta)
  local block = self.blocks[delta.blockId]
  if not block or not block.parts or delta.at > block.length then
    return
  end
  local add = delta.add
  if delta.at < block.length then
    add = after(add, block.length - delta.at)
  end
  if add ~= '' then
    table.insert(block.parts, add)
    block.length = block.length + length(add)
    self.touched[block.id], self.waiting = true, nil
  end
end

--- Take the whole text so far of a block that still grows.
function Fold:grown(id, text)
  local block = self.blocks[id]
  if block and block.parts then
    block.parts, block.length = { text }, length(text)
    self.touched[id] = true
  end
end

--- The messages of the branch in sight, oldest first.
function Fold:path()
  local path, id = {}, self.leaf
  while id and self.messages[id] do
    path[#path + 1] = self.messages[id]
    id = self.messages[id].parent
  end
  for low = 1, math.floor(#path / 2) do
    local high = #path + 1 - low
    path[low], path[high] = path[high], path[low]
  end
  return path
end

--- The blocks of a message as a prompt takes them: without what the server gave them.
function Fold:content(message)
  local input = {}
  for _, id in ipairs(message.blocks) do
    local block = self.blocks[id]
    local wanted = { type = block.type, text = block.text, uri = block.uri, data = block.data }
    wanted.mediaType, wanted.languageId = block.mediaType, block.languageId
    wanted.startLine, wanted.endLine = block.startLine, block.endLine
    table.insert(input, wanted)
  end
  return input
end

--- Hunks of the session in the order of their change sets, those that `wanted` says yes to.
function Fold:select(wanted)
  local found = {}
  for _, set_id in ipairs(self.change_set_order) do
    for _, id in ipairs(self.change_sets[set_id].hunks) do
      if wanted(self.hunks[id]) then
        table.insert(found, self.hunks[id])
      end
    end
  end
  return found
end

return Fold
