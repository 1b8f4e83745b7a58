-- nvim -l fold_states.lua FOLD.lua RESULT GOLDEN...: what the fold makes of each session in each way.
local source, result = _G.arg[1], _G.arg[2]
local Fold = dofile(source)

local function play(fold, items, first)
  for index = first or 1, #items do
    for _, event in ipairs(items[index].events or {}) do
      fold:event(event)
    end
    for _, delta in ipairs(items[index].deltas or {}) do
      fold:delta(delta)
    end
  end
  return fold
end

local function taken(answer)
  local fold = Fold.new()
  fold:attach(answer)
  return fold
end

local function bare(map, without)
  local all = vim.empty_dict()
  for id, value in pairs(map) do
    all[id] = type(value) == 'table' and vim.deepcopy(value) or value
    for _, name in ipairs(without) do
      all[id][name] = nil
    end
  end
  return all
end

local envelope = { 'type', 'seq', 'ts', 'turnId', 'messageId', 'sessionId' }

local function state(fold)
  return {
    seq = fold.seq,
    headId = fold.headId,
    turnId = fold.turnId,
    usage = fold.usage,
    stopReason = (fold.lastTurn or {}).stopReason,
    messages = bare(fold.messages, envelope),
    blocks = bare(fold.blocks, { 'open', 'parts', 'points' }),
    results = bare(fold.results, {}),
    changeSets = bare(fold.changeSets, {}),
    hunks = bare(fold.hunks, { 'range' }),
    plan = fold.plan,
    findings = fold.findings,
  }
end

local states = {}
for index = 3, #_G.arg do
  local file = assert(io.open(_G.arg[index]))
  local told = vim.json.decode(file:read('*a'))
  file:close()
  local listed, prefix = Fold.new(), Fold.new()
  for _, page in ipairs(told.pages) do
    listed:page(page)
  end
  for _, item in ipairs(told.stream) do
    for _, event in ipairs(item.events or {}) do
      if (event.seq or 0) <= 9 then
        prefix:event(event)
      end
    end
  end
  prefix:attach(told.replay)
  table.insert(states, {
    stream = state(play(Fold.new(), told.stream)),
    middle = state(play(taken(told.middle), told.stream, told.after + 1)),
    snapshot = state(taken(told.snapshot)),
    replay = state(prefix),
    list = state(listed),
  })
end
vim.fn.writefile({ vim.json.encode(states) }, result)
