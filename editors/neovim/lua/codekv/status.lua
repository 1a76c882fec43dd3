-- What the server said last about itself.
local M = {}

local EMPTY = { state = 'stopped', message = '', model = '', last = {} }

local now = vim.deepcopy(EMPTY)

local function text(value)
  return type(value) == 'string' and value or ''
end

--- Take a status message; what is missing in it has not changed.
function M.set(params)
  params = type(params) == 'table' and params or {}
  now = {
    state = text(params.state) ~= '' and params.state or 'ready',
    message = text(params.message),
    model = text(params.model) ~= '' and params.model or now.model,
    last = type(params.last) == 'table' and params.last or now.last,
  }
  vim.api.nvim_exec_autocmds('User', { pattern = 'CodeKVStatus', modeline = false, data = now })
  vim.cmd.redrawstatus()
end

function M.stopped(message)
  M.set({ state = message and 'error' or 'stopped', message = message })
end

function M.get()
  return vim.deepcopy(now)
end

function M.line()
  return now.state == 'stopped' and '' or 'codekv: ' .. now.state
end

---@return string[]
function M.lines()
  local lines = { 'state: ' .. now.state .. (now.message ~= '' and (' (' .. now.message .. ')') or '') }
  if now.model ~= '' then
    table.insert(lines, 'model: ' .. now.model)
  end
  local last = now.last
  if type(last.total_ms) == 'number' then
    table.insert(lines, ('last completion: %.0f ms'):format(last.total_ms))
  end
  local counts = {}
  for _, name in ipairs({ 'exact', 'restored', 'moved', 'computed' }) do
    if type(last[name]) == 'number' then
      table.insert(counts, ('%d %s'):format(last[name], name))
    end
  end
  if #counts > 0 then
    table.insert(lines, 'context tokens: ' .. table.concat(counts, ', '))
  end
  return lines
end

return M
