--- What the user decides on hunks, and what of it is taken back.
local M = {}

local Fold = require('kode.fold')
local client = require('kode.client')
local config = require('kode.config')
local documents = require('kode.documents')
local review = require('kode.review')
local sessions = require('kode.sessions')
local task = require('kode.task')

local function tell(text, level)
  vim.notify('kode: ' .. text, level or vim.log.levels.INFO)
end

-- The sidecar edits what it was shown: the files of these hunks are opened before it is asked to.
-- True if one was not open.
local function open_files(fold, hunk_ids)
  local opened = false
  for _, id in ipairs(hunk_ids) do
    local hunk = fold.hunks[id]
    if hunk.kind ~= 'create' and not documents.loaded(vim.uri_to_fname(hunk.uri)) then
      opened = documents.open(hunk.uri) ~= nil or opened
    end
  end
  return opened
end

local function report(answer, undoes)
  local text = undoes and '%d not undone: there is text of yours in them'
    or '%d not applied: the text there has changed'
  if #answer.conflicts > 0 then
    tell(text:format(#answer.conflicts), vim.log.levels.WARN)
  end
  if #answer.stale > 0 then
    tell(
      ('%d not applied: their file was closed or is out of step'):format(#answer.stale),
      vim.log.levels.WARN
    )
  end
end

--- Decide on hunks of one change set. Only in a task.
---@param session kode.Session
---@param change_set_id string
---@param decisions kode.HunkDecision[]
---@return kode.DecideResult?
function M.decide(session, change_set_id, decisions)
  local edited = {}
  for _, decision in ipairs(decisions) do
    local edits = decision.action ~= 'reject' or Fold.is_unkept(session.fold.hunks[decision.hunkId])
    table.insert(edited, edits and decision.hunkId or nil)
  end
  if open_files(session.fold, edited) then
    review.refresh() -- so that it is known later where they stood
  end
  review.decided = true -- the first event of it draws anew
  local answer = client.ask('kode/changeSet/decide', {
    changeSetId = change_set_id,
    decisions = decisions,
    seenSeq = session.fold.seq,
  })
  if answer then
    report(answer, decisions[1].action == 'reject')
    M.last = #answer.applied > 0 and { changeSetId = change_set_id, hunkId = answer.applied[1] }
      or M.last
  end
  return answer
end

--- Decide on the hunk at the cursor, and go to the next one.
---@param decision { action: kode.DecideAction, newText?: string, comment?: string }
---@param hunk? kode.FoldedHunk
function M.one(decision, hunk)
  hunk = hunk or review.here()
  if not hunk then
    return tell('there is no hunk at the cursor; :Kode next goes to one')
  end
  local named = vim.tbl_extend('force', decision, { hunkId = hunk.hunkId })
  if not M.decide(hunk.session, hunk.changeSetId, { named }) then
    return
  end
  local following
  if config.get().review.advance then
    following = review.neighbour(1)
  end
  if following then
    review.go(following)
  elseif hunk.kind == 'create' and vim.b.kode_hunk == hunk.hunkId then
    local made = documents.loaded(vim.uri_to_fname(hunk.uri)) -- in place of what showed it
    vim.api.nvim_win_set_buf(0, made or 0)
  end
end

-- What must be named to be accepted: it is not meant by "all".
local function by_name(hunk)
  return hunk.mergeOf ~= nil or vim.tbl_contains(hunk.flags or {}, 'sensitive')
end

--- Decide on all hunks that wait, or on those of one file.
---@param action 'accept'|'reject'
---@param uri? string
function M.all(action, uri)
  local sets, left = {}, 0
  for _, hunk in ipairs(review.waiting()) do
    if not uri or hunk.uri == uri then
      if action == 'accept' and by_name(hunk) then
        left = left + 1
      else
        local id = hunk.changeSetId
        sets[id] = sets[id] or { session = hunk.session, decisions = {} }
        table.insert(sets[id].decisions, { hunkId = hunk.hunkId, action = action })
      end
    end
  end
  for id, set in pairs(sets) do
    M.decide(set.session, id, set.decisions)
  end
  if left > 0 then
    tell(('%d must be accepted one by one: they can run code later'):format(left))
  end
end

--- Let the user write what the hunk at the cursor should say instead.
function M.change()
  local hunk = review.here()
  if not hunk then
    return tell('there is no hunk at the cursor; :Kode next goes to one')
  elseif Fold.is_unkept(hunk) then
    return tell('it is applied: edit it in the buffer, then keep it')
  end
  local newline = (hunk.newText or ''):find('\r\n') and '\r\n' or '\n'
  local lines = vim.split((hunk.newText or ''):gsub('\r\n', '\n'), '\n', { plain = true })
  local ended = lines[#lines] == ''
  if ended then
    table.remove(lines)
  end
  local filetype = vim.bo.filetype
  vim.cmd(('belowright %dsplit'):format(math.max(5, math.min(#lines + 1, 15))))
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_win_set_buf(0, buffer)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].filetype, vim.bo[buffer].bufhidden = filetype, 'wipe'
  pcall(vim.api.nvim_buf_set_name, buffer, 'kode://change/' .. hunk.path)
  vim.wo.winbar = ' accept this instead: <C-s>   leave it: q '
  local function accept()
    local said = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
    local text = table.concat(said, newline) .. (ended and newline or '')
    vim.cmd.stopinsert()
    vim.api.nvim_win_close(0, true)
    task.run(function()
      M.one({ action = 'replace', newText = text }, hunk)
    end)
  end
  vim.keymap.set({ 'n', 'i' }, '<C-s>', accept, { buffer = buffer })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, nowait = true })
end

-- The newest turn of the branch in sight that has something to undo, or of which something was undone.
local function newest_turn(fold)
  local found
  for _, set in ipairs(fold:sets()) do
    for _, hunk_id in ipairs(set.hunks) do
      local state = fold.hunks[hunk_id].state
      if state == 'applied' or state == 'replaced' then
        found = set
      end
    end
  end
  return found
end

local undone = {} ---@type table[] params of undos, the newest last

local function resolve(params, answer)
  if #answer.conflicts == 0 then
    return answer
  end
  local choice = task.select({ 'Take back the others', 'Leave everything as it is' }, {
    prompt = ('%d cannot be taken back: there is text of yours in them.'):format(#answer.conflicts),
  })
  if choice ~= 'Take back the others' then
    return nil
  end
  return client.ask(
    'kode/changeSet/undo',
    vim.tbl_extend('force', params, { skipConflicts = true })
  )
end

--- Take back what was applied: the hunk at the cursor, the newest turn, or its change set.
---@param scope 'hunk'|'turn'|'changes'
function M.undo(scope)
  local session = sessions.current
  local hunk_id = review.applied_here()
  local params
  if scope == 'hunk' then
    params = (hunk_id or M.last) and { hunkId = hunk_id or M.last.hunkId }
  else
    local set = session and newest_turn(session.fold)
    params = set and (scope == 'turn' and { turnId = set.turnId } or { changeSetId = set.id })
  end
  params = params and vim.tbl_extend('force', params, { direction = 'undo' })
  if not params then
    return tell('there is nothing to take back')
  end
  for _, set in pairs(session and session.fold.changeSets or {}) do
    if params.turnId == set.turnId or params.changeSetId == set.id then
      open_files(session.fold, set.hunks)
    end
  end
  local answer = client.ask('kode/changeSet/undo', params)
  answer = answer and resolve(params, answer)
  if answer and #answer.undone > 0 then
    table.insert(undone, params)
    tell(('%d taken back; :Kode redo puts it there again'):format(#answer.undone))
  elseif answer then
    tell('there is nothing to take back')
  end
end

--- Put back what was undone last.
function M.redo()
  local params = undone[#undone]
  if not params then
    return tell('nothing was taken back')
  end
  params = vim.tbl_extend('force', params, { direction = 'redo' })
  local answer = client.ask('kode/changeSet/undo', params)
  answer = answer and resolve(params, answer)
  if answer and #answer.restored > 0 then
    table.remove(undone)
    tell(('%d put back'):format(#answer.restored))
  elseif answer then
    tell('there is nothing to put back')
  end
end

--- All files with hunks that wait, as a quickfix list.
function M.list()
  local entries = {}
  local hunks = review.waiting()
  for index, hunk in ipairs(hunks) do
    local first = (hunk.newText or hunk.path):match('[^\r\n]*%S[^\r\n]*')
      or '(lines are taken away)'
    table.insert(entries, {
      filename = vim.uri_to_fname(hunk.uri),
      lnum = (review.row(hunk.hunkId) or hunk.range and hunk.range.start.line or 0) + 1,
      text = ('%d/%d %s: %s'):format(index, #hunks, hunk.kind or 'modify', vim.trim(first)),
    })
  end
  if #entries == 0 then
    return tell('no hunk waits')
  end
  vim.fn.setqflist({}, ' ', { title = 'kode: hunks that wait', items = entries })
  vim.cmd('botright copen')
end

return M
