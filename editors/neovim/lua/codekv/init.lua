-- The public face of the plugin. What each function does is in :help codekv-lua.
local M = {}

---@param opts? table see :help codekv-setup
function M.setup(opts)
  local config = require('codekv.config')
  for _, problem in ipairs(config.apply(opts)) do
    vim.notify('codekv: ' .. problem, vim.log.levels.WARN)
  end
  if vim.fn.has('nvim-0.10') == 0 then
    vim.notify('codekv: Neovim 0.10 or newer is needed', vim.log.levels.ERROR)
    return
  end
  require('codekv.ghost').highlight()
  local server = require('codekv.server')
  server.watch()
  if config.options.autostart then
    server.start_for_open_buffers()
  end
end

---@return boolean accepted false if nothing is shown
function M.accept()
  return require('codekv.engine').current().accept('all')
end

---@return boolean accepted
function M.accept_word()
  return require('codekv.engine').current().accept('word')
end

---@return boolean accepted
function M.accept_line()
  return require('codekv.engine').current().accept('line')
end

---@return boolean dismissed
function M.dismiss()
  return require('codekv.engine').current().dismiss()
end

--- Show the next candidate; asks for one or for more of them if need be.
function M.next()
  require('codekv.engine').current().cycle(1)
end

function M.previous()
  require('codekv.engine').current().cycle(-1)
end

---@return boolean
function M.is_visible()
  return require('codekv.engine').current().is_visible()
end

---@return table status state, message, model, last: what the server said last
function M.status()
  return require('codekv.status').get()
end

---@return string text for a status line, empty if no server runs
function M.statusline()
  return require('codekv.status').line()
end

return M
