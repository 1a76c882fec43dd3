-- Puts text into the buffer, and tells the server what became of an item.
local compat = require('codekv.compat')
local item = require('codekv.item')

local M = {}

--- Put `text` in place of `width` bytes at the cursor; one step for undo.
---@param buf integer
---@param row integer
---@param col integer
---@param width integer
---@param text string lines ended by \n
function M.insert(buf, row, col, width, text)
  -- Setting it, even to the same value, closes the undo step of what was typed.
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
  vim.api.nvim_buf_set_text(buf, row, col, row, col + width, vim.split(text, '\n', { plain = true }))
  local to_row, to_col = item.after(row, col, text)
  vim.api.nvim_win_set_cursor(0, { to_row + 1, to_col })
end

---@param client vim.lsp.Client
---@param shown table an LSP inline completion item
function M.tell_shown(client, shown)
  compat.notify(client, 'textDocument/didShowCompletion', { item = shown })
end

---@param client vim.lsp.Client
---@param shown table
---@param done string how much of the item's text is in the buffer, from its start
function M.tell_part(client, shown, done)
  local params = { item = shown, acceptedLength = compat.utf16_length(done) }
  compat.notify(client, 'textDocument/didPartiallyAcceptCompletion', params)
end

---@param client vim.lsp.Client
---@param shown table
---@param buf integer
function M.tell_accepted(client, shown, buf)
  local command = shown.command
  if command then
    local params = { command = command.command, arguments = command.arguments }
    compat.request(client, 'workspace/executeCommand', params, function() end, buf)
  end
end

return M
