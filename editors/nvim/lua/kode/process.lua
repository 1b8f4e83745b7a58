--- The sidecar's process: found, started as a language server, started again when it died.
local M = {}

local attention = require('kode.attention')
local config = require('kode.config')

---@class kode.ProcessState
---@field client_id? integer
---@field ready boolean
---@field override? { env: table<string, string>, root: string }
---@field deaths number[] when it died, in seconds
---@field waiting fun(client?: vim.lsp.Client, error?: string)[]
local state = { ready = false, deaths = {}, waiting = {}, stopping = false }
M.state = state

local ANSWER_MS, EXIT_MS = 20000, 2000
local FORGET_DEATHS_S = 300
local FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 250, 8000

--- The program with its arguments, or nil and what to do about it.
---@return string[]? command
---@return string? problem
function M.command()
  local given = config.get().cmd
  local command = given or { 'kode-sidecar', 'serve' }
  local path = vim.fn.exepath(command[1])
  if path == '' then
    local advice = given and 'Correct the option `cmd`.'
      or 'Install it with `pipx install kode-sidecar`, or set the option `cmd`, a list.'
    return nil, ('%s cannot be run. %s'):format(command[1], advice)
  end
  -- The full path: on Windows that of the .exe, for there is no shell.
  return vim.list_extend({ path }, vim.list_slice(command, 2))
end

--- The program with what stands before `serve`, for its other commands; `given` is all of it.
---@param given string[]
---@param more string[]
---@return string[]
function M.program(given, more)
  local at = #given + 1
  for index = #given, 1, -1 do
    at = given[index] == 'serve' and index or at
  end
  return vim.list_extend(vim.list_slice(given, 1, at - 1), more)
end

--- The folder that is open.
---@return string
function M.root()
  if state.override then
    return state.override.root
  end
  local root = config.get().root
  if type(root) == 'function' then
    root = root()
  end
  return vim.fs.normalize(root or vim.fs.root(0, '.git') or vim.fn.getcwd())
end

local function trusted(root)
  local option = config.get().trusted
  if type(option) == 'function' then
    return option(root)
  end
  return option
end

local function locale()
  local language = config.get().locale or vim.v.lang or 'en'
  return language:find('^zh') and 'zh-CN' or language:match('^%a%a') or 'en'
end

local function kode_options(root)
  local options = config.get()
  local settings = vim.empty_dict() -- without it no settings would be a list
  settings.agent = options.agent ~= '' and options.agent or nil
  settings.model, settings.mode = options.model, options.mode
  return {
    protocolVersions = { '1.0' },
    client = { name = 'kode.nvim', version = '0.1.0' },
    locale = locale(),
    trusted = trusted(root),
    settings = settings,
    capabilities = {
      permission = vim.empty_dict(),
      ask = vim.empty_dict(),
      changeSetReview = vim.empty_dict(),
      openDocument = vim.empty_dict(),
      saveDocuments = vim.empty_dict(),
      movedHunks = vim.empty_dict(),
      editor = {
        diagnostics = vim.empty_dict(),
        definition = vim.empty_dict(),
        references = vim.empty_dict(),
        symbols = vim.empty_dict(),
        hover = vim.empty_dict(),
        rename = vim.empty_dict(),
      },
    },
  }
end

-- The editor's side of LSP, told truly: what the handler of edits can do.
local function capabilities()
  local all = vim.lsp.protocol.make_client_capabilities()
  all.workspace.workspaceEdit = {
    documentChanges = true,
    resourceOperations = { 'create', 'rename', 'delete' },
    failureHandling = 'abort',
  }
  all.window.workDoneProgress = false
  return all
end

