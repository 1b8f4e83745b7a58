--- Calls the user: by a notification, and where Neovim has lost the focus by one of the terminal.
local M = {}

local focused = true
vim.api.nvim_create_autocmd({ 'FocusGained', 'FocusLost' }, {
  group = vim.api.nvim_create_augroup('kode_attention', {}),
  callback = function(event)
    focused = event.event == 'FocusGained'
  end,
})

-- OSC 9: terminals that know it show a notification of the desktop, the others nothing.
local function to_desktop(text)
  local sequence = ('\27]9;kode: %s\27\\'):format(text:gsub('%c', ' '))
  if vim.api.nvim_ui_send then
    vim.api.nvim_ui_send(sequence)
  else
    pcall(vim.api.nvim_chan_send, vim.v.stderr, sequence)
  end
end

--- Notify of what nobody has just asked for. It has one line: a longer one would wait for a key, and
--- take one that was meant for the code. `:messages` has all of it.
---@param text string
---@param level? integer
function M.say(text, level)
  text = 'kode: ' .. text:gsub('%s+', ' ')
  local shown = vim.fn.strcharpart(text, 0, vim.v.echospace)
  while vim.fn.strdisplaywidth(shown) > vim.v.echospace do
    shown = vim.fn.strcharpart(shown, 0, vim.fn.strchars(shown) - 1)
  end
  if shown ~= text then
    vim.cmd.echomsg({ args = { vim.fn.string(text) }, mods = { silent = true } })
  end
  vim.notify(shown, level)
end

--- The sidecar waits for the user.
---@param text string
function M.ask(text)
  M.say(text, vim.log.levels.WARN)
  if not focused and require('kode.config').get().notify then
    to_desktop(text)
  end
end

--- Something that only those want to know who look elsewhere.
---@param text string
function M.away(text)
  if not focused then
    M.ask(text)
  end
end

return M
