--- Proposed hunks in the buffers they are about: drawn where they stand now, found at the cursor.
local M = {}

local Fold = require('kode.fold')
local client = require('kode.client')
local config = require('kode.config')
local documents = require('kode.documents')
local sessions = require('kode.sessions')
local keys = require('kode.hunk_keys')
local task = require('kode.task')

local space = vim.api.nvim_create_namespace('kode_review')
local decided_space = vim.api.nvim_create_namespace('kode_decided')

---@class kode.Shown a hunk in a buffer
---@field buffer integer
---@field mark integer of its range
---@field marks? integer[] all that is drawn of it

---@type table<string, kode.Shown> by hunk id
local shown = {}
--- The user knows how: the hint at the first hunk is no longer shown.
M.decided = false

---@type table<string, kode.Shown> hunks that were decided, where they stand now
local decided = {}

local groups = {
  KodeOldLine = { link = 'DiffDelete' },
  KodeOld = { strikethrough = true },
  KodeNew = { link = 'DiffAdd' },
  KodeNewText = { link = 'DiffText' },
  KodeHunk = { link = 'DiagnosticVirtualTextInfo' },
  KodeFlag = { link = 'DiagnosticVirtualTextWarn' },
}

local flags = {
  unread = 'not read by the model',
  staleRead = 'changed since the model read it',
  sensitive = 'can run code later',
  runsInBuild = 'runs when you build or test',
  invisibleCharacters = 'has hidden characters',
}

--- The hunks that wait, of all sessions, in the order of their files and in each as they stand.
---@return kode.FoldedHunk[]
function M.waiting()
  local found, rank, place = {}, {}, {}
  for _, session in pairs(sessions.all) do
    for index, hunk in ipairs(session.fold:waiting_hunks()) do
      hunk.session = session
      rank[hunk.path] = math.min(rank[hunk.path] or index, index)
      place[hunk] = M.row(hunk.hunkId) or hunk.range and hunk.range.start.line or 0
      table.insert(found, hunk)
    end
  end
  table.sort(found, function(a, b)
    if rank[a.path] ~= rank[b.path] then
      return rank[a.path] < rank[b.path]
    elseif a.path ~= b.path then
      return a.path < b.path
    elseif place[a] ~= place[b] then
      return place[a] < place[b]
    end
    return a.hunkId < b.hunkId
  end)
  return found
end

local function extent(at, namespace)
  if not at or not vim.api.nvim_buf_is_loaded(at.buffer) then
    return nil
  end
  local mark = vim.api.nvim_buf_get_extmark_by_id(at.buffer, namespace, at.mark, { details = true })
  return mark[1], mark[3] and mark[3].end_row or mark[1]
end

--- The first row of a hunk that is drawn, and the row after its last.
function M.row(hunk_id)
  return extent(shown[hunk_id], space)
end

local function at_cursor(places, namespace, wanted)
  local buffer, row = vim.api.nvim_get_current_buf(), vim.fn.line('.') - 1
  for id, at in pairs(places) do
    if at.buffer == buffer then
      local first, last = extent(at, namespace)
      if first and row >= first and row < math.max(last, first + 1) and wanted(id) then
        return id
      end
    end
  end
end

--- The hunk at the cursor that waits.
---@return kode.FoldedHunk?
function M.here()
  local waiting = {}
  for _, hunk in ipairs(M.waiting()) do
    waiting[hunk.hunkId] = hunk
  end
  local id = waiting[vim.b.kode_hunk or ''] and vim.b.kode_hunk
    or at_cursor(shown, space, function(candidate)
      return waiting[candidate] ~= nil
    end)
  return id and waiting[id]
end

--- The id of the applied hunk at the cursor.
---@return string?
function M.applied_here()
  return at_cursor(decided, decided_space, function(id)
    local hunk = M.find(id)
    return hunk ~= nil and (hunk.state == 'applied' or hunk.state == 'replaced')
  end)
end

