--- The buffer of one session: draws only what changed, and keeps what is written below the rule.
---
--- What stands above the rule is drawn from the session and only from it: whatever else is done to
--- these lines is put right again.
local M = {}

local Fold = require('kode.fold')
local markdown = require('kode.markdown')
local transcript = require('kode.transcript')

-- How much of a growing text is drawn in one frame, so that no frame is long.
local MOST_BYTES = 4096

local marks = vim.api.nvim_create_namespace('kode_chat')
local rules = vim.api.nvim_create_namespace('kode_chat_rule')

local foldable = { card = true, note = true, question = true }

---@class kode.ChatBuffer
---@field buffer integer
---@field session kode.Session
---@field items kode.Item[] as they stand in the buffer
---@field more table<string, true> texts of which not all is drawn yet
local ChatBuffer = {}
ChatBuffer.__index = ChatBuffer

---@param session kode.Session
---@return kode.ChatBuffer
function M.new(session)
  local buffer = vim.api.nvim_create_buf(false, true)
  local self =
    setmetatable({ buffer = buffer, session = session, items = {}, more = {} }, ChatBuffer)
  vim.api.nvim_buf_set_name(buffer, 'kode://chat/' .. session.id:sub(1, 8))
  vim.bo[buffer].buftype, vim.bo[buffer].bufhidden, vim.bo[buffer].swapfile =
    'nofile', 'hide', false
  vim.bo[buffer].filetype = 'kode'
  -- Right gravity: lines that are put in above it push it down.
  self.rule = vim.api.nvim_buf_set_extmark(buffer, rules, 0, 0, {})
  session.fold.moved = true
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function(_, _, _, first)
      if not self.painting and first < self:written() then
        self.damaged = true
        vim.schedule(function()
          self:restore()
        end)
      end
    end,
  })
  self:paint()
  return self
end

