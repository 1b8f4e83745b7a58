--- What code reviews found. Neovim shows the places as diagnostics; here they are listed and decided.
local M = {}

local client = require('kode.client')
local documents = require('kode.documents')
local sessions = require('kode.sessions')
local task = require('kode.task')

local kinds = { error = 'E', warning = 'W', info = 'I', nit = 'N' }
local states = { dismiss = 'dismissed', done = 'resolved', open = 'open' }
local prompts = { fix = 'Fix this finding, and only it.', explain = 'Explain this finding.' }

local function tell(text)
  vim.notify('kode: ' .. text)
end

--- The open findings of all sessions where they are now, file by file. Only in a task.
---@return { session: kode.Session, found: kode.FindingView }[]
function M.all()
  local places = {}
  for _, session in ipairs(vim.tbl_values(sessions.all)) do
    local answer = #session.fold.findings > 0
      and client.request('kode/review/list', { sessionId = session.id })
    for _, found in ipairs(answer and answer.findings or {}) do
      if found.state == 'open' and found.range then
        table.insert(places, { session = session, found = found })
      end
    end
  end
  table.sort(places, function(a, b)
    if a.found.path ~= b.found.path then
      return a.found.path < b.found.path
    elseif a.found.range.start.line ~= b.found.range.start.line then
      return a.found.range.start.line < b.found.range.start.line
    end
    return a.found.findingId < b.found.findingId
  end)
  return places
end

--- Put all of them into the quickfix list.
function M.list()
  local items = {}
  for _, place in ipairs(M.all()) do
    local found = place.found
    table.insert(items, {
      filename = vim.uri_to_fname(found.uri),
      lnum = found.range.start.line + 1,
      end_lnum = found.range['end'].line + 1,
      type = kinds[found.severity],
      text = ('%s: %s'):format(found.findingId, found.title),
    })
  end
  if #items == 0 then
    return tell('no review found anything that is still open')
  end
  vim.fn.setqflist({}, ' ', { title = 'kode: findings', items = items })
  vim.cmd('botright copen')
end

--- Go to the finding after the cursor, or before it, over all files.
---@param step 1|-1
function M.step(step)
  local places = M.all()
  if #places == 0 then
    return tell('no review found anything that is still open')
  end
  local here, row = vim.uri_from_bufnr(0), vim.fn.line('.') - 1
  local index = step > 0 and 1 or #places
  for at = index, step > 0 and #places or 1, step do
    local found = places[at].found
    if found.uri == here and (found.range.start.line - row) * step > 0 then
      index = at
      break
    elseif found.uri == here then
      index = (at - 1 + step) % #places + 1
    end
  end
  local found = places[index].found
  local buffer = documents.open(found.uri)
  if not buffer then
    return tell(found.path .. ' cannot be opened')
  end
  vim.api.nvim_set_current_win(require('kode.review').code_window())
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_buf(0, buffer)
  local line = math.min(found.range.start.line + 1, vim.api.nvim_buf_line_count(buffer))
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  tell(('%s %s: %s'):format(found.severity, found.findingId, found.title))
end

-- The finding of this name, in whichever state; of several sessions, that of the current one.
local function named(name)
  local all = vim.tbl_values(sessions.all)
  table.insert(all, 1, sessions.current)
  for _, session in ipairs(all) do
    for _, found in ipairs(session.fold.findings) do
      if found.findingId == name then
        return { session = session, found = found }
      end
    end
  end
  tell(('there is no finding %s'):format(name))
end

local function at_cursor()
  local here, row = vim.uri_from_bufnr(0), vim.fn.line('.') - 1
  for _, place in ipairs(M.all()) do
    local range = place.found.range
    if place.found.uri == here and range.start.line <= row and range['end'].line >= row then
      return place
    end
  end
  tell('there is no finding at the cursor; :Kode findings next goes to one')
end

--- Have one fixed or explained, or decide on it: `:Kode finding dismiss [f3] why`.
---@param words string[]
function M.act(words)
  local word = table.remove(words, 1) or 'fix'
  local name = words[1] and words[1]:match('^f%d+$') and table.remove(words, 1)
  if not prompts[word] and not states[word] then
    return tell('say fix, explain, dismiss, done or open')
  end
  local place = name and named(name) or not name and at_cursor()
  if not place then
    return
  end
  local asked = { sessionId = place.session.id }
  if prompts[word] then
    asked.findingIds, asked.prompt = { place.found.findingId }, prompts[word]
    require('kode.chat').open(place.session)
    return client.ask('kode/review/ask', asked)
  end
  local reason = table.concat(words, ' ')
  if word == 'dismiss' and reason == '' then
    reason = task.input({ prompt = 'Why is it no fault: ' })
    if not reason or reason == '' then
      return
    end
  end
  asked.findingId, asked.state, asked.reason = place.found.findingId, states[word], reason
  client.ask('kode/review/decide', asked)
end

return M
