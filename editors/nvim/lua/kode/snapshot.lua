--- The answer to `kode/session/attach`, taken into a fold: a replay goes on, a snapshot starts anew.
local Fold = require('kode.fold')

local M = {}

-- A kept message, told as the events that made it. Blocks in `open` still grow.
local function add_message(fold, message, open)
  local added = { type = 'message.added', messageId = message.id, role = message.role }
  added.parentId, added.meta = message.parentId, message.meta
  added.version, added.createdAt = message.version, message.createdAt
  fold:event(added)
  for _, block in ipairs(message.content or {}) do
    local event =
      { type = 'block.started', messageId = message.id, blockId = block.id, block = block }
    fold:event(event)
    if not open[block.id] then
      event.type = 'block.completed'
      fold:event(event)
    end
  end
end

local function snapshot(fold, answer, messages, open)
  for name, value in pairs(Fold.new()) do
    fold[name] = value
  end
  for _, message in ipairs(messages) do
    add_message(fold, message, {})
    fold:event({
      type = 'message.completed',
      messageId = message.id,
      model = message.model,
      isApiErrorMessage = message.isApiErrorMessage,
    })
  end
  fold.leaf = answer.headId
  for _, message in ipairs(answer.openMessages or {}) do
    add_message(fold, message, open)
  end
  for _, set in ipairs(answer.changeSets or {}) do
    set.type = 'changeSet.updated'
    fold:event(set)
  end
  for _, question in ipairs(answer.pending or {}) do
    fold.pending[question.requestId] = question
  end
  local session = answer.session or {}
  fold.title, fold.meta = session.title or '', session.meta
  fold.mode, fold.model = session.mode, session.model
end

--- `messages` are all of the session's, as a snapshot may name only the first page of them.
---@param fold kode.Fold
---@param answer kode.SessionAttachResult
---@param messages kode.Message[]
function M.take(fold, answer, messages)
  local open = {}
  for _, block in ipairs(answer.openBlocks or {}) do
    open[block.blockId] = block.text
  end
  for _, event in ipairs(answer.events or {}) do
    fold:event(event)
  end
  if answer.mode == 'snapshot' then
    snapshot(fold, answer, messages, open)
  end
  for id, text in pairs(open) do
    fold:grown(id, text)
  end
  fold.seq, fold.turn = answer.seq, answer.activeTurnId
  fold.usage, fold.cost, fold.moved = answer.usage, answer.cost, true
end

return M
