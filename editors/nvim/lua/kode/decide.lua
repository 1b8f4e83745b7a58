--- What the user decides on hunks, and what of it is taken back.
local M = {}

local client = require('kode.client')
local config = require('kode.config')
local documents = require('kode.documents')
local review = require('kode.review')
local sessions = require('kode.sessions')
local task = require('kode.task')

local function tell(text, level)
  vim.notify('kode: ' .. text, level or vim.log.levels.INFO)
end

-- The sidecar edits what it was shown: files are opened before it is asked to.
local function open_files(uris)
  for uri in pairs(uris) do
    documents.open(uri)
  end
end

local function files_of(fold, change_set_id)
  local uris = {}
  for _, id in ipairs(fold.changeSets[change_set_id].hunks) do
    local hunk = fold.hunks[id]
    if hunk.kind ~= 'create' then
      uris[hunk.uri] = true
    end
  end
  return uris
end

local function report(answer)
  if #answer.conflicts > 0 then
    tell(
      ('%d not applied: the text there has changed'):format(#answer.conflicts),
      vim.log.levels.WARN
    )
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
---@param rest? 'accept'|'reject'
---@return kode.DecideResult?
function M.decide(session, change_set_id, decisions, rest)
  if
    rest == 'accept'
    or vim.iter(decisions):any(function(one)
      return one.action ~= 'reject'
    end)
  then
    open_files(files_of(session.fold, change_set_id))
    review.refresh() -- so that it is known later where they stood
  end
  local answer = client.ask('kode/changeSet/decide', {
    changeSetId = change_set_id,
    decisions = decisions,
    rest = rest,
    seenSeq = session.fold.seq,
  })
  if answer then
    report(answer)
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
  if M.decide(hunk.session, hunk.changeSetId, { named }) and config.get().review.advance then
    review.refresh()
    local following = review.neighbour(1)
    if following then
      review.go(following)
    end
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
  if not params then
    return tell('there is nothing to take back')
  end
  for _, set in pairs(session and session.fold.changeSets or {}) do
    if params.turnId == set.turnId or params.changeSetId == set.id then
      open_files(files_of(session.fold, set.id))
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
  -- The request that undoes is the one that undoes the undo: look before which one it would be.
  local trial =
    client.ask('kode/changeSet/undo', vim.tbl_extend('force', params, { dryRun = true }))
  if not trial or #trial.restored == 0 then
    return tell('it cannot be put back: something of it is there already')
  end
  local answer = client.ask('kode/changeSet/undo', params)
  answer = answer and resolve(params, answer)
  if answer and #answer.restored > 0 then
    table.remove(undone)
    tell(('%d put back'):format(#answer.restored))
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
