--- The maps in the chat's own buffer; `chat.keys = false` leaves them out.
local M = {}

local function run(...)
  local words = { ... }
  return function()
    require('kode').run(unpack(words))
  end
end

local function chat()
  local module = require('kode.chat')
  return module.of(module.session_of(vim.api.nvim_get_current_buf()))
end

-- On the input: send. On a card: open or close it. On changes: go to the first one.
local function enter()
  local here = chat()
  if vim.fn.line('.') > here:input_row() then
    return run('send')()
  end
  if require('kode.questions').choose(here) then
    return
  end
  local item = here:item_at(vim.fn.line('.') - 1)
  if item and item.kind == 'changes' then
    return run('next')()
  elseif not here:toggle() then
    require('kode.follow').here()
  end
end

local function message(step)
  return function()
    local row, here = vim.fn.line('.') - 1, chat()
    local best
    for _, item in ipairs(here.items) do
      local start = item.start + (item.space and 1 or 0)
      if item.kind == 'header' and (start - row) * step > 0 then
        if not best or (start - best) * step < 0 then
          best = start
        end
      end
    end
    if best then
      vim.api.nvim_win_set_cursor(0, { best + 1, 0 })
    elseif step > 0 then
      here:to_input(0)
    end
  end
end

local function fold(open)
  return function()
    chat():toggle(open)
  end
end

function M.set(buffer)
  local function map(modes, keys, action, description)
    vim.keymap.set(
      modes,
      keys,
      action,
      { buffer = buffer, desc = 'kode: ' .. description, nowait = true }
    )
  end
  map('n', '<CR>', enter, 'send, or open what is here')
  map({ 'n', 'i' }, '<C-s>', run('send'), 'send, after the turn that runs')
  map({ 'n', 'i' }, '<C-t>', run('steer'), 'tell it now, while the turn runs')
  map('n', '<C-c>', run('stop'), 'stop the turn')
  map('n', '<Tab>', fold(), 'open or close the card')
  map('n', 'za', fold(), 'open or close the card')
  map('n', 'zo', fold(true), 'open the card')
  map('n', 'zc', fold(false), 'close the card')
  for digit = 1, 9 do
    vim.keymap.set('n', tostring(digit), function()
      if not chat():entered() then
        return tostring(digit)
      end
      vim.schedule(function()
        require('kode.questions').choose(chat(), digit)
      end)
      return ''
    end, { buffer = buffer, expr = true, desc = 'kode: answer a question, in its card' })
  end
  for _, keys in ipairs({ 'gf', 'gF' }) do
    map('n', keys, function()
      require('kode.follow').here()
    end, 'go to the file that is named here')
  end
  map('n', 'K', run('output'), 'all that a call has answered')
  map('n', ']]', message(1), 'next message')
  map('n', '[[', message(-1), 'previous message')
  map('n', '<localleader>e', run('edit'), 'edit this prompt')
  map('n', '<localleader>f', run('fork'), 'fork a session from here')
  map('n', '<localleader>t', run('tree'), 'tree of the conversation')
  map('n', '<localleader>m', run('mode'), 'what becomes of edits')
  map('n', '<localleader>q', run('answer'), 'go to the question that waits')
  map('n', '<localleader>Y', run('accept', 'all'), 'accept or keep all hunks')
  map('n', '<localleader>N', run('reject', 'all'), 'reject or undo all hunks')
  map('n', 'g?', run('help'), 'keys')
end

return M
