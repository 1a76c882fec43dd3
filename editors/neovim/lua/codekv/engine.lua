-- Which of the two ways shows suggestions: Neovim's own or the plugin's.
local compat = require('codekv.compat')
local config = require('codekv.config')

local M = {}

---@return table engine attach, detach, accept, dismiss, cycle, is_visible, name
function M.current()
  if compat.has_builtin and config.options.ghost == 'auto' then
    return require('codekv.builtin')
  end
  return require('codekv.suggest')
end

return M
