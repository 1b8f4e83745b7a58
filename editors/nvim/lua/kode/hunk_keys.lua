--- Maps in buffers with hunks, as long as one waits; `review.keys = false` leaves them out.
local M = {}

-- A key that the user has mapped, in whatever way, stays the user's.
local maps = {
  { ']k', 'next', 'next hunk' },
  { '[k', 'prev', 'previous hunk' },
  { '<LocalLeader>y', 'accept', 'accept the hunk, or keep it' },
  { '<LocalLeader>n', 'reject', 'reject the hunk, or undo it' },
  { '<LocalLeader>Y', 'accept all', 'accept or keep all' },
  { '<LocalLeader>N', 'reject all', 'reject or undo all' },
  { '<LocalLeader>c', 'comment', 'reject the hunk, and say why' },
  { '<LocalLeader>e', 'change', 'write what the hunk should be' },
}

local mapped = {} ---@type table<integer, string[]> the keys of each buffer

local function map(buffer)
  mapped[buffer] = {}
  vim.api.nvim_buf_call(buffer, function()
    for _, one in ipairs(maps) do
      local keys, words, description = unpack(one)
      if vim.fn.maparg(keys, 'n') == '' then
        local options = { buffer = buffer, desc = 'kode: ' .. description }
        vim.keymap.set('n', keys, '<Cmd>Kode ' .. words .. '<CR>', options)
        table.insert(mapped[buffer], keys)
      end
    end
  end)
end

--- Map the keys in these buffers. They stay in all of them as long as a hunk waits somewhere: who
--- decides on one after the other does not lose them on the way.
---@param buffers table<integer, true>
---@param waits boolean
function M.set(buffers, waits)
  for buffer in pairs(waits and require('kode.config').get().review.keys and buffers or {}) do
    if not mapped[buffer] then
      map(buffer)
    end
  end
  for buffer, keys in pairs(waits and {} or mapped) do
    for _, key in ipairs(vim.api.nvim_buf_is_valid(buffer) and keys or {}) do
      pcall(vim.keymap.del, 'n', key, { buffer = buffer })
    end
    mapped[buffer] = nil
  end
end

--- What stands once at the first hunk.
---@param applied? boolean
function M.hint(applied)
  local leader = vim.g.maplocalleader or '\\'
  local yes, no = applied and 'keep' or 'accept', applied and 'undo' or 'reject'
  local text = ' %sy %s · %sn %s · ]k next · %sY all · :help kode-review-keys '
  return text:format(leader, yes, leader, no, leader)
end

return M
