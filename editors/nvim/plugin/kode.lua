-- Defines the command and the maps; whatever they need is loaded when they are used.
if vim.g.loaded_kode then
  return
end
vim.g.loaded_kode = 1

if vim.fn.has('nvim-0.10') == 0 then
  vim.cmd([[command! -nargs=* -range -bang Kode echo 'kode needs Neovim 0.10 or newer']])
  return
end

vim.api.nvim_create_user_command('Kode', function(call)
  require('kode.command').run(call)
end, {
  nargs = '*',
  range = true,
  bang = true,
  desc = 'Talk to the agent and review what it proposes',
  complete = function(...)
    return require('kode.command').complete(...)
  end,
})

for name, arguments in pairs({
  ['chat'] = 'chat',
  ['new'] = 'new',
  ['ask'] = 'ask',
  ['add'] = 'add',
  ['answer'] = 'answer',
  ['stop'] = 'stop',
  ['next-hunk'] = 'next',
  ['prev-hunk'] = 'prev',
  ['accept-hunk'] = 'accept',
  ['accept-file'] = 'accept file',
  ['accept-all'] = 'accept all',
  ['reject-hunk'] = 'reject',
  ['reject-all'] = 'reject all',
  ['comment-hunk'] = 'comment',
  ['edit-hunk'] = 'change',
  ['hunks'] = 'hunks',
  ['undo-hunk'] = 'undo hunk',
  ['undo-turn'] = 'undo turn',
  ['undo-changes'] = 'undo changes',
  ['redo'] = 'redo',
  ['sessions'] = 'sessions',
  ['tree'] = 'tree',
  ['fork'] = 'fork',
  ['edit-prompt'] = 'edit',
}) do
  vim.keymap.set('n', '<Plug>(kode-' .. name .. ')', '<Cmd>Kode ' .. arguments .. '<CR>')
end
vim.keymap.set('x', '<Plug>(kode-ask)', ':Kode ask<CR>', { silent = true })
vim.keymap.set('x', '<Plug>(kode-add)', ':Kode add<CR>', { silent = true })
