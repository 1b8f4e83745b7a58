--- The protocol's fold as this plugin draws it: what came or went, and which branch is in sight.
---
--- `moved` says that messages or blocks came or went, or another branch is in sight. Whoever draws
--- empties `touched` and takes `moved` back.
local Reducer = require('kode.session_fold')

---@class kode.Fold
---@field moved boolean
---@field order string[] the ids of the change sets, oldest first
---@field steered table[] what was said to the running turn and has not entered the tree yet
local Fold = setmetatable({ text = Reducer.text }, { __index = Reducer })
Fold.__index = Fold

function Fold.new()
  local fold = setmetatable(Reducer.new(), Fold)
  fold.moved, fold.steered, fold.order, fold.scout_order = true, {}, {}, {}
  return fold
end

local moves = {
  ['turn.completed'] = true,
  ['message.added'] = true,
  ['block.started'] = true,
  ['block.dropped'] = true,
}

-- Cards of calls show more than their own block.
local function touch_calls(self, event)
  for _, id in ipairs((self.messages[event.messageId] or { blocks = {} }).blocks) do
    self.touched[id] = true
  end
  for id, block in pairs(event.scoutId and self.blocks or {}) do
    self.touched[id] = self.touched[id] or block.toolUseId == event.toolUseId or nil
  end
end

--- Fold one event; false if it was told before.
function Fold:event(event)
  local block, set = self.blocks[event.blockId], self.changeSets[event.changeSetId]
  local grown = block and block.parts and Fold.text(block)
  local first = event.type == 'scout.updated' and not self.scouts[event.scoutId]
  if not Reducer.event(self, event) then
    return false
  end
  table.insert(self.scout_order, first and event.scoutId or nil)
  if event.type == 'block.completed' then
    self.blocks[event.blockId].as_grown = grown == event.block.text
  elseif event.type == 'block.dropped' and event.reason == 'interrupted' and grown then
    if block.type == 'text' then
      -- The process died and keeps nothing of it; what was read stays where it was read.
      local kept = { type = 'text', id = event.blockId, text = grown }
      local completed = { type = 'block.completed', messageId = event.messageId, block = kept }
      completed.blockId = event.blockId
      Reducer.event(self, completed)
    end
  elseif event.type == 'turn.steered' then
    table.insert(self.steered, event.input)
  elseif event.type == 'turn.completed' then
    self.steered = {}
  elseif event.type == 'message.added' and (event.meta or {}).origin == 'steer' then
    table.remove(self.steered, 1)
  elseif event.type == 'tool.progress' or event.type == 'scout.updated' then
    touch_calls(self, event)
  end
  local came = event.type == 'changeSet.updated' and not set
  table.insert(self.order, came and event.changeSetId or nil)
  self.moved = self.moved or moves[event.type] or came or event.headId ~= nil
  return true
end

--- Add what is new of a delta. The output of a command is shown in the card of its call.
function Fold:delta(delta)
  Reducer.delta(self, delta)
  local block = self.blocks[delta.blockId]
  self.touched[block and block.callBlockId or ''] = true
end

--- Take the answer of `kode/session/attach`; further messages of a snapshot come as pages.
---@param told kode.SessionAttachResult
function Fold:attach(told)
  if told.mode == 'snapshot' then
    for name, value in pairs(Fold.new()) do
      self[name] = value
    end
  end
  for _, set in ipairs(told.changeSets or {}) do
    table.insert(self.order, set.changeSetId)
  end
  Reducer.attach(self, told)
  for id, block in pairs(self.blocks) do
    self.touched[id] = block.open or nil
  end
  self.moved = true
end

--- The messages of the branch in sight, oldest first.
function Fold:path()
  local path, id = {}, self.headId
  while id and self.messages[id] do
    table.insert(path, 1, self.messages[id])
    id = self.messages[id].parentId
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

--- The change sets, oldest first.
function Fold:sets()
  return vim.tbl_map(function(id)
    return self.changeSets[id]
  end, self.order)
end

--- The scouts of a call, in the order in which they came.
function Fold:scouts_of(block)
  local found = {}
  for _, id in ipairs(self.scout_order) do
    if self.scouts[id].toolUseId == block.toolUseId then
      table.insert(found, self.scouts[id])
    end
  end
  return found
end

--- Hunks of the session in the order of their change sets, those that `wanted` says yes to.
function Fold:select(wanted)
  local found = {}
  for _, set in ipairs(self:sets()) do
    for _, id in ipairs(set.hunks) do
      if wanted(self.hunks[id]) then
        table.insert(found, self.hunks[id])
      end
    end
  end
  return found
end

--- Was it applied unasked, and has the user yet to keep or undo it? So in the mode `keep`.
function Fold.is_unkept(hunk)
  return hunk.kept == false and hunk.state == 'applied'
end

--- Does it wait for a decision?
function Fold.waits(hunk)
  return hunk.state == 'proposed' or Fold.is_unkept(hunk)
end

--- Its hunks that wait for a decision.
function Fold:waiting_hunks()
  return self:select(Fold.waits)
end

return Fold