local function lines_of(text)
  text = (text or ''):gsub('\r\n?', '\n')
  local lines = vim.split(text, '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

-- Where two lines begin and end to differ, in bytes of whole characters.
local function difference(old, new)
  local first, last = 0, 0
  local shorter = math.min(#old, #new)
  while first < shorter and old:byte(first + 1) == new:byte(first + 1) do
    first = first + 1
  end
  while first > 0 and (new:byte(first + 1) or 0) >= 128 and (new:byte(first + 1) or 0) < 192 do
    first = first - 1
  end
  while last < shorter - first and old:byte(-last - 1) == new:byte(-last - 1) do
    last = last + 1
  end
  while last > 0 and new:byte(-last) >= 128 and new:byte(-last) < 192 do
    last = last - 1
  end
  return first, #new - last
end

local function virtual_line(line, old, tab, gone)
  local group, word = gone and 'KodeOldLine' or 'KodeNew', gone and 'KodeOld' or 'KodeNewText'
  local function plain(text)
    return (text:gsub('\t', (' '):rep(tab)))
  end
  local rest = { (' '):rep(math.max(0, vim.o.columns - vim.fn.strdisplaywidth(line))), group }
  if not old then
    return { { plain(line), group }, rest }
  end
  local from, to = difference(old, line)
  return {
    { plain(line:sub(1, from)), group },
    { plain(line:sub(from + 1, to)), { group, word } },
    { plain(line:sub(to + 1)), group },
    rest,
  }
end

local function label(hunk, index, total)
  local applied = Fold.is_unkept(hunk)
  local parts =
    { { (' %s %d of %d '):format(applied and 'applied' or 'hunk', index, total), 'KodeHunk' } }
  for _, flag in ipairs(hunk.flags or {}) do
    table.insert(parts, { (' %s '):format(flags[flag] or flag), 'KodeFlag' })
  end
  if hunk.fits == false then
    table.insert(parts, { ' fits no more: the text under it has changed ', 'KodeFlag' })
  end
  if hunk.mergeOf then
    table.insert(parts, { ' what is left of a conflict, merged with your text ', 'KodeFlag' })
  end
  return parts
end

-- Right of the code, and never over it: a narrow window cuts it.
local label_place = vim.fn.has('nvim-0.11') == 1 and 'eol_right_align' or 'eol'

-- Old lines are struck; below them, or where there are none at their place, stand the new ones.
local function draw(buffer, hunk, range, index, total, first_of_file)
  local first = range.start.line
  local last = range['end'].line + (range['end'].character > 0 and 1 or 0)
  local applied = Fold.is_unkept(hunk)
  local lines, virtual = lines_of(applied and hunk.oldText or hunk.newText), {}
  local pairs_up = #lines == last - first
  local tab = vim.bo[buffer].tabstop
  for row, line in ipairs(lines) do
    local old = pairs_up
      and vim.api.nvim_buf_get_lines(buffer, first + row - 1, first + row, false)[1]
    table.insert(virtual, virtual_line(line, old or nil, tab, applied))
  end
  if first_of_file and config.get().review.keys and not M.decided then
    table.insert(virtual, applied and 1 or #virtual + 1, { { keys.hint(applied), 'KodeDim' } })
  end
  local empty, count = last == first, vim.api.nvim_buf_line_count(buffer)
  local anchor =
    math.min(empty and math.max(first - 1, 0) or applied and first or last - 1, count - 1)
  local mark = vim.api.nvim_buf_set_extmark(buffer, space, math.min(first, count - 1), 0, {
    end_row = math.min(math.max(last, first), count),
    end_col = 0,
    hl_group = not applied and 'KodeOld' or nil,
    virt_text = label(hunk, index, total),
    virt_text_pos = label_place,
    strict = false,
  })
  local marks = { mark }
  if not empty then
    local rows = {
      end_row = math.min(last, count) - 1,
      line_hl_group = applied and 'KodeNew' or 'KodeOldLine',
    }
    table.insert(marks, vim.api.nvim_buf_set_extmark(buffer, space, first, 0, rows))
  end
  local above = applied and not empty or empty and first == 0
  local added = { virt_lines = virtual, virt_lines_above = above }
  table.insert(marks, vim.api.nvim_buf_set_extmark(buffer, space, anchor, 0, added))
  shown[hunk.hunkId] = { buffer = buffer, mark = mark, marks = marks }
end

--- The hunk with this id, of whichever session.
---@return kode.FoldedHunk?
function M.find(id)
  for _, session in pairs(sessions.all) do
    if session.fold.hunks[id] then
      return session.fold.hunks[id]
    end
  end
end

-- Take away what is drawn of a hunk. Where one that is decided stood is kept: the place moves with
-- the text, and only there can be found again what was applied.
local function remove(id)
  local at, hunk = shown[id], M.find(id)
  local first, last = extent(at, space)
  if first and hunk and not Fold.waits(hunk) then
    local range = { end_row = last, end_col = 0, strict = false }
    local mark = vim.api.nvim_buf_set_extmark(at.buffer, decided_space, first, 0, range)
    decided[id] = { buffer = at.buffer, mark = mark }
  end
  for _, mark in ipairs(vim.api.nvim_buf_is_valid(at.buffer) and at.marks or {}) do
    vim.api.nvim_buf_del_extmark(at.buffer, space, mark)
  end
  shown[id] = nil
end

-- A file that is there already, and that the user has yet to keep: its hunk is all of it.
local function made(hunk)
  return hunk.kind == 'create' and Fold.is_unkept(hunk)
end

local function whole(buffer)
  local last = { line = vim.api.nvim_buf_line_count(buffer), character = 0 }
  return { start = { line = 0, character = 0 }, ['end'] = last }
end

-- Draw all hunks at the places of today. Where a buffer has changed since, what is drawn there moves
-- with the text until the places of that text come.
local function place(views)
  for name, value in pairs(groups) do
    vim.api.nvim_set_hl(0, name, vim.tbl_extend('force', value, { default = true }))
  end
  local waiting, order, fitting = M.waiting(), {}, {}
  for index, hunk in ipairs(waiting) do
    order[hunk.hunkId] = index
  end
  for _, view in ipairs(views) do
    for _, file in ipairs(view.files) do
      local buffer = documents.loaded(vim.uri_to_fname(file.uri))
      if buffer and file.version == documents.version(buffer) then
        fitting[buffer] = true
      end
    end
  end
  for id, at in pairs(shown) do
    if not order[id] or fitting[at.buffer] or not vim.api.nvim_buf_is_loaded(at.buffer) then
      remove(id)
    end
  end
  for _, view in ipairs(views) do
    for _, file in ipairs(view.files) do
      local buffer = documents.loaded(vim.uri_to_fname(file.uri))
      local begun = false
      for _, hunk in ipairs(fitting[buffer] and file.hunks or {}) do
        local range = hunk.range or made(hunk) and whole(buffer)
        if range and order[hunk.hunkId] and not shown[hunk.hunkId] then
          draw(buffer, M.find(hunk.hunkId), range, order[hunk.hunkId], #waiting, not begun)
          begun = true
        end
      end
    end
  end
  local with_hunks = {}
  for _, at in pairs(shown) do
    with_hunks[at.buffer] = true
  end
  keys.set(with_hunks, #waiting > 0)
end

--- `kode/changeSet/moved`: all waiting hunks of some files.
function M.moved(views)
  for _, view in ipairs(views) do
    local session = sessions.all[view.sessionId]
    if session then
      session.fold:change_set(view)
    end
  end
  place(views)
end

--- Ask where all hunks stand now, and draw them there.
function M.refresh()
  local views = {}
  for _, session in ipairs(vim.tbl_values(sessions.all)) do -- more may come while answers are waited for
    for _, set in ipairs(session.fold:sets()) do
      local wanted = vim.iter(set.hunks):any(function(hunk_id)
        return Fold.waits(session.fold.hunks[hunk_id])
      end)
      local view = wanted and client.request('kode/changeSet/get', { changeSetId = set.id })
      if view then
        table.insert(views, view)
      end
    end
  end
  place(views)
end

local soon, again, running = false, false, false

--- The same a little later, once for all that happens until then.
function M.refresh_soon()
  if running then
    again = true
    return
  end
  if soon then
    return
  end
  soon = true
  vim.defer_fn(function()
    soon, running = false, true
    task.run(function()
      local ok, problem = pcall(M.refresh)
      running = false
      if again then
        again = false
        M.refresh_soon()
      end
      if not ok then
        error(problem, 0)
      end
    end)
  end, 20)
end

--- A window for code: not that of the chat.
function M.code_window()
  local chat = require('kode.chat')
  local windows =
    vim.list_extend({ 0, vim.fn.win_getid(vim.fn.winnr('#')) }, vim.api.nvim_tabpage_list_wins(0))
  for _, window in ipairs(windows) do
    if window == 0 or vim.api.nvim_win_is_valid(window) then
      local buffer = vim.api.nvim_win_get_buf(window)
      if not chat.session_of(buffer) and vim.api.nvim_win_get_config(window).relative == '' then
        return window
      end
    end
  end
  vim.cmd('leftabove vsplit')
  return vim.api.nvim_get_current_win()
end

-- A hunk about a whole file has no place in a buffer: it is shown in one of its own.
local function preview(hunk)
  local buffer = vim.api.nvim_create_buf(false, true)
  local verbs = { create = 'new file', delete = 'to be deleted', rename = 'to be renamed' }
  if Fold.is_unkept(hunk) then
    verbs = { create = 'was made', delete = 'was deleted', rename = 'was renamed' }
  end
  local name = ('%s (%s)'):format(hunk.path, verbs[hunk.kind] or hunk.kind)
  local text = hunk.kind == 'rename' and hunk.path .. ' → ' .. (hunk.newPath or '')
    or hunk.newText
    or hunk.oldText
    or ''
  local lines = vim.split(text:gsub('\r\n?', '\n'), '\n', { plain = true })
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  pcall(vim.api.nvim_buf_set_name, buffer, 'kode://' .. name)
  vim.bo[buffer].filetype = vim.filetype.match({ buf = buffer, filename = hunk.path }) or ''
  vim.bo[buffer].modifiable, vim.bo[buffer].bufhidden = false, 'wipe'
  vim.b[buffer].kode_hunk = hunk.hunkId
  local group = hunk.kind == 'delete' and 'KodeOldLine' or 'KodeNew'
  for row = 0, vim.api.nvim_buf_line_count(buffer) - 1 do
    vim.api.nvim_buf_set_extmark(buffer, space, row, 0, { line_hl_group = group })
  end
  vim.api.nvim_buf_set_extmark(buffer, space, 0, 0, {
    virt_text = { { ' ' .. name .. ' ', 'KodeHunk' }, { keys.hint(), 'KodeDim' } },
    virt_text_pos = 'right_align',
  })
  return buffer
end

--- Go to a hunk, in a window for code. Only in a task.
---@param hunk kode.FoldedHunk
function M.go(hunk)
  local in_text = hunk.kind == 'modify' or made(hunk)
  local buffer = in_text and documents.open(hunk.uri) or preview(hunk)
  vim.api.nvim_set_current_win(M.code_window())
  vim.cmd("normal! m'")
  if vim.api.nvim_get_current_buf() ~= buffer then
    vim.api.nvim_win_set_buf(0, buffer)
  end
  keys.set({ [buffer] = true }, true)
  if not in_text then
    return
  end
  if not shown[hunk.hunkId] then
    M.refresh()
  end
  local row = M.row(hunk.hunkId) or 0
  vim.api.nvim_win_set_cursor(0, { math.min(row + 1, vim.api.nvim_buf_line_count(buffer)), 0 })
end

--- The hunk after the cursor, or before it, over all files; the first one again after the last.
---@param step 1|-1
---@return kode.FoldedHunk?
function M.neighbour(step)
  local hunks = M.waiting()
  local buffer, row = vim.api.nvim_get_current_buf(), vim.fn.line('.') - 1
  local here = vim.b.kode_hunk
  local best
  for index, hunk in ipairs(hunks) do
    local at = shown[hunk.hunkId]
    local there = at and at.buffer == buffer and M.row(hunk.hunkId)
    if here == hunk.hunkId then
      best = index + step
    elseif there and (there - row) * step > 0 and (step > 0 and not best or step < 0) then
      best = index
    end
  end
  if not best then -- of this file there is no more: the next file
    local last
    for index, hunk in ipairs(hunks) do
      if shown[hunk.hunkId] and shown[hunk.hunkId].buffer == buffer then
        last = step > 0 and index or last or index
      end
    end
    best = last and last + step or (step > 0 and 1 or #hunks)
  end
  return hunks[(best - 1) % math.max(#hunks, 1) + 1]
end

return M
