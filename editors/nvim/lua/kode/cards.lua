--- How one part of a conversation looks: lines of Markdown, and what is marked in them.
---
--- Cards of tools, thinking and notes are one line; what is in them is written when they are opened.
local M = {}

local Fold = require('kode.fold')

---@class kode.Mark
---@field row integer from 0, within the card
---@field from? integer
---@field to? integer to the end of the line without it
---@field group? string
---@field line? boolean the whole line of the window
---@field conceal? string what is shown instead
---@field inline? string a text that is shown there and not in the buffer
---@field right? string a text at the right edge instead

local MOST_LINES, LAST_LINES = 200, 10
local icons = { ok = '✓', error = '✗', denied = '⊘', cancelled = '⊘', running = '◌' }
local groups = { ok = 'KodeOk', error = 'KodeError', denied = 'KodeError', cancelled = 'KodeDim' }
local titles = { 'path', 'uri', 'query', 'pattern', 'name', 'skill' }

--- Lines that a buffer takes: no line ends in them.
---@param text string
---@return string[]
function M.lines(text)
  return vim.split((text:gsub('\r\n?', '\n')), '\n', { plain = true })
end

--- The text in one line and no wider than this.
function M.cut(text, width)
  text = text:gsub('%s+', ' ')
  if vim.fn.strdisplaywidth(text) <= width then
    return text
  end
  return vim.fn.strcharpart(text, 0, width - 1) .. '…'
end

