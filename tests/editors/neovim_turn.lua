-- One turn in Neovim, as a user's own init.lua would do it; for Neovim 0.7 and newer.
-- The scene and the result are described in tests/support/foreign.py.

local HANG_MS = 30000

local function read_json(path)
  return vim.fn.json_decode(table.concat(vim.fn.readfile(path), '\n'))
end

local scene = read_json(vim.env.EDITOR_SCENE)
local roles, blocks, texts, change_sets = {}, {}, {}, {}
local last_seq, edits, stop_reason, exited = 0, 0, nil, false

local fold = {
  ['message.added'] = function(event)
    roles[event.messageId] = event.role
  end,
  ['block.started'] = function(event)
    local block = { grown = '' }
    blocks[event.blockId] = block
    if event.block.type == 'text' and roles[event.messageId] == 'assistant' then
      table.insert(texts, block)
    end
  end,
  ['block.completed'] = function(event)
    blocks[event.blockId].completed = event.block.text
  end,
  ['changeSet.updated'] = function(event)
    change_sets[event.changeSetId] = true
  end,
  ['turn.completed'] = function(event)
    stop_reason = event.stopReason
  end,
}

local handlers = {
  ['kode/event'] = function(_, params)
    for _, event in ipairs(params.events) do
      last_seq = event.seq or last_seq
      if fold[event.type] then
        fold[event.type](event)
      end
    end
  end,
  ['kode/delta'] = function(_, params)
    for _, delta in ipairs(params.deltas) do
      local block = blocks[delta.blockId]
      assert(vim.str_utfindex(block.grown) == delta.at, 'a delta is missing or told twice')
      block.grown = block.grown .. delta.add
    end
  end,
  ['workspace/applyEdit'] = function(...)
    edits = edits + 1
    return vim.lsp.handlers['workspace/applyEdit'](...)
  end,
}

local function wait_for(what, done)
  assert(vim.wait(HANG_MS, done, 5), 'waited in vain for ' .. what)
end

local function ask(client, method, params)
  local answer
  assert(client.request(method, params, function(error, result)
    answer = { error = error, result = result }
  end))
  wait_for(method, function()
    return answer ~= nil
  end)
  assert(not answer.error, vim.inspect(answer.error))
  return answer.result
end

local function open_unsaved()
  vim.opt.fixendofline = false
  vim.cmd('edit ' .. vim.fn.fnameescape(scene.file))
  assert(vim.bo.fileformat == 'dos' and vim.bo.fileencoding == 'utf-8')
  vim.api.nvim_buf_set_lines(0, 0, -1, true, scene.lines)
  return vim.api.nvim_get_current_buf()
end

local function start_client(buffer)
  local kode = scene.kode ~= vim.NIL and scene.kode or nil
  local id = assert(vim.lsp.start_client({
    name = 'kode',
    cmd = scene.command,
    root_dir = scene.root,
    init_options = kode and { kode = kode },
    handlers = handlers,
    on_exit = function()
      exited = true
    end,
  }))
  local client = vim.lsp.get_client_by_id(id)
  wait_for('initialize', function()
    return client.initialized
  end)
  assert(vim.lsp.buf_attach_client(buffer, id))
  return client
end

-- What `:write` would put on disk.
local function written(buffer)
  local ends = vim.bo[buffer].fileformat == 'dos' and '\r\n' or '\n'
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), ends)
  return vim.bo[buffer].endofline and text .. ends or text
end

local function of_each(field)
  return vim.tbl_map(function(block)
    return block[field]
  end, texts)
end

local function run()
  local buffer = open_unsaved()
  local client = start_client(buffer)
  local session = ask(client, 'kode/session/new', vim.empty_dict())
  ask(client, 'kode/turn/start', {
    sessionId = session.sessionId,
    input = { { type = 'text', text = scene.prompt } },
  })
  wait_for('turn.completed', function()
    return stop_reason ~= nil
  end)
  vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { scene.typed })
  local ids = vim.tbl_keys(change_sets)
  assert(#ids == 1)
  local decided = ask(client, 'kode/changeSet/decide', {
    changeSetId = ids[1],
    rest = 'accept',
    seenSeq = last_seq,
  })
  client.stop()
  wait_for('the exit', function()
    return exited
  end)
  return {
    texts = of_each('grown'),
    completed = of_each('completed'),
    stopReason = stop_reason,
    decided = decided,
    edits = edits,
    buffer = written(buffer),
    modified = vim.bo[buffer].modified,
  }
end

local ok, result = xpcall(run, debug.traceback)
if ok then
  vim.fn.writefile({ vim.fn.json_encode(result) }, scene.result)
  vim.cmd('qall!')
else
  io.stderr:write(result .. '\n')
  vim.cmd('cquit')
end
