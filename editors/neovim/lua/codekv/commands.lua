-- :CodeKV and its subcommands.
local compat = require('codekv.compat')
local config = require('codekv.config')
local server = require('codekv.server')
local status = require('codekv.status')

local M = {}

local function say(text, level)
  vim.notify('codekv: ' .. text, level or vim.log.levels.INFO)
end

local function any_client()
  local client = server.clients()[1]
  if not client then
    say('no server runs; :CodeKV start', vim.log.levels.WARN)
  end
  return client
end

--- Run one of the server's own commands on every server.
local function execute(command, done)
  if not any_client() then
    return
  end
  for _, client in ipairs(server.clients()) do
    compat.request(client, 'workspace/executeCommand', { command = command, arguments = {} }, function(err)
      if err then
        say(('%s failed: %s'):format(command, err.message), vim.log.levels.ERROR)
      elseif done then
        say(done)
      end
    end)
  end
end

--- Turn nested values into an indented outline.
local function outline(value, indent, lines)
  local keys = vim.tbl_keys(value)
  table.sort(keys, function(a, b)
    if type(a) == 'number' and type(b) == 'number' then
      return a < b
    end
    return tostring(a) < tostring(b)
  end)
  for _, key in ipairs(keys) do
    local each = value[key]
    if type(each) == 'table' and next(each) then
      table.insert(lines, ('%s%s:'):format(indent, key))
      outline(each, indent .. '  ', lines)
    else
      local shown = type(each) == 'number' and ('%.6g'):format(each) or tostring(each)
      local is_empty = each == vim.NIL or each == '' or type(each) == 'table'
      table.insert(lines, ('%s%s: %s'):format(indent, key, is_empty and '-' or shown))
    end
  end
  return lines
end

local function show_page(lines)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable, vim.bo[buf].filetype = 'wipe', false, 'yaml'
  vim.cmd('botright split')
  vim.api.nvim_win_set_buf(0, buf)
  vim.api.nvim_win_set_height(0, math.min(#lines, math.floor(vim.o.lines / 2)))
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf })
end

local function statistics()
  local client = any_client()
  if not client then
    return
  end
  compat.request(client, 'codekv/status', vim.empty_dict(), function(err, result)
    if err or type(result) ~= 'table' then
      say('no statistics: ' .. (err and err.message or 'empty answer'), vim.log.levels.ERROR)
    else
      show_page(outline(result, '', {}))
    end
  end)
end

local function model(name)
  if not name then
    say('name a model, as in: :CodeKV model qwen2.5-coder-0.5b', vim.log.levels.WARN)
    return
  end
  config.options.settings = vim.tbl_deep_extend('force', config.options.settings, { model = { name = name } })
  server.push_settings()
end

local function install(word)
  local installer = require('codekv.install')
  if word == 'cancel' then
    installer.cancel()
    return
  end
  server.stop(function()
    installer.run(say, server.start_for_open_buffers)
  end)
end

local SUBCOMMANDS = {
  install = install,
  start = server.start_for_open_buffers,
  stop = function()
    server.stop()
  end,
  restart = function()
    server.stop(server.start_for_open_buffers)
  end,
  pause = function()
    require('codekv.engine').current().dismiss()
    execute('codekv.pause')
  end,
  resume = function()
    execute('codekv.resume')
  end,
  status = function()
    say(table.concat(status.lines(), '\n'))
  end,
  statistics = statistics,
  clear = function()
    execute('codekv.clearCache', 'cache cleared')
  end,
  log = function()
    vim.cmd.split(vim.fn.fnameescape(compat.log_path()))
    vim.cmd('normal! G')
  end,
  model = model,
}

---@param args string[]
function M.run(args)
  local name = args[1] or 'status'
  local action = SUBCOMMANDS[name]
  if action then
    action(args[2])
  else
    say(('unknown subcommand %s; known: %s'):format(name, table.concat(M.complete('', ''), ', ')), vim.log.levels.ERROR)
  end
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match('^%s*%S+%s+%S+%s') then
    return {}
  end
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(SUBCOMMANDS))
  table.sort(names)
  return names
end

return M