--- The client's configuration, as `vim.lsp.start` and `vim.lsp.config` take it.
---@return vim.lsp.ClientConfig
function M.lsp_config()
  local root = M.root()
  local command = M.command()
  return {
    name = 'kode',
    cmd = command or config.get().cmd or { 'kode-sidecar', 'serve' },
    cmd_env = vim.tbl_extend(
      'force',
      config.get().env,
      state.override and state.override.env or {}
    ),
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } },
    capabilities = capabilities(),
    init_options = { kode = kode_options(root) },
    handlers = require('kode.handlers'),
    -- At once: what the agent is asked to decide on must be the text of this moment.
    flags = { debounce_text_changes = 0, allow_incremental_sync = true, exit_timeout = EXIT_MS },
    exit_timeout = EXIT_MS, -- where 0.12 looks for it
    on_init = M.on_init,
    on_exit = M.on_exit,
  }
end

--- Give the running client to `done`; start the process if there is none.
---@param done fun(client?: vim.lsp.Client, error?: string)
function M.start(done)
  local client = M.client()
  if client and state.ready then
    return done(client)
  end
  table.insert(state.waiting, done)
  if client or state.starting then
    return
  end
  local _, problem = M.command()
  if problem then
    return M.give(nil, problem)
  end
  M.launch()
end

function M.launch()
  state.stopping, state.starting = false, true
  local ok, id
  if vim.fn.has('nvim-0.11') == 1 then
    local function never()
      return false
    end
    ok, id = pcall(vim.lsp.start, M.lsp_config(), { attach = false, reuse_client = never })
  else
    ok, id = pcall(vim.lsp.start_client, M.lsp_config())
  end
  state.starting = false
  if not ok or not id then
    return M.give(nil, 'the sidecar could not be started: ' .. tostring(id))
  end
  state.client_id = id
  -- Neovim shows a refused `initialize` as a failure of its own, and nobody else hears of it.
  vim.defer_fn(function()
    if state.client_id == id and not state.ready then
      M.give(nil, 'the sidecar does not answer; :messages may say why')
    end
  end, ANSWER_MS)
end

function M.give(client, problem)
  local waiting = state.waiting
  state.waiting = {}
  for _, done in ipairs(waiting) do
    done(client, problem)
  end
end

---@return vim.lsp.Client?
function M.client()
  return state.client_id and vim.lsp.get_client_by_id(state.client_id) or nil
end

function M.on_init(client)
  state.client_id, state.ready = client.id, true
  require('kode.documents').watch()
  require('kode.sessions').reopen() -- before what waits, which may be about these sessions
  M.give(client)
end

function M.on_exit(code, signal, client_id)
  vim.schedule(function()
    if client_id ~= state.client_id then
      return
    end
    local was_ready = state.ready
    state.client_id, state.ready = nil, false
    if state.stopping or vim.v.exiting ~= vim.NIL then
      return
    end
    local how = signal ~= 0 and ('by signal %d'):format(signal) or ('with code %d'):format(code)
    if not was_ready then
      return M.give(
        nil,
        ('the sidecar ended %s before it answered; see :checkhealth kode'):format(how)
      )
    end
    M.restart_later(how)
  end)
end

--- Start the process again, later and later the more often it has died of late.
function M.restart_later(how)
  local now = os.time()
  state.deaths = vim.tbl_filter(function(time)
    return now - time < FORGET_DEATHS_S
  end, state.deaths)
  table.insert(state.deaths, now)
  require('kode.sessions').lost()
  if #state.deaths > config.get().restarts then
    local text = ':Kode restart tries again; the sidecar ended %s, %d times'
    return attention.say(text:format(how, #state.deaths), vim.log.levels.ERROR)
  end
  local pause = math.min(FIRST_PAUSE_MS * 2 ^ (#state.deaths - 1), LONGEST_PAUSE_MS)
  attention.say(('the sidecar ended %s and is started again'):format(how), vim.log.levels.WARN)
  vim.defer_fn(function()
    if not state.client_id and not state.stopping then
      M.launch()
    end
  end, pause)
end

--- End the process, and start it anew if `again`.
---@param again boolean
function M.stop(again)
  local client = M.client()
  state.stopping, state.deaths = true, {}
  if client then
    require('kode.sessions').lost()
    require('kode.client').call(client, 'stop')
  end
  state.client_id, state.ready = nil, false
  if again then
    M.launch()
  end
end

return M
