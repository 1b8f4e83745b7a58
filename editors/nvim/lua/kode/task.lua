--- Code that waits without callbacks: a coroutine that goes on when an answer is there.
local M = {}

--- Start `body`; a failure in it is shown.
---@param body fun()
function M.run(body)
  local thread = coroutine.create(body)
  local function step(...)
    local ok, start = coroutine.resume(thread, ...)
    if not ok then
      vim.notify('kode: ' .. debug.traceback(thread, tostring(start)), vim.log.levels.ERROR)
    elseif coroutine.status(thread) ~= 'dead' then
      local done = false
      start(function(...)
        if not done then
          done = true
          step(...)
        end
      end)
    end
  end
  step()
end

--- Wait in a task until `start` has called what it is given; the arguments of that call.
---@param start fun(resume: fun(...))
---@return any ...
function M.await(start)
  return coroutine.yield(start)
end

--- A function that runs what it is given in tasks, one after the other, in the order of the calls.
---@return fun(body: fun(): any): any
function M.queue()
  local busy, waiting = false, {}
  return function(body)
    if busy then
      M.await(function(resume)
        table.insert(waiting, resume)
      end)
    end
    busy = true
    local ok, answer = pcall(body)
    local following = table.remove(waiting, 1)
    busy = following ~= nil
    if following then
      vim.schedule(following)
    end
    if not ok then
      error(answer, 0)
    end
    return answer
  end
end

--- The user's choice, nil for none.
function M.select(items, options)
  return M.await(function(resume)
    vim.ui.select(items, options, function(item)
      resume(item) -- and not the index, which would be a second choice
    end)
  end)
end

--- What the user typed, nil for nothing.
function M.input(options)
  return M.await(function(resume)
    vim.ui.input(options, resume)
  end)
end

return M
