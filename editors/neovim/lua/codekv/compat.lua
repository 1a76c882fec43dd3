-- What differs between Neovim 0.10, 0.11 and 0.12. Nothing else asks for versions.
local M = {}

local has_methods = vim.fn.has('nvim-0.11') == 1

M.has_builtin = vim.lsp.inline_completion ~= nil

---@return boolean sent
---@return integer? id
function M.request(client, method, params, handler, buf)
  if has_methods then
    return client:request(method, params, handler, buf)
  end
  return client.request(method, params, handler, buf)
end

function M.notify(client, method, params)
  if has_methods then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

function M.cancel(client, id)
  if has_methods then
    return client:cancel_request(id)
  end
  return client.cancel_request(id)
end

function M.is_stopped(client)
  if has_methods then
    return client:is_stopped()
  end
  return client.is_stopped()
end

function M.stop(client)
  if has_methods then
    return client:stop()
  end
  return client.stop()
end

--- Byte offset of a column given in the client's units; a column past the end is the end.
---@param line string
---@param character integer
---@param encoding string
---@return integer
function M.byte_of(line, character, encoding)
  if encoding == 'utf-8' then
    return math.min(character, #line)
  end
  if has_methods then
    return vim.str_byteindex(line, encoding, character, false)
  end
  local utf32, utf16 = vim.str_utfindex(line)
  local is_utf16 = encoding == 'utf-16'
  return vim.str_byteindex(line, math.min(character, is_utf16 and utf16 or utf32), is_utf16)
end

---@param text string
---@return integer
function M.utf16_length(text)
  if has_methods then
    return vim.str_utfindex(text, 'utf-16')
  end
  return select(2, vim.str_utfindex(text))
end

function M.log_path()
  return vim.lsp.log and vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
end

return M
