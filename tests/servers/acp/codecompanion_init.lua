-- The init file of Neovim with CodeCompanion, and what its test asks of it.
for _, folder in ipairs(vim.split(vim.env.CODECOMPANION, ':')) do
  vim.opt.rtp:prepend(folder)
end
vim.opt.rtp:append(vim.env.KODE_NVIM_LIB)
vim.opt.shadafile = 'NONE'
vim.opt.autoread = false
vim.cmd('filetype plugin on')

-- Debian builds Lua with extensions of 5.2, in which this is never nil and CodeCompanion waits for ever.
local running = coroutine.running
coroutine.running = function()
  local thread, is_main = running()
  return not is_main and thread or nil
end

Kode = { notes = {} }

vim.notify = function(text)
  table.insert(Kode.notes, text)
end

-- What the user chooses: the first label with this text.
vim.ui.select = function(items, _, done)
  for index, item in ipairs(items) do
    if item:find(Kode.wanted, 1, true) then
      return done(item, index)
    end
  end
  done(nil, nil)
end

require('codecompanion').setup({
  adapters = {
    acp = {
      kode = function()
        return require('codecompanion.adapters').extend('kimi_cli', {
          name = 'kode',
          commands = { default = vim.json.decode(vim.env.KODE_COMMAND) },
        })
      end,
    },
  },
  interactions = { chat = { adapter = 'kode' } },
})

local function current()
  return require('codecompanion').last_chat()
end

function Kode.open()
  require('codecompanion').chat()
end

function Kode.text()
  local chat = current()
  return chat and table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), '\n') or ''
end

-- How often a text stands in the chat.
function Kode.count(text)
  local _, count = Kode.text():gsub(vim.pesc(text), '')
  return count
end

-- It opens a session of its own in the background, also for who resumes another one.
function Kode.ready()
  return current() and current().acp_connection and current().acp_connection:is_connected()
end

function Kode.idle()
  return current() and current().current_request == nil
end

function Kode.ask(text)
  local chat = current()
  chat:add_buf_message({ role = 'user', content = text })
  chat:submit()
end

-- Press the key of a choice in the chat, as its user does.
function Kode.choose(choice)
  local keys = require('codecompanion.interactions.chat.tools.labels').keymaps()
  vim.api.nvim_set_current_win(current().ui.winnr)
  vim.api.nvim_feedkeys(vim.keycode(keys[choice]), 'tx', false)
end

function Kode.stop()
  current():stop()
end

function Kode.resume(title)
  Kode.wanted = title
  local command = require('codecompanion.interactions.chat.slash_commands.builtin.resume')
  command.new({ Chat = current(), config = {}, context = {} }):execute()
end

function Kode.until_(condition, ...)
  local arguments, value = { ... }, nil
  local done = vim.wait(60000, function()
    local ok, found = pcall(condition, unpack(arguments))
    value = found
    return ok and value and true or false
  end, 5)
  local seen = done and '' or Kode.text() .. '\n' .. vim.inspect({ Kode.notes, value })
  return { done, value ~= nil and value or vim.NIL, seen }
end