local function last_words(block, width)
  local tail = block.parts and table.concat(block.parts, '', math.max(1, #block.parts - width))
    or block.text
    or ''
  tail = vim.trim(tail:gsub('%s+', ' '))
  local length = vim.fn.strchars(tail)
  return length > width and '…' .. vim.fn.strcharpart(tail, length - width) or tail
end

-- A card: `head` in one line, and below it what `body` gives while the card is open.
local function card(open, head, marks, body)
  local lines = { (open and '▾ ' or '▸ ') .. head }
  table.insert(marks, 1, { row = 0, group = 'KodeCard' })
  if open then
    for index, line in ipairs(body()) do
      if index > MOST_LINES then
        table.insert(lines, '  ┆ … K shows all')
        break
      end
      table.insert(lines, '  ┆ ' .. line)
      table.insert(marks, { row = #lines - 1, group = 'KodeCard' })
    end
  end
  return lines, marks
end

function M.header(message)
  local mine = message.role == 'user'
  local lines = { mine and '## You' or '## Kode' }
  local note = message.meta.origin == 'steer' and 'said meanwhile' or nil
  if (message.version or 1) > 1 then
    note = ('version %d'):format(message.version)
  end
  local marks = { { row = 0, group = mine and 'KodeYou' or 'KodeAgent' } }
  if note then
    table.insert(marks, { row = 0, group = 'KodeDim', right = note })
  end
  return lines, marks
end

function M.thinking(block, open)
  local text = Fold.text(block)
  local head = block.open == false and 'thought' or 'thinking'
  if block.redacted then
    head = 'thought (hidden by the host)'
  elseif not open then
    head = head .. '  ' .. last_words(block, 36)
  end
  return card(open, head, {}, function()
    return M.lines(text)
  end)
end

local function title(input)
  for _, name in ipairs(titles) do
    if type(input[name]) == 'string' then
      return input[name]
    end
  end
  for _, value in vim.spairs(input) do
    if type(value) == 'string' then
      return value
    end
  end
  return ''
end

-- A value as people read it: names and texts, not JSON.
local function outline(value, indent, lines)
  for name, item in vim.spairs(value) do
    if type(item) == 'table' then
      table.insert(lines, indent .. name .. ':')
      outline(item, indent .. '  ', lines)
    else
      local text = M.lines(tostring(item))
      table.insert(lines, indent .. name .. ': ' .. text[1])
      for row = 2, #text do
        table.insert(lines, indent .. '  ' .. text[row])
      end
    end
  end
  return lines
end

local function details(block, result)
  local lines = { 'arguments' }
  if block.invalidInput then
    table.insert(lines, '  ' .. block.invalidInput)
  end
  outline(block.input or {}, '  ', lines)
  for _, item in ipairs(result and result.content or {}) do
    table.insert(lines, 'result')
    for _, line in ipairs(M.lines(item.text or '(an image)')) do
      table.insert(lines, '  ' .. line)
    end
    if item.blob then
      table.insert(lines, ('  … %d bytes in all: K shows them'):format(item.blob.bytes))
    end
  end
  return lines
end

local function scout_lines(scouts, lines, marks)
  for _, scout in ipairs(scouts) do
    local running = scout.state == 'running' or scout.state == 'reporting'
    local icon = running and icons.running or scout.state == 'done' and icons.ok or icons.error
    local seconds = math.floor((scout.elapsedMs or 0) / 1000)
    local told = ('    %s %s · %s · %d calls · %d s'):format(
      icon,
      M.cut(scout.title, 48),
      scout.state,
      scout.toolCalls or 0,
      seconds
    )
    table.insert(lines, told)
    table.insert(marks, { row = #lines - 1, group = 'KodeDim' })
  end
end

-- The last lines of a command's output, which grows in the block of its result.
local function last_lines(result)
  local texts, found = {}, 0
  for index = #(result and result.parts or {}), 1, -1 do
    table.insert(texts, 1, result.parts[index])
    found = found + select(2, result.parts[index]:gsub('\n', ''))
    if found > LAST_LINES then
      break
    end
  end
  for _, item in ipairs(result and not result.parts and result.content or {}) do
    table.insert(texts, item.text)
  end
  local lines = M.lines((table.concat(texts):gsub('%s+$', '')))
  return #lines == 1 and lines[1] == '' and {} or vim.list_slice(lines, #lines - LAST_LINES + 1)
end

--- A tool call with what has become of it.
function M.tool(block, result, open, fold)
  local state = result and (result.status or (result.isError and 'error') or 'ok') or 'running'
  local progress = fold.progress[block.toolUseId]
  local command = block.kind == 'run' and block.title
  local head = icons[state] .. ' ' .. (command and M.cut(command, 64) or block.name or '?')
  local name_end = #head
  local note = result and result.summary or ''
  local about = block.open == false and not command and title(block.input or {}) or ''
  if about ~= '' and not note:find(about, 1, true) then
    head = head .. ' ' .. M.cut(about, 32)
  end
  if not result and progress then
    note = progress.total and ('%d of %d'):format(progress.completed or 0, progress.total)
      or progress.message
      or ''
  end
  if note ~= '' then
    head = head .. ' · ' .. M.cut(note, 48)
  end
  local shift = #'▸ '
  local marks = {
    { row = 0, from = shift, to = shift + #icons[state], group = groups[state] or 'KodeRunning' },
    { row = 0, from = shift + #icons[state], to = shift + name_end, group = 'KodeTool' },
  }
  local lines
  lines, marks = card(open, head, marks, function()
    return details(block, result)
  end)
  for _, line in ipairs(command and not open and last_lines(result) or {}) do
    table.insert(lines, '  ┆ ' .. line)
    table.insert(marks, { row = #lines - 1, group = 'KodeCard' })
  end
  scout_lines(fold:scouts_of(block), lines, marks)
  return lines, marks
end

local order = {
  'proposed',
  'unkept',
  'applied',
  'replaced',
  'rejected',
  'undone',
  'stale',
  'conflict',
  'diverged',
}
local words = { proposed = 'waiting', unkept = 'applied, to keep or undo' }

-- "1 waiting · 2 applied"
local function counted(hunks)
  local counts, told = {}, {}
  for _, hunk in ipairs(hunks) do
    local state = Fold.is_unkept(hunk) and 'unkept' or hunk.state
    counts[state] = (counts[state] or 0) + 1
  end
  for _, state in ipairs(order) do
    if counts[state] then
      table.insert(told, ('%d %s'):format(counts[state], words[state] or state))
    end
  end
  return table.concat(told, ' · '), counts.proposed or counts.unkept
end

--- A change set: every file that it touches.
function M.change_set(set, fold)
  local files, paths = {}, {}
  for _, id in ipairs(set.hunks) do
    local hunk = fold.hunks[id]
    if hunk.state ~= 'superseded' then
      if not files[hunk.path] then
        files[hunk.path] = {}
        table.insert(paths, hunk.path)
      end
      table.insert(files[hunk.path], hunk)
    end
  end
  local lines = { ('✎ changes in %d %s'):format(#paths, #paths == 1 and 'file' or 'files') }
  local marks = { { row = 0, group = 'KodeChanges' } }
  for _, path in ipairs(paths) do
    local told, waits = counted(files[path])
    table.insert(lines, ('    %s · %s'):format(path, told))
    table.insert(marks, { row = #lines - 1, group = waits and 'KodeWaiting' or 'KodeDim' })
    for _, hunk in ipairs(files[path]) do
      if hunk.reason and hunk.reason ~= '' then
        table.insert(lines, '      ' .. hunk.reason:gsub('%s+', ' '))
        table.insert(marks, { row = #lines - 1, group = 'KodeError' })
      end
    end
  end
  return lines, marks
end

--- What the model was told by the sidecar itself.
function M.note(message, blocks, open)
  local said = message.meta.origin == 'compaction' and 'a summary of what was said before'
    or 'reminder'
  return card(open, said, {}, function()
    local lines = {}
    for _, block in ipairs(blocks) do
      vim.list_extend(lines, M.lines(Fold.text(block)))
    end
    return lines
  end)
end

function M.attachment(block)
  local name = block.type == 'image' and (block.mediaType or 'image') or ''
  if block.type == 'resource' then
    name = vim.fn.fnamemodify(vim.uri_to_fname(block.uri), ':.')
    if block.startLine then
      name = ('%s:%d-%d'):format(name, block.startLine, block.endLine or block.startLine)
    end
  end
  return { '▪ ' .. name }, { { row = 0, group = 'KodeDim' } }
end

local stops = {
  cancelled = 'Stopped.',
  max_tool_rounds = 'The rounds of this turn are used up. `:Kode continue` goes on.',
  max_tokens = 'The answer was cut: it reached the most that the model may say.',
  budget = 'The budget has no room for another request. `:Kode budget` sets it.',
  refusal = 'The model has declined to answer.',
  interrupted = 'The sidecar ended in the middle of this turn. `:Kode retry` asks again.',
}

--- Why a turn ended, if not because it was done, and what helps.
---@param event table
---@param said boolean the message above has the error
function M.stop(event, said)
  local failed = event.error
  local text = failed and failed.message or stops[event.stopReason] or event.stopReason
  local lines, marks = {}, {}
  if not (failed and said) then
    lines, marks = M.lines(text), { { row = 0, group = failed and 'KodeError' or 'KodeDim' } }
  end
  if failed then
    local key = failed.code == 'AuthRequired' and '`:Kode key` sets a key. ' or ''
    table.insert(lines, key .. '`:Kode retry` asks again.')
    table.insert(marks, { row = #lines - 1, group = 'KodeDim' })
  end
  return lines, marks
end

return M
