-- Defines :CodeKV; everything else is loaded when it is first used.
if vim.g.loaded_codekv then
  return
end
vim.g.loaded_codekv = true

vim.api.nvim_create_user_command('CodeKV', function(args)
  require('codekv.commands').run(args.fargs)
end, {
  nargs = '*',
  desc = 'codekv: control the completion server',
  complete = function(lead, line)
    return require('codekv.commands').complete(lead, line)
  end,
})
