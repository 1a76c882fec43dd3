-- :checkhealth codekv
local compat = require('codekv.compat')
local config = require('codekv.config')
local server = require('codekv.server')
local status = require('codekv.status')

local M = {}

local function check_editor()
  if vim.fn.has('nvim-0.10') == 0 then
    vim.health.error('Neovim 0.10 or newer is needed')
  elseif compat.has_builtin and config.options.ghost == 'auto' then
    vim.health.ok("Neovim's own inline completion shows the suggestions")
  else
    vim.health.ok('the plugin shows the suggestions itself')
  end
end

local function check_command()
  local cmd = config.command()
  if type(cmd) ~= 'table' then
    vim.health.info('cmd is a function; not checked')
  elseif vim.fn.executable(cmd[1]) == 0 then
    vim.health.error(cmd[1] .. ' is not executable', { ':CodeKV install', 'or set cmd in setup()' })
  else
    vim.health.ok('server command: ' .. table.concat(cmd, ' '))
  end
end

local function check_server()
  local clients = server.clients()
  if #clients == 0 then
    vim.health.warn('no server runs', { 'open a file of a wanted filetype, or :CodeKV start', 'see :CodeKV log' })
    return
  end
  for _, client in ipairs(clients) do
    local offers = client.server_capabilities.inlineCompletionProvider
    local report = offers and vim.health.ok or vim.health.error
    local root = client.config.root_dir or 'no root'
    report(('server %d in %s %s inline completion'):format(client.id, root, offers and 'offers' or 'does not offer'))
    vim.health.info('positions are counted in ' .. client.offset_encoding)
  end
  for _, line in ipairs(status.lines()) do
    vim.health.info(line)
  end
end

local function check_keys()
  for name, lhs in pairs(config.options.keys) do
    local map = lhs and vim.fn.maparg(lhs, 'i', false, true) or {}
    if map.buffer == 1 and not vim.startswith(map.desc or '', 'codekv') then
      vim.health.warn(('%s (%s) is taken by another mapping of this buffer'):format(lhs, name))
    end
  end
end

function M.check()
  vim.health.start('codekv')
  check_editor()
  check_command()
  check_server()
  check_keys()
end

return M
