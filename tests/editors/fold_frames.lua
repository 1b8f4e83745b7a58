-- nvim -l fold_frames.lua PLUGIN FRAMES RESULT: what the plugin's fold makes of recorded frames,
-- each told twice.
local plugin, frames, result = unpack(_G.arg)
package.path = plugin .. '/lua/?.lua;' .. package.path
local Fold = dofile(plugin .. '/lua/kode/fold.lua')

local fold, grown = Fold.new(), {}
for line in io.lines(frames) do
  local message = vim.json.decode(line).message
  local params = message.params or {}
  for _ = 1, 2 do
    for _, event in ipairs(message.method == 'kode/event' and params.events or {}) do
      if event.type == 'block.completed' and fold.blocks[event.blockId].parts then
        grown[event.blockId] = Fold.text(fold.blocks[event.blockId])
      end
      fold:event(event)
    end
    for _, delta in ipairs(message.method == 'kode/delta' and params.deltas or {}) do
      fold:delta(delta)
    end
  end
end

local blocks, states = {}, {}
for id, block in pairs(fold.blocks) do
  blocks[id] = { type = block.type, text = block.text or vim.NIL, grown = grown[id] or vim.NIL }
end
for id, hunk in pairs(fold.hunks) do
  states[id] = hunk.state
end
local path = vim.tbl_map(function(message)
  return message.id
end, fold:path())
local told = { seq = fold.seq, blocks = blocks, states = states, path = path, over = fold.turnId == nil }
vim.fn.writefile({ vim.json.encode(told) }, result)
