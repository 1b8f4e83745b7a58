--- The parts of a conversation in the order in which they are shown, each with the lines it has.
local M = {}

local Fold = require('kode.fold')
local cards = require('kode.cards')

---@class kode.Item
---@field key string the same for the same part, whatever became of it
---@field kind string
---@field space boolean an empty line above it
---@field id? string of a block, message or change set: when it is touched, the item is drawn anew
---@field count? integer how many lines it has in the buffer

local kinds = { text = 'text', thinking = 'card', tool_use = 'card' }
kinds.image, kinds.resource = 'attachment', 'attachment'

local quiet = { reminder = true, compaction = true }

local function speaker(message)
  return message.role == 'user' and 'user' or 'agent'
end

local Layout = {}
Layout.__index = Layout

function Layout:add(item)
  local before = self.items[#self.items]
  local apart = before and (before.kind ~= item.kind or item.kind == 'text')
  item.space = apart and not (before.kind == 'header' and item.kind ~= 'header') or false
  table.insert(self.items, item)
end

function Layout:block(block)
  if block.type == 'text' and not block.open and Fold.text(block) == '' then
    return
  end
  local kind = kinds[block.type] -- a kind that came later is not shown
  if kind then
    self:add({ key = block.id, id = block.id, kind = kind, block = block })
  end
end

function Layout:message(message)
  if quiet[message.meta.origin] then
    return self:add({ key = 'n' .. message.id, id = message.id, kind = 'note', message = message })
  end
  if message.role ~= 'tool' and (self.speaker ~= speaker(message) or message.role == 'user') then
    self:add({ key = 'h' .. message.id, id = message.id, kind = 'header', message = message })
  end
  self.speaker = speaker(message)
  for _, id in ipairs(message.blocks) do
    self:block(self.fold.blocks[id])
  end
end

-- Change sets stand where their turn ends.
function Layout:change_sets(turn)
  for _, set in ipairs(self.fold:sets()) do
    if set.turnId == turn then
      self:add({ key = set.id, id = set.id, kind = 'changes', set = set })
    end
  end
end

--- All items of the branch in sight, and the questions that wait.
---@param session kode.Session
---@return kode.Item[]
function M.layout(session)
  local fold = session.fold
  local layout = setmetatable({ fold = fold, items = {} }, Layout)
  layout:add({ key = 'title', kind = 'title' })
  local path = fold:path()
  for index, message in ipairs(path) do
    layout:message(message)
    local turn, following = message.meta.turnId, path[index + 1]
    if turn and not (following and following.meta.turnId == turn) then
      layout:change_sets(turn)
    end
  end
  local stop, last = fold.lastTurn, path[#path]
  if stop and stop.stopReason ~= 'end_turn' then
    local said = last and last.isApiErrorMessage
    layout:add({ key = 'stop' .. (stop.turnId or ''), kind = 'stop', event = stop, said = said })
  end
  for _, question in ipairs(session.questions) do
    local id = question.params.requestId
    layout:add({ key = 'q' .. id, id = id, kind = 'question', question = question })
  end
  return layout.items
end

--- The lines of an item, and its marks.
---@param item kode.Item
---@param session kode.Session
---@return string[]
---@return kode.Mark[]
function M.render(item, session)
  local fold, open = session.fold, session.expanded[item.key]
  local block = item.block
  if item.kind == 'title' then
    local title = fold.title ~= '' and fold.title or 'New session'
    return { '# ' .. cards.cut(title, 48) }, { { row = 0, group = 'KodeTitle' } }
  elseif item.kind == 'header' then
    return cards.header(item.message)
  elseif item.kind == 'note' then
    local blocks = vim.tbl_map(function(id)
      return fold.blocks[id]
    end, item.message.blocks)
    return cards.note(item.message, blocks, open)
  elseif item.kind == 'changes' then
    return cards.change_set(item.set, fold)
  elseif item.kind == 'question' then
    return require('kode.questions').card(item.question, open)
  elseif item.kind == 'stop' then
    return cards.stop(item.event, item.said)
  elseif item.kind == 'attachment' then
    return cards.attachment(block)
  elseif block.type == 'thinking' then
    return cards.thinking(block, open)
  elseif block.type == 'tool_use' then
    local result = fold.blocks[fold.results[block.id]]
    return cards.tool(block, result, open, fold)
  end
  return cards.lines(Fold.text(block)), {}
end

return M
