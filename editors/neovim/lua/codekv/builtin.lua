-- Suggestions by Neovim's own inline completion (0.12 and newer).
local edit = require('codekv.edit')
local item = require('codekv.item')

local M = { name = 'builtin' }

local NAMESPACE = 'nvim.lsp.inline_completion'

---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  vim.lsp.inline_completion.enable(true, { bufnr = buf, client_id = client.id })
end

---@param buf integer
function M.detach(buf)
  vim.lsp.inline_completion.enable(false, { bufnr = buf })
end

--- The part that is not in the buffer yet, and where it goes.
local function rest_of(offered)
  local range = offered.range
  local place = vim.api.nvim_win_get_cursor(0)
  local text = type(offered.insert_text) == 'string' and offered.insert_text:gsub('\r\n?', '\n') or nil
  local row, from = range and (range.start_row or range[1]), range and (range.start_col or range[2])
  if not text or row ~= place[1] - 1 or from > place[2] then
    return nil
  end
  return text:sub(place[2] - from + 1), row, place[2], text
end

local function accept_part(offered, what)
  local rest, row, col, text = rest_of(offered)
  local client = vim.lsp.get_client_by_id(offered.client_id)
  if not rest or not client then
    return offered
  end
  local count = item[what](rest)
  if count >= #rest then
    return offered
  end
  edit.insert(vim.api.nvim_get_current_buf(), row, col, 0, rest:sub(1, count))
  edit.tell_part(client, { insertText = text, command = offered.command }, text:sub(1, #text - #rest + count))
  return nil
end

---@param what 'all'|'word'|'line'
---@return boolean accepted
function M.accept(what)
  if not M.is_visible() then
    return false
  end
  local part = what ~= 'all'
      and {
        on_accept = function(offered)
          return accept_part(offered, what)
        end,
      }
    or nil
  return vim.lsp.inline_completion.get(part) and true or false
end

---@return boolean dismissed
function M.dismiss()
  local was_shown = M.is_visible()
  local buf = vim.api.nvim_get_current_buf()
  -- There is no call for it; switching off and on again drops what is shown.
  vim.lsp.inline_completion.enable(false, { bufnr = buf })
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
  return was_shown
end

---@param step integer
function M.cycle(step)
  if M.is_visible() then
    vim.lsp.inline_completion.select({ count = step })
  else
    -- With nothing shown it asks anew, as by hand.
    vim.lsp.inline_completion.get()
  end
end

function M.is_visible()
  local ns = vim.api.nvim_get_namespaces()[NAMESPACE]
  return ns ~= nil and #vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { limit = 1 }) > 0
end

return M
