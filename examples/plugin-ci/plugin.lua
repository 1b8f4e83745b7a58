-- A plugin without a window, for its own tests: nvim -l plugin.lua PROJECT SIDECAR [ARGUMENT...]
--
-- It does what plugin.py does, in Neovim 0.10 or newer. fold.lua beside it is protocol/fold/fold.lua.
local uv = vim.uv
local project, command = uv.fs_realpath(_G.arg[1]), _G.arg[2]
local here = vim.fs.dirname(uv.fs_realpath(_G.arg[0]))
local Fold = dofile(here .. '/fold.lua')
local uri = vim.uri_from_fname(project .. '/notes.txt')
local file = assert(io.open(project .. '/notes.txt', 'rb'))
local buffer = { version = 1, text = '未保存 🍵 unsaved\n' .. file:read('a') }
file:close()
local fold, number, answers, screen, decided = Fold.new(), 0, {}, {}, {}
local stdin, stdout, code = uv.new_pipe(), uv.new_pipe(), nil
local args = vim.list_slice(_G.arg, 3)
assert(uv.spawn(command, { args = args, stdio = { stdin, stdout, 2 } }, function(exit) code = exit end))

local function send(message)
  message.jsonrpc = '2.0'
  local body = vim.json.encode(message)
  stdin:write(('Content-Length: %d\r\n\r\n%s'):format(#body, body))
end

local function notify(method, params) send({ method = method, params = params }) end

local function call(method, params)
  number = number + 1
  send({ id = number, method = method, params = params })
  return number
end

local function wait(done) assert(vim.wait(120000, done, 5) or error('nothing happens')) end

local function request(method, params)
  local id = call(method, params)
  wait(function() return answers[id] end)
  local answer = answers[id]
  return answer.error and error(answer.error.message) or answer.result
end

--- Tell what is on the screen now: texts and thoughts, not what is unknown here.
local function show()
  for id in pairs(fold.touched) do
    local block = fold.blocks[id]
    if block and (block.type == 'text' or block.type == 'thinking') then
      screen[id] = Fold.text(block)
      notify('kode/editor/didShow', { blockId = id, text = screen[id] })
    end
    fold.touched[id] = nil
  end
  for id in pairs(screen) do
    if not fold.blocks[id] then -- dropped
      screen[id] = nil
      notify('kode/editor/didShow', { blockId = id, text = '' })
    end
  end
end

--- Accept what waits, as a user does who reads fast; in mode `ask` the turn waits for it.
local function review()
  for id, set in pairs(fold.changeSets) do
    local decisions = {}
    for _, hunk in ipairs(set.hunks) do
      if fold.hunks[hunk].state == 'proposed' and not decided[hunk] then
        decided[hunk] = true
        table.insert(decisions, { hunkId = hunk, action = 'accept' })
      end
    end
    if #decisions > 0 then
      call('kode/changeSet/decide', { changeSetId = id, decisions = decisions, seenSeq = fold.seq })
    end
  end
end

local function starts_of(text)
  local starts, at = { 1 }, 1
  while text:find('\n', at, true) do
    at = text:find('\n', at, true) + 1
    table.insert(starts, at)
  end
  return starts
end

local questions = {}

questions['workspace/applyEdit'] = function(params)
  for _, change in ipairs(params.edit.documentChanges) do
    local named = change.textDocument or {}
    if named.uri ~= uri or named.version ~= buffer.version then return { applied = false } end
    local starts, text = starts_of(buffer.text), buffer.text
    for at = #change.edits, 1, -1 do -- they are in the order of the text
      local edit = change.edits[at]
      local first = starts[edit.range.start.line + 1] + edit.range.start.character -- bytes, as utf-8 counts
      local last = starts[edit.range['end'].line + 1] + edit.range['end'].character
      text = text:sub(1, first - 1) .. edit.newText .. text:sub(last)
    end
    buffer = { version = buffer.version + 1, text = text }
    local changed = { textDocument = { uri = uri, version = buffer.version }, contentChanges = { { text = text } } }
    notify('textDocument/didChange', changed)
  end
  return { applied = true }
end

questions['kode/permission/request'] = function(params)
  for _, option in ipairs(params.options) do
    if option.kind == 'allow_once' then return { optionId = option.optionId } end
  end
end

questions['kode/ask'] = function(params) return { choices = { params.choices[1] } } end

local function hear(message)
  local method, params = message.method, message.params or {}
  if not method then
    answers[message.id] = message
  elseif method == 'kode/event' then
    for _, event in ipairs(params.events) do fold:event(event) end
  elseif method == 'kode/delta' then
    for _, delta in ipairs(params.deltas) do fold:delta(delta) end
  elseif questions[method] then
    send({ id = message.id, result = questions[method](params) })
  elseif message.id then
    send({ id = message.id, error = { code = -32601, message = 'no ' .. method .. ' here' } })
  end
  show()
  review()
end

local input = ''
stdout:read_start(function(_, more)
  input = input .. (more or '')
  while true do
    local head, from, length = input:find('\r\n\r\n', 1, true), nil, nil
    if not head then return end
    length, from = tonumber(input:sub(1, head):lower():match('content%-length: *(%d+)')), head + 4
    if #input < from + length - 1 then return end
    local body = input:sub(from, from + length - 1)
    input = input:sub(from + length)
    local message = vim.json.decode(body, { luanil = { object = true, array = true } })
    vim.schedule(function() hear(message) end)
  end
end)

local kode = { protocolVersions = { '1.0' }, client = { name = 'plugin' }, trusted = true }
kode.capabilities = { permission = vim.empty_dict(), ask = vim.empty_dict() }
local edits = { applyEdit = true, workspaceEdit = { documentChanges = true } }
request('initialize', {
  processId = uv.os_getpid(),
  rootUri = vim.uri_from_fname(project),
  capabilities = { workspace = edits, general = { positionEncodings = { 'utf-8' } } },
  initializationOptions = { kode = kode },
})
notify('initialized', vim.empty_dict())
local document = { uri = uri, languageId = 'plaintext', version = buffer.version, text = buffer.text }
notify('textDocument/didOpen', { textDocument = document })
local session = request('kode/session/new', vim.empty_dict()).sessionId
local function turn(text)
  request('kode/turn/start', { sessionId = session, input = { { type = 'text', text = text } } })
end

local function some(list, found)
  for _, one in pairs(list) do
    if found(one) then return true end
  end
  return false
end

turn('Please mend the notes.')
wait(function() return fold.lastTurn end)
wait(function() return not some(fold.hunks, function(hunk) return hunk.state == 'proposed' end) end)
turn('Please go on.')
wait(function() return some(fold.blocks, function(block) return block.open and Fold.text(block) ~= '' end) end)
request('kode/turn/cancel', { sessionId = session })
wait(function() return fold.lastTurn end)
local snapshot = Fold.new()
snapshot:attach(request('kode/session/attach', { sessionId = session }))
notify('textDocument/didClose', { textDocument = { uri = uri } })
request('shutdown')
notify('exit')
wait(function() return code end)
io.write(buffer.text)
for id in pairs(fold.messages) do
  assert(snapshot.messages[id] and snapshot.messages[id].complete, 'the snapshot is another conversation')
end
os.exit(code)
