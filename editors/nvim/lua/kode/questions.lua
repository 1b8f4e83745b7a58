--- What the sidecar asks the user: cards at the end of the chat, which never take the keyboard.
---
--- A key answers only in a card that was there to be read, and into which the user has moved: what is
--- typed for something else grants nothing. A question that is taken back has the answer no.
local M = {}

local attention = require('kode.attention')
local sessions = require('kode.sessions')
local task = require('kode.task')

local MOST_DIFF_LINES = 20
local READ_MS = 300 -- nobody reads a card sooner; what is typed until then is for something else
local SAFE = 'reject' -- the kind of an option, and the answer of who is not asked

---@class kode.Question
---@field params kode.PermissionRequestParams|kode.AskParams
---@field rows kode.AnswerRow[] the lines that answer
---@field first integer the row of the first of them in the card
---@field chosen table<string, true> of several choices
---@field seen? boolean it was drawn, and there was time to read it
---@field resume fun(result: table)

---@class kode.AnswerRow
---@field label string
---@field result? table the answer
---@field choice? string is chosen, or no longer
---@field words? boolean the user writes the answer

local function redraw(session)
  session.fold.moved = true
  for _, question in ipairs(session.questions) do
    session.fold.touched[question.params.requestId] = true
  end
  require('kode.chat').paint_soon(session)
end

-- The lines that answer a permission; the safe one stands first.
local function permission_rows(options)
  local rows = {}
  for _, option in ipairs(options) do
    local at = option.kind == SAFE and 1 or #rows + 1
    table.insert(rows, at, { label = option.name, result = { optionId = option.optionId } })
  end
  return rows
end

local function choice_rows(params)
  local rows = {}
  for _, choice in ipairs(params.choices) do
    local row = { label = choice, result = { choices = { choice } } }
    table.insert(rows, params.multi and { label = choice, choice = choice } or row)
  end
  if params.multi then
    table.insert(rows, { label = 'That is all' })
  end
  table.insert(rows, { label = 'Answer in your own words …', words = true })
  table.insert(rows, { label = 'Leave it open', result = { choices = {} } })
  return rows
end

local function index_of(session, id)
  for index, question in ipairs(session.questions) do
    if question.params.requestId == id then
      return index
    end
  end
end

local function close(session, id)
  local question = table.remove(session.questions, index_of(session, id) or #session.questions + 1)
  if question then
    redraw(session)
  end
  return question
end

--- Show a question until it is answered or taken back; its answer. Only in a task.
---@param params kode.PermissionRequestParams|kode.AskParams
---@return kode.PermissionRequestResult|kode.AskResult
function M.put(params)
  local session = sessions.ensure(params.sessionId)
  local asks = params.choices ~= nil
  return task.await(function(resume)
    close(session, params.requestId) -- it is asked again
    table.insert(session.questions, {
      params = params,
      rows = asks and choice_rows(params) or permission_rows(params.options),
      chosen = {},
      resume = resume,
    })
    redraw(session)
    attention.ask(':Kode answer — ' .. (params.title or params.question))
  end)
end

--- The question was answered elsewhere, or nobody answered in time.
function M.withdraw(session, id)
  local question = close(session, id)
  if question then
    question.resume(question.params.choices and { choices = {} } or { optionId = SAFE })
  end
end

local function answer(session, question, result)
  if close(session, question.params.requestId) then
    question.resume(result)
  end
end

local function in_own_words(session, question)
  local words = task.input({ prompt = question.params.question .. ' ' })
  if words and vim.trim(words) ~= '' and index_of(session, question.params.requestId) then
    answer(session, question, { choices = {}, text = words })
  end
end

local function take(session, question, row)
  if row.words then
    task.run(function()
      in_own_words(session, question)
    end)
  elseif row.choice then
    question.chosen[row.choice] = not question.chosen[row.choice] or nil
    redraw(session)
  else
    local chosen = vim.tbl_filter(function(choice)
      return question.chosen[choice]
    end, question.params.choices or {})
    answer(session, question, row.result or { choices = chosen })
  end
end

--- Take the answer at the cursor. False where no card is there.
---@param chat kode.ChatBuffer
---@param number? integer of the answer; without it that of the cursor's line
---@return boolean
function M.choose(chat, number)
  local row = vim.fn.line('.') - 1
  local item = chat:item_at(row)
  if not item or item.kind ~= 'question' then
    return false
  end
  local question = item.question
  local first = item.start + (item.space and 1 or 0) + question.first
  local wanted = question.rows[number or row - first + 1]
  if wanted and chat:entered() then
    take(chat.session, question, wanted)
  elseif wanted then
    vim.notify('kode: this question is new; move to its answers first')
  end
  return true
end

--- Go to the first question that waits, in the chat.
function M.go()
  local asked = vim.iter(vim.tbl_values(sessions.all)):find(function(session)
    return #session.questions > 0
  end)
  local current = sessions.current
  local session = current and #current.questions > 0 and current or asked
  if not session then
    return vim.notify('kode: there is no question')
  end
  local chat = require('kode.chat').open(session)
  for _, item in ipairs(chat.items) do
    if item.kind == 'question' then
      local row = item.start + (item.space and 1 or 0) + item.question.first
      vim.api.nvim_win_set_cursor(0, { row + 1, 2 })
      chat.fell = nil
      return vim.cmd.stopinsert()
    end
  end
end

local diff_groups = { ['+'] = 'Added', ['-'] = 'Removed' }

-- What a yes is for. Where it is a diff, what comes and goes has its colours.
local function shown_text(text, open, lines, marks)
  local all = vim.split(vim.trim(text), '\n', { plain = true })
  for index, line in ipairs(all) do
    if not open and index > MOST_DIFF_LINES then
      table.insert(lines, ('  ┆ … %d more lines: <Tab>'):format(#all - MOST_DIFF_LINES))
      return table.insert(marks, { row = #lines - 1, group = 'KodeDim' })
    end
    table.insert(lines, '  ┆ ' .. line)
    local group = diff_groups[line:sub(1, 1)] or 'KodeDim'
    table.insert(marks, { row = #lines - 1, from = #'  ┆ ', group = group })
  end
end

--- The lines of a card, and its marks.
---@param question kode.Question
---@param open boolean all of a long diff
---@return string[]
---@return kode.Mark[]
function M.card(question, open)
  local params, multi = question.params, question.params.multi
  if question.seen == nil then
    question.seen = false
    vim.defer_fn(function()
      question.seen = true
    end, READ_MS)
  end
  local title = vim.split(params.title or params.question, '\n', { plain = true })
  local lines, marks = { '? ' .. title[1] }, { { row = 0, group = 'KodeWaiting' } }
  for row = 2, #title do
    table.insert(lines, '  ' .. title[row])
  end
  if (params.reason or '') ~= '' then
    table.insert(lines, '  ' .. params.reason:gsub('%s+', ' '))
    table.insert(marks, { row = #lines - 1, group = 'KodeDim' })
  end
  if (params.diff or '') ~= '' then
    shown_text(params.diff, open, lines, marks)
  end
  question.first = #lines
  for index, row in ipairs(question.rows) do
    local box = multi and row.choice and (question.chosen[row.choice] and '[x] ' or '[ ] ') or ''
    table.insert(lines, ('  %d %s%s'):format(index, box, row.label:gsub('%s+', ' ')))
    table.insert(marks, { row = #lines - 1, from = 2, to = 3, group = 'KodeTool' })
  end
  table.insert(lines, '  (:Kode answer, then a number, or <CR> on a line)')
  table.insert(marks, { row = #lines - 1, group = 'KodeDim' })
  return lines, marks
end

return M