--- How many lines the transcript has.
function ChatBuffer:written()
  local last = self.items[#self.items]
  return last and last.start + last.count or 0
end

--- The row where the input begins.
function ChatBuffer:input_row()
  return vim.api.nvim_buf_get_extmark_by_id(self.buffer, rules, self.rule, {})[1] or 0
end

---@return string
function ChatBuffer:input()
  return table.concat(vim.api.nvim_buf_get_lines(self.buffer, self:input_row(), -1, false), '\n')
end

---@param text string
function ChatBuffer:set_input(text)
  self:write(function()
    local lines = vim.split(text, '\n', { plain = true })
    vim.api.nvim_buf_set_lines(self.buffer, self:input_row(), -1, false, lines)
    self:place_rule(self:written())
  end)
end

-- Put the cursor where one writes.
function ChatBuffer:to_input(window)
  local count = vim.api.nvim_buf_line_count(self.buffer)
  local last = vim.api.nvim_buf_get_lines(self.buffer, count - 1, count, false)[1]
  vim.api.nvim_win_set_cursor(window, { count, #last })
  self:guard()
end

--- Only the input can be written to.
function ChatBuffer:guard()
  if vim.api.nvim_get_current_buf() == self.buffer then
    vim.bo[self.buffer].modifiable = vim.fn.line('.') > self:input_row()
    if self.fell and not vim.deep_equal(self.fell.at, vim.api.nvim_win_get_cursor(0)) then
      self.fell = nil
    end
  end
end

-- The cursor in this buffer, and the card of a question in which it stands.
function ChatBuffer:place()
  if vim.api.nvim_get_current_buf() ~= self.buffer then
    return nil
  end
  local at = vim.api.nvim_win_get_cursor(0)
  local item = self:item_at(at[1] - 1)
  return at, item and item.kind == 'question' and item or nil
end

--- The card into which the user has moved, after it was on the screen for long enough to be read.
--- Where lines have moved below the cursor, it stands in a card by chance.
---@return kode.Item?
function ChatBuffer:entered()
  local at, card = self:place()
  local fell = self.fell and card and self.fell.key == card.key and vim.deep_equal(self.fell.at, at)
  return card and card.question.seen and not fell and card or nil
end

-- What is drawn under the cursor is not where the user has moved.
function ChatBuffer:note_fall(before, card)
  local at, now = self:place()
  local same = now and card and now.key == card.key
  if not same then
    self.fell = now and { key = now.key, at = at }
  elseif self.fell and vim.deep_equal(self.fell.at, before) then
    self.fell.at = at
  end
end

-- Change the buffer without a trace in its undo history: `u` is for what the user wrote. Undo goes
-- back to the last of these changes, for older states can no longer be made.
function ChatBuffer:write(change)
  local options = vim.bo[self.buffer]
  local modifiable, levels = options.modifiable, options.undolevels
  options.modifiable, options.undolevels, self.painting = true, -1, true
  local ok, problem = pcall(change)
  options.undolevels, options.modifiable, self.painting = levels, modifiable, false
  options.modified = false
  if not ok then
    error(problem, 0)
  end
end

-- Somebody has changed the transcript: draw all of it anew over what is left of it.
function ChatBuffer:restore()
  if not self.damaged or not vim.api.nvim_buf_is_valid(self.buffer) then
    return
  end
  self.damaged = false
  local input = self:input()
  self.items, self.session.fold.moved = {}, true
  self:write(function()
    local lines = vim.split(input, '\n', { plain = true })
    vim.api.nvim_buf_set_lines(self.buffer, 0, -1, false, lines)
    self:place_rule(0)
  end)
  self:paint()
end

--- The item at a row of the buffer.
---@return kode.Item?
function ChatBuffer:item_at(row)
  for _, item in ipairs(self.items) do
    if row >= item.start and row < item.start + item.count then
      return item
    end
  end
end

--- Open or close the card at the cursor. False if there is none.
function ChatBuffer:toggle(open)
  local item = self:item_at(vim.fn.line('.') - 1)
  if not item or not foldable[item.kind] then
    return false
  end
  local expanded = self.session.expanded
  if open == nil then
    open = not expanded[item.key]
  end
  expanded[item.key] = open or nil
  self.session.fold.touched[item.id] = true
  self:paint()
  vim.api.nvim_win_set_cursor(0, { item.start + (item.space and 2 or 1), 0 })
  return true
end

-- Windows that show the end of the conversation and are to go on showing it.
function ChatBuffer:following()
  local row, windows = self:input_row(), {}
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    if vim.api.nvim_win_get_cursor(window)[1] > row then
      table.insert(windows, window)
    end
  end
  return windows
end

--- Draw what has changed since the last time.
function ChatBuffer:paint()
  if self.damaged then
    return self:restore()
  end
  local fold = self.session.fold
  local touched, windows = fold.touched, self:following()
  local at, card = self:place()
  fold.touched = {}
  self:write(function()
    if fold.moved then
      fold.moved = false
      self:rearrange(transcript.layout(self.session))
    end
    for _, item in ipairs(self.items) do
      if item.id and (touched[item.id] or self.more[item.id]) and not item.fresh then
        self:redraw(item)
      end
      item.fresh = nil
    end
    self:title()
    self:draw_rule()
  end)
  for _, window in ipairs(windows) do
    -- Setting it makes a window that is not the current one scroll.
    vim.api.nvim_win_set_cursor(window, vim.api.nvim_win_get_cursor(window))
  end
  self:note_fall(at, card)
  if next(self.more) then
    require('kode.chat').paint_soon(self.session)
  end
end

function ChatBuffer:title()
  local item = self.items[1]
  if item and item.told ~= self.session.fold.title then
    item.told = self.session.fold.title
    self:redraw(item)
  end
end

-- Keep the items that stand where they should, draw the rest anew.
function ChatBuffer:rearrange(wanted)
  local kept = 0
  for index, item in ipairs(self.items) do
    local other = wanted[index]
    if not other or other.key ~= item.key or other.space ~= item.space then
      break
    end
    other.start, other.count, other.told = item.start, item.count, item.told
    other.bytes, other.last, other.fence = item.bytes, item.last, item.fence
    kept = index
  end
  local from = kept > 0 and wanted[kept].start + wanted[kept].count or 0
  local lines, drawn = {}, {}
  for index = kept + 1, #wanted do
    local item = wanted[index]
    local own, own_marks = self:render(item)
    item.start, item.count, item.fresh = from + #lines, #own, true
    vim.list_extend(lines, own)
    table.insert(drawn, { item, own_marks })
  end
  local old_end = self:written()
  self.items = wanted
  self:replace(from, old_end, lines)
  for _, entry in ipairs(drawn) do
    self:mark(entry[1], entry[2])
  end
end

-- The lines of an item with the empty one above it, and its marks. A text that is still said begins
-- empty, and grows from frame to frame.
function ChatBuffer:render(item)
  local lines, own_marks, block = nil, {}, item.block
  if item.kind == 'text' and block.open then
    lines, item.bytes, item.last, item.fence = { '' }, 0, '', nil
    self.more[item.id] = true
  else
    lines, own_marks = transcript.render(item, self.session)
    item.bytes = nil
  end
  if item.kind == 'text' and not block.open then
    local closed
    own_marks, item.fence, closed = markdown.marks(lines, 0, nil, true)
    self:code(closed, lines, 0, own_marks)
  end
  if item.space then
    lines = vim.list_extend({ '' }, lines)
  end
  return lines, own_marks
end

-- Marks for code that is complete now; `row` is that of the first line.
function ChatBuffer:code(closed, lines, row, own_marks)
  for _, code in ipairs(closed) do
    local inside = vim.list_slice(lines, code.first - row + 1, code.last - row)
    vim.list_extend(own_marks, markdown.code(inside, code.first, code.language))
  end
end

function ChatBuffer:redraw(item)
  local block = item.block
  if item.bytes and (block.parts or block.as_grown) then
    return self:grow(item, block)
  end
  local lines, own_marks = self:render(item)
  self:replace(item.start, item.start + item.count, lines)
  self:resize(item, #lines)
  self:mark(item, own_marks)
end

-- Add what is new to the last line of a text, as much as a frame has time for, and leave the rest
-- of it alone.
function ChatBuffer:grow(item, block)
  local text = Fold.text(block)
  local upto = math.min(item.bytes + MOST_BYTES, #text)
  while upto < #text and text:byte(upto + 1) >= 128 and text:byte(upto + 1) < 192 do
    upto = upto - 1
  end
  local lines =
    vim.split(item.last .. text:sub(item.bytes + 1, upto):gsub('\r', ''), '\n', { plain = true })
  local complete = not block.open and upto == #text
  item.bytes, self.more[item.id] = not complete and upto or nil, upto < #text or nil
  local first = item.start + (item.space and 1 or 0)
  local row = item.start + item.count - 1 - first
  self:replace(first + row, first + row + 1, lines)
  self:resize(item, item.count + #lines - 1)
  local own_marks, fence, closed = markdown.marks(lines, row, item.fence, complete)
  local fence_row = item.fence and item.fence.row or row
  if #closed > 0 then
    local known =
      vim.api.nvim_buf_get_lines(self.buffer, first + fence_row, first + row + #lines, false)
    self:code(closed, known, fence_row, own_marks)
  end
  self:mark(item, own_marks)
  item.last, item.fence = lines[#lines], fence
end

function ChatBuffer:resize(item, count)
  local shift = count - item.count
  item.count = count
  if shift ~= 0 then
    for index = #self.items, 1, -1 do
      local other = self.items[index]
      if other.start <= item.start then
        break
      end
      other.start = other.start + shift
    end
  end
end

-- Lines that are as they were stay untouched: what is not changed needs no drawing.
function ChatBuffer:replace(first, last, lines)
  if first ~= last then
    vim.api.nvim_buf_clear_namespace(self.buffer, marks, first, last)
  end
  local old = vim.api.nvim_buf_get_lines(self.buffer, first, last, false)
  local same, most = 0, math.min(#old, #lines)
  while same < most and old[same + 1] == lines[same + 1] do
    same = same + 1
  end
  if same < #old or same < #lines then
    lines = same > 0 and vim.list_slice(lines, same + 1) or lines
    vim.api.nvim_buf_set_lines(self.buffer, first + same, last, false, lines)
  end
end

function ChatBuffer:mark(item, own_marks)
  local first = item.start + (item.space and 1 or 0)
  for _, mark in ipairs(own_marks) do
    local options = { hl_group = mark.group, conceal = mark.conceal }
    options.end_row, options.end_col = first + mark.row, mark.to
    if mark.right then
      options = { virt_text = { { mark.right, mark.group } }, virt_text_pos = 'right_align' }
    elseif mark.inline then
      options = { virt_text = { { mark.inline, mark.group } }, virt_text_pos = 'inline' }
    elseif not mark.to then
      local row = first + mark.row
      options.end_col = #vim.api.nvim_buf_get_lines(self.buffer, row, row + 1, false)[1]
    end
    if mark.line then
      options = { line_hl_group = mark.group }
    end
    vim.api.nvim_buf_set_extmark(self.buffer, marks, first + mark.row, mark.from or 0, options)
  end
end

-- Between the transcript and the input: what goes on, what waits, what goes along.
function ChatBuffer:draw_rule()
  local status, windows = require('kode.status'), vim.fn.win_findbuf(self.buffer)
  local width = windows[1] and vim.api.nvim_win_get_width(windows[1]) or 80
  self:place_rule(self:written(), status.rule(self.session, width))
  if self.session.fold.turnId and windows[1] and not self.ticking then
    self.ticking = true
    vim.defer_fn(function()
      self.ticking = false
      if vim.api.nvim_buf_is_valid(self.buffer) then
        self:draw_rule()
      end
    end, status.FRAME_MS)
  end
end

function ChatBuffer:place_rule(row, lines)
  self.rule = vim.api.nvim_buf_set_extmark(self.buffer, rules, row, 0, {
    id = self.rule,
    virt_lines = lines or self.rule_lines,
    virt_lines_above = true,
  })
  self.rule_lines = lines or self.rule_lines
  local empty = self:input() == ''
  self.hint = vim.api.nvim_buf_set_extmark(self.buffer, rules, row, 0, {
    id = self.hint,
    virt_text = empty and { { 'Write here. <C-s> sends, g? shows the keys', 'KodeDim' } } or nil,
    virt_text_pos = 'overlay',
  })
end

return M
