--- Short pages to read: what the sidecar knows of itself, of the context, of usage and of skills.
local M = {}

local client = require('kode.client')

--- Show lines in a window of their own; `q` closes it, and goes back.
---@param name string
---@param lines string[]
function M.show(name, lines)
  local from = vim.api.nvim_get_current_win()
  vim.cmd('botright new')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.modifiable = 'nofile', 'wipe', false
  vim.wo.linebreak, vim.wo.breakindent, vim.wo.breakindentopt = true, true, 'shift:4'
  vim.keymap.set('n', 'q', function()
    vim.cmd.close()
    if vim.api.nvim_win_is_valid(from) then
      vim.api.nvim_set_current_win(from)
    end
  end, { buffer = 0, nowait = true })
  pcall(vim.api.nvim_buf_set_name, 0, 'kode://' .. name)
end

-- Rows of cells as lines with columns under each other.
local function columns(rows)
  local widths, lines = {}, {}
  for _, row in ipairs(rows) do
    for index, cell in ipairs(row) do
      widths[index] = math.max(widths[index] or 0, vim.fn.strdisplaywidth(cell))
    end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for index, cell in ipairs(row) do
      local pad = index < #row and widths[index] - vim.fn.strdisplaywidth(cell) or 0
      table.insert(cells, cell .. (' '):rep(pad))
    end
    table.insert(lines, '  ' .. table.concat(cells, '  '))
  end
  return lines
end

local function extend(lines, title, more)
  if #more > 0 then
    vim.list_extend(lines, { '', title })
    vim.list_extend(lines, more)
  end
end

--- Settings with their sources, and what is wrong with them.
function M.doctor()
  local found = client.ask('kode/doctor')
  if not found then
    return
  end
  local head = 'kode-sidecar %s · protocol %s · Python %s · %s'
  local lines = { head:format(found.version, found.protocolVersion, found.python, found.platform) }
  local checks, errors = {}, {}
  for _, check in ipairs(found.checks) do
    table.insert(
      checks,
      ('  %s %s: %s'):format(check.ok and '✓' or '✗', check.name, check.message)
    )
    table.insert(checks, check.hint and '      ' .. check.hint or nil)
  end
  for _, one in ipairs(found.lastErrors) do
    table.insert(errors, ('  %s: %s'):format(one.code, one.message))
  end
  extend(lines, 'Checks', checks)
  extend(
    lines,
    'Folders',
    vim.tbl_map(function(root)
      return '  ' .. root
    end, found.roots)
  )
  extend(
    lines,
    'Settings',
    columns(vim.tbl_map(function(setting)
      local value = type(setting.value) == 'string' and setting.value
        or vim.json.encode(setting.value)
      return { setting.name, value, setting.source }
    end, found.settings))
  )
  extend(lines, 'Last errors', errors)
  M.show('doctor', vim.split(table.concat(lines, '\n'), '\n'))
end

--- What the next request would hold, part by part.
---@param session kode.Session
function M.context(session)
  local answer = client.ask('kode/context/inspect', { sessionId = session.id })
  if not answer then
    return
  end
  local head = ('%s: %d of %s tokens'):format(answer.model, answer.tokens, answer.window or '?')
  local rows = vim.tbl_map(function(part)
    return { ('%8d'):format(part.tokens), part.origin, (part.head:gsub('%s+', ' ')) }
  end, answer.segments)
  M.show('context', vim.list_extend({ head, '' }, columns(rows)))
end

local function costs(row)
  return table.concat(
    vim.tbl_map(function(cost)
      return ('%.4f %s'):format(cost.amount, cost.currency)
    end, row.costs),
    ' + '
  )
end

--- What the last seven days have cost, by day and model.
function M.usage()
  local day = 24 * 60 * 60
  local now = os.time()
  local utc = os.date('!*t', now) --[[@as osdateparam]]
  utc.isdst = os.date('*t', now).isdst
  local answer = client.ask('kode/usage/get', {
    since = os.date('%Y-%m-%d', now - 6 * day),
    by = { 'day', 'model' },
    utcOffsetMinutes = math.floor(os.difftime(now, os.time(utc)) / 60),
  })
  if not answer then
    return
  end
  local rows = vim.tbl_map(function(row)
    local tokens = ('%d tokens'):format(row.usage.totalTokens)
    return { row.day, row.model, ('%d answers'):format(row.answers), tokens, costs(row) }
  end, answer.rows)
  local total = answer.total
  local all = ('%d tokens  %s'):format(total.usage.totalTokens, costs(total))
  M.show('usage', vim.list_extend({ 'The last seven days: ' .. all, '' }, columns(rows)))
end

--- The skills there are, and files that cannot be used.
function M.skills()
  local answer = client.ask('kode/skills/list')
  if not answer then
    return
  end
  local lines = columns(vim.tbl_map(function(skill)
    return { skill.id, skill.source, (skill.description:gsub('%s+', ' ')) }
  end, answer.skills))
  for _, problem in ipairs(answer.problems) do
    table.insert(lines, '✗ ' .. problem.message:gsub('%s+', ' '))
  end
  M.show('skills', #lines > 0 and lines or { 'There are no skills.' })
end

--- All that a call has answered, however long it is.
---@param result kode.FoldedBlock
function M.output(result)
  local texts = result.parts and { table.concat(result.parts) } or {}
  for _, item in ipairs(not result.parts and result.content or {}) do
    local text, offset = item.blob and '' or item.text or '(an image)', item.blob and 0
    while offset do
      local page = client.ask('kode/blob/read', { ref = item.blob.ref, offset = offset })
      text, offset = text .. (page and page.text or ''), page and page.nextOffset
    end
    table.insert(texts, text)
  end
  M.show('output/' .. result.id, vim.split(table.concat(texts, '\n'), '\r?\n'))
end

return M
