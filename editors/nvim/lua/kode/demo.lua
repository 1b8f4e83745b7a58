--- `:Kode demo`: the recorded model answers, in a project of its own, without a key.
local M = {}

local process = require('kode.process')
local task = require('kode.task')

local PROMPT = 'The total of the receipt is wrong. Please fix src/receipt.js.'

-- What `demo --serve-model` prints: the folder in a comment, the environment as NAME=value.
local function parse(text)
  local env, folder = {}, nil
  for line in text:gmatch('[^\r\n]+') do
    local name, value = line:match('^([A-Z_]+)=(.*)$')
    if name then
      env[name] = value
    elseif not folder then
      local path = line:match('^# (.+)$')
      folder = path and vim.fn.isdirectory(path) == 1 and path or nil
    end
  end
  return folder, env
end

-- Start the model; its folder and environment, or nil and why not.
local function serve()
  local command, problem = process.command()
  if not command then
    return nil, problem
  end
  return task.await(function(resume)
    local said = ''
    local function more(_, lines)
      said = said .. table.concat(lines, '\n')
      if said:find('KODE_HOME=.+\n') then
        resume(parse(said))
      end
    end
    local errors = ''
    local job = vim.fn.jobstart(process.program(command, { 'demo', '--serve-model' }), {
      env = { PYTHONUNBUFFERED = '1', PYTHONUTF8 = '1' },
      on_stdout = more,
      on_stderr = function(_, lines)
        errors = errors .. table.concat(lines, '\n')
      end,
      on_exit = function()
        resume(nil, 'the recorded model ended: ' .. errors)
      end,
    })
    if job <= 0 then
      resume(nil, 'the recorded model could not be started')
    end
  end)
end

--- Play it: the sidecar is started anew with the recorded model in place of a host.
function M.run()
  local folder, env = serve()
  if not folder then
    return vim.notify('kode: ' .. tostring(env), vim.log.levels.ERROR)
  end
  vim.cmd('tabnew ' .. vim.fn.fnameescape(folder .. '/src/receipt.js'))
  process.state.override = { root = vim.fs.normalize(folder), env = env }
  local sessions, chat = require('kode.sessions'), require('kode.chat')
  for id in pairs(sessions.all) do
    sessions.forget(id)
  end
  process.stop(false)
  local session = sessions.new()
  if session then
    chat.open(session)
    chat.say(session, PROMPT, 'next')
  end
end

return M
