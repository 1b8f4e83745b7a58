--- What the sidecar asks the user. A question that is closed unanswered means no.
local M = {}

local task = require('kode.task')

-- Shown one after the other: two at once would hide each other.
local in_turn = task.queue()

-- What a yes is for, beside the question; the function takes it away.
local function show_diff(diff)
  if not diff or diff == '' then
    return function() end
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(diff, '\n'))
  vim.bo[buffer].filetype, vim.bo[buffer].modifiable = 'diff', false
  local height = math.min(vim.api.nvim_buf_line_count(buffer), math.floor(vim.o.lines / 2))
  local window = vim.api.nvim_open_win(buffer, false, {
    relative = 'editor',
    row = 1,
    col = math.floor(vim.o.columns / 10),
    width = math.floor(vim.o.columns * 0.8),
    height = math.max(height, 1),
    border = 'rounded',
    style = 'minimal',
    title = ' What a yes is for ',
  })
  return function()
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
    vim.api.nvim_buf_delete(buffer, { force = true })
  end
end

---@param params kode.PermissionRequestParams
---@return kode.PermissionRequestResult
function M.permission(params)
  return in_turn(function()
    local close = show_diff(params.diff)
    local prompt = params.title .. (params.reason and ' — ' .. params.reason or '')
    local option = task.select(params.options, {
      prompt = prompt,
      kind = 'kode_permission',
      format_item = function(item)
        return item.name
      end,
    })
    close()
    for _, other in ipairs(params.options) do
      if not option and other.kind == 'reject' then
        option = other
      end
    end
    return { optionId = option and option.optionId or 'reject' }
  end)
end

-- More than one choice: asked again, with what was chosen marked, until the user says that it is all.
local function several(params)
  local chosen, done = {}, '— that is all —'
  while true do
    local items = vim.list_extend({}, params.choices)
    table.insert(items, done)
    local item = task.select(items, {
      prompt = params.question,
      kind = 'kode_ask',
      format_item = function(text)
        return (chosen[text] and '[x] ' or text == done and '' or '[ ] ') .. text
      end,
    })
    if item == nil then
      return {}
    elseif item == done then
      return vim.tbl_filter(function(text)
        return chosen[text]
      end, params.choices)
    end
    chosen[item] = not chosen[item]
  end
end

---@param params kode.AskParams
---@return kode.AskResult
function M.ask(params)
  return in_turn(function()
    if params.multi then
      return { choices = several(params) }
    end
    local options = { prompt = params.question, kind = 'kode_ask' }
    return { choices = { task.select(params.choices, options) } }
  end)
end

return M
