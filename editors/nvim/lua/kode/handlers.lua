--- What the sidecar sends, by method; part of the client's configuration.
local task = require('kode.task')

-- Answer a request of the sidecar when `body`, a task, returns. Neovim runs these handlers in a
-- coroutine of its own and sends what they return.
local function answer_later(body)
  local thread = coroutine.running()
  vim.schedule(function()
    task.run(function()
      local answer = body()
      coroutine.resume(thread, answer)
    end)
  end)
  return coroutine.yield()
end

local function put(_, params)
  return answer_later(function()
    return require('kode.questions').put(params)
  end)
end

local handlers = {
  ['kode/event'] = function(_, params)
    require('kode.sessions').take_events(params)
  end,
  ['kode/changeSet/moved'] = function(_, params)
    require('kode.review').moved(params.changeSets)
  end,
  ['kode/delta'] = function(_, params)
    require('kode.sessions').take_deltas(params)
  end,
  ['workspace/applyEdit'] = function(_, params, context)
    return require('kode.edits').apply(params, context.client_id)
  end,
  ['kode/openDocument'] = function(_, params)
    return { opened = require('kode.documents').open(params.uri) ~= nil }
  end,
  ['kode/saveDocuments'] = function(_, params)
    return { saved = require('kode.documents').save(params.documents) }
  end,
  ['kode/permission/request'] = put,
  ['kode/ask'] = put,
  -- An event says which question is taken back: Neovim does not say the ids of requests.
  ['$/cancelRequest'] = function() end,
}

-- A question that fails is answered all the same: nobody must wait for it.
for _, name in ipairs({ 'diagnostics', 'definition', 'references', 'symbols', 'hover', 'rename' }) do
  handlers['kode/editor/' .. name] = function(_, params)
    return answer_later(function()
      local ok, answer = pcall(require('kode.language')[name], params)
      return ok and answer or vim.NIL
    end)
  end
end

return handlers
