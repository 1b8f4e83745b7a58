--- Options with their defaults, what the user set, and what is wrong with that.
local M = {}

---@class kode.Options
---@field cmd? string[] the program and its arguments; default: `kode-sidecar serve` from the PATH
---@field env? table<string, string> added to its environment
---@field root? string|fun(): string the folder that is open; default: that of the version control
---@field trusted? boolean|fun(root: string): boolean may the project's own instructions be used?
---@field agent? string `coder`, `ide-helper` or your own; '' leaves it to the sidecar's settings
---@field model? string
---@field mode? kode.Mode
---@field locale? string language of the agent; default: Neovim's
---@field budget? kode.Budget what a turn, a session and a day may cost; the sidecar keeps it
---@field chat? kode.ChatOptions
---@field review? kode.ReviewOptions
---@field notify? boolean let the terminal notify while Neovim has not the focus
---@field restarts? integer how often a process that died is started again within five minutes

---@class kode.ChatOptions
---@field position? 'right'|'left'|'bottom'|'tab'|'current'
---@field size? number columns or lines; below 1 a share of the screen
---@field keys? boolean maps in the chat's own buffer
---@field frame_ms? integer how often a growing answer is drawn

---@class kode.ReviewOptions
---@field keys? boolean maps in buffers with hunks that wait
---@field advance? boolean go to the next hunk after a decision

local defaults = {
  cmd = nil,
  env = {},
  root = nil,
  trusted = false,
  agent = 'coder',
  model = nil,
  mode = nil,
  locale = nil,
  budget = nil,
  chat = { position = 'right', size = 0.42, keys = true, frame_ms = 33 },
  review = { advance = true, keys = true },
  notify = true,
  restarts = 5,
}

-- What an option may be; `callable` is `function`.
local types = {
  cmd = { 'table' },
  env = { 'table' },
  root = { 'string', 'function' },
  trusted = { 'boolean', 'function' },
  agent = { 'string' },
  model = { 'string' },
  mode = { 'string' },
  locale = { 'string' },
  budget = { 'table' },
  chat = { 'table' },
  review = { 'table' },
  notify = { 'boolean' },
  restarts = { 'number' },
}

local set = {}

function M.set(options)
  set = vim.tbl_deep_extend('force', set, options or {})
end

--- The options in force.
---@return kode.Options
function M.get()
  return vim.tbl_deep_extend('force', defaults, vim.g.kode or {}, set)
end

--- What is wrong with the user's options, for `:checkhealth`.
---@return string[]
function M.problems()
  local found = {}
  for name, value in pairs(vim.tbl_deep_extend('force', vim.g.kode or {}, set)) do
    if not types[name] then
      table.insert(found, ('there is no option `%s`'):format(name))
    elseif not vim.tbl_contains(types[name], type(value)) then
      local wanted = table.concat(types[name], ' or ')
      table.insert(found, ('`%s` must be a %s, not a %s'):format(name, wanted, type(value)))
    end
  end
  for group, options in pairs({ chat = defaults.chat, review = defaults.review }) do
    for name in pairs(type(M.get()[group]) == 'table' and M.get()[group] or {}) do
      if options[name] == nil then
        table.insert(found, ('there is no option `%s.%s`'):format(group, name))
      end
    end
  end
  table.sort(found)
  return found
end

return M
