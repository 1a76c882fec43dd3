-- Insert-mode keys, for the buffers that the server serves only.
local config = require('codekv.config')

local M = {}

-- What each key does; those that return false hand the key on.
local ACTIONS = {
  accept = 'accept()',
  accept_word = 'accept_word()',
  accept_line = 'accept_line()',
  next = 'next()',
  previous = 'previous()',
  request = 'next()',
  dismiss = 'dismiss()',
}

local ALWAYS_OURS = { next = true, previous = true, request = true }

--- What the key would do without us: a mapping for all buffers, or the key itself.
local function otherwise(lhs)
  local wanted = vim.api.nvim_replace_termcodes(lhs, true, true, true)
  for _, map in ipairs(vim.api.nvim_get_keymap('i')) do
    if map.lhsraw == wanted or map.lhsrawalt == wanted then
      if map.expr == 1 then
        local keys = map.callback and map.callback() or vim.api.nvim_eval(map.rhs)
        keys = type(keys) == 'string' and keys or ''
        return map.replace_keycodes == 1 and vim.api.nvim_replace_termcodes(keys, true, true, true) or keys
      end
      if map.callback then
        vim.schedule(map.callback)
        return ''
      end
      return vim.api.nvim_replace_termcodes(map.rhs, true, true, true)
    end
  end
  return wanted
end

---@param buf integer
function M.attach(buf)
  for name, lhs in pairs(config.options.keys) do
    if lhs then
      vim.keymap.set('i', lhs, function()
        if ALWAYS_OURS[name] or require('codekv').is_visible() then
          -- Runs in its turn, before keys that were typed after this one.
          return vim.api.nvim_replace_termcodes('<Cmd>lua require("codekv").' .. ACTIONS[name] .. '<CR>', true, true, true)
        end
        return otherwise(lhs)
      end, { buffer = buf, expr = true, replace_keycodes = false, desc = 'codekv: ' .. name:gsub('_', ' ') })
    end
  end
end

---@param buf integer
function M.detach(buf)
  for _, lhs in pairs(config.options.keys) do
    if lhs then
      pcall(vim.keymap.del, 'i', lhs, { buffer = buf })
    end
  end
end

return M
