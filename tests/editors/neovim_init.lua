-- The init file of Neovim under test: the plugin, and what tests ask of it.
vim.opt.rtp:prepend(vim.env.KODE_NVIM_PLUGIN)
vim.opt.rtp:append(vim.env.KODE_NVIM_LIB)
vim.opt.shadafile = 'NONE'
vim.cmd('filetype plugin on')
vim.g.kode = vim.json.decode(vim.env.KODE_NVIM_OPTIONS)

Kode = { notes = {}, chosen = {}, offered = {} }

-- A global that the plugin reads or makes is a slip of the pen.
Kode.globals = {}
local function slip(name)
  local at = debug.getinfo(3, 'S')
  if at and at.source:find('editors/nvim/lua/kode', 1, true) then
    table.insert(Kode.globals, name)
  end
end
setmetatable(_G, {
  __index = function(_, name)
    slip(name)
  end,
  __newindex = function(all, name, value)
    slip(name)
    rawset(all, name, value)
  end,
})

local HANG_MS = 60000

-- What the user chooses next: a text that the label contains; the questions are kept.
vim.ui.select = function(items, options, done)
  local labels = {}
  for _, item in ipairs(items) do
    table.insert(labels, (options.format_item or tostring)(item))
  end
  table.insert(Kode.offered, { prompt = options.prompt, labels = labels })
  local wanted = table.remove(Kode.chosen, 1)
  for index, label in ipairs(labels) do
    if wanted and label:find(wanted, 1, true) then
      return done(items[index], index)
    end
  end
  done(nil, nil)
end

vim.notify = function(text, level)
  table.insert(Kode.notes, text)
  if level == vim.log.levels.ERROR then
    io.stderr:write(text .. '\n')
  end
end

function Kode.until_(condition, ...)
  local arguments, value = { ... }, nil
  local done = vim.wait(HANG_MS, function()
    local ok, found = pcall(condition, unpack(arguments))
    value = found
    return ok and value and true or false
  end, 5)
  local seen = done and '' or table.concat(Kode.chat(), '\n') .. '\n' .. vim.inspect(Kode.notes)
  return { done, value ~= nil and value or vim.NIL, seen .. vim.inspect(Kode.offered) }
end

function Kode.session()
  return package.loaded['kode.sessions'] and require('kode.sessions').current
end

function Kode.fold()
  local session = Kode.session()
  return session and session.fold
end

-- The lines of the current session's chat, without what is written below the rule.
function Kode.chat()
  local chat = Kode.session() and require('kode.chat').of(Kode.session())
  if not chat then
    return {}
  end
  repeat
    chat:paint()
  until not next(chat.more)
  return vim.api.nvim_buf_get_lines(chat.buffer, 0, chat:input_row(), false)
end

function Kode.said(text)
  return table.concat(Kode.chat(), '\n'):find(text, 1, true) ~= nil
end

function Kode.idle()
  local fold = Kode.fold()
  return fold and fold.lastTurn and not fold.turnId
end

-- The states of all hunks, in the order in which they were proposed.
function Kode.states()
  local states = {}
  for _, hunk in
    ipairs(Kode.fold():select(function(hunk)
      return hunk.state ~= 'superseded'
    end))
  do
    table.insert(states, hunk.state)
  end
  return states
end

-- What `:write` would put on disk.
function Kode.text(path)
  local buffer = vim.fn.bufnr(path)
  local options = vim.bo[buffer]
  local ends = options.fileformat == 'dos' and '\r\n' or '\n'
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), ends)
  return options.endofline and text .. ends or text
end

-- What is on the screen, row by row, in `columns` and `lines` of it.
function Kode.screen()
  vim.cmd('redraw!')
  local rows = {}
  for row = 1, vim.o.lines do
    local cells = {}
    for column = 1, vim.o.columns do
      table.insert(cells, vim.fn.screenstring(row, column))
    end
    table.insert(rows, (table.concat(cells):gsub('%s+$', '')))
  end
  return rows
end
