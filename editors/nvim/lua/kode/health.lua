--- `:checkhealth kode`: what is missing, and how to fix it.
local M = {}

local health = vim.health or require('health')
local config, process

local function check_neovim()
  health.start('Neovim')
  health.ok(tostring(vim.version()))
  if pcall(vim.treesitter.language.inspect, 'markdown') then
    health.ok('the markdown parser is there')
  else
    health.info('there is no markdown parser: the chat is coloured by the syntax file')
  end
end

local function check_options()
  health.start('Options')
  local problems = config.problems()
  for _, problem in ipairs(problems) do
    health.warn(problem, { 'See :help kode-options.' })
  end
  if #problems == 0 then
    health.ok('vim.g.kode and config() name options that there are')
  end
end

local function run(command)
  local ok, job = pcall(vim.system, command, { text = true })
  local done = ok and job:wait(20000)
  return done and done.code == 0, done and vim.trim(done.stdout .. done.stderr) or tostring(job)
end

local function check_program()
  health.start('The sidecar')
  local command, problem = process.command()
  if not command then
    health.error(problem or '', {
      'Install it: pipx install kode-sidecar',
      'or unpack a release and set vim.g.kode = { cmd = { "/path/to/kode-sidecar", "serve" } }',
    })
    return nil
  end
  local ok, said = run(process.program(command, { '--version' }))
  if ok then
    health.ok(('%s (%s)'):format(said, table.concat(command, ' ')))
  else
    health.error('it cannot be run: ' .. said, { 'Run it by hand: ' .. table.concat(command, ' ') })
  end
end

local function check_running()
  local client = process.client()
  if not client or not process.state.ready then
    return health.info('it is not running; :Kode chat starts it')
  end
  local kode = vim.tbl_get(client.server_capabilities, 'experimental', 'kode')
  health.ok(
    ('it runs, protocol %s, in %s'):format(
      kode and kode.protocolVersion or '?',
      client.config.root_dir
    )
  )
  local call = require('kode.client').call
  local answer = call(client, 'request_sync', 'kode/doctor', vim.empty_dict(), 20000)
  for _, check in ipairs(answer and answer.result and answer.result.checks or {}) do
    if check.ok then
      health.ok(check.name .. ': ' .. check.message)
    else
      health.warn(check.name .. ': ' .. check.message, check.hint and { check.hint } or nil)
    end
  end
end

function M.check()
  if vim.fn.has('nvim-0.10') == 0 then
    local report = health.error or health.report_error
    return report('kode needs Neovim 0.10 or newer')
  end
  config, process = require('kode.config'), require('kode.process')
  check_neovim()
  check_options()
  check_program()
  check_running()
end

return M
