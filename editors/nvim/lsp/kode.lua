-- For `vim.lsp.enable('kode')`, Neovim 0.11 and newer: the client that the plugin would start itself.
return require('kode.process').lsp_config()
