--- Requests and notifications to the sidecar, from tasks.
local M = {}

local process = require('kode.process')
local task = require('kode.task')

-- Neovim forgets the requests of a process that ends; these are told.
local open = {} ---@type table<fun(...), true>

local modern = vim.fn.has('nvim-0.11') == 1

---@class kode.Failure
---@field name string as in `ErrorInfo.code`
---@field message string for the user

--- Call a method of a client of Neovim's, which 0.10 has as functions of the client alone.
---@param client vim.lsp.Client
---@param name 'request'|'request_sync'|'notify'|'stop'
function M.call(client, name, ...)
  if modern then
    return client[name](client, ...)
  end
  return client[name](...)
end

local function failure(error)
  local info = type(error.data) == 'table' and error.data or {}
  return {
    name = info.code or 'Unknown',
    message = info.message or error.message or '?',
    info = info,
  }
end

--- The answer to a request; starts the process if need be. Only in a task.
---@param method string
---@param params? table
---@return any result nil where it failed
---@return kode.Failure? failure
function M.request(method, params)
  if vim.v.exiting ~= vim.NIL then -- `shutdown` was said: the process hears no more
    return nil, { name = 'NotRunning', message = 'Neovim ends' }
  end
  local client, problem = task.await(process.start)
  if not client then
    return nil, { name = 'NotRunning', message = problem }
  end
  params = (params == nil or next(params) == nil) and vim.empty_dict() or params
  return task.await(function(resume)
    open[resume] = true
    local function answered(error, result)
      open[resume] = nil
      if error then
        resume(nil, failure(error))
      else
        resume(result)
      end
    end
    if not M.call(client, 'request', method, params, answered) then
      open[resume] = nil
      resume(nil, { name = 'NotRunning', message = 'the sidecar has just ended' })
    end
  end)
end

--- The same for a request whose failure the user is to see; nil then.
function M.ask(method, params)
  local result, failed = M.request(method, params)
  if failed then
    vim.notify('kode: ' .. failed.message, vim.log.levels.ERROR)
  end
  return result, failed
end

--- All items of a list that comes in pages, or those of the first ones where one fails; the last page.
---@param method string
---@param params table
---@param member string where a page has its items
---@param most? integer with so many it is enough
function M.pages(method, params, member, most)
  local found, page = {}, nil
  repeat
    page = M.ask(method, params)
    vim.list_extend(found, page and page[member] or {})
    params.cursor = page and page.nextCursor
  until not params.cursor or #found >= (most or math.huge)
  return found, page
end

--- Tell the sidecar something, if it runs and Neovim stays.
function M.notify(method, params)
  local client = process.client()
  if not client or not process.state.ready or vim.v.exiting ~= vim.NIL then
    return
  end
  M.call(client, 'notify', method, params)
end

--- The process has ended: whoever waits for it waits no longer.
function M.abandon()
  local abandoned = open
  open = {}
  for resume in pairs(abandoned) do
    resume(nil, { name = 'ProcessEnded', message = 'the sidecar ended before it answered' })
  end
end

return M
