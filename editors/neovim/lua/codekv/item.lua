-- An offered item as seen from the cursor: what is still to come, and what goes away.
--
-- Pure: works on texts and byte columns, touches no buffer. A suggestion is
--   row, col  where the cursor is (0-based row, byte column)
--   rest      the text still to be inserted there, lines ended by \n
--   tail      what stands after the cursor and is replaced on accept (a `)`, mostly)
--   done      the item's text that is in the buffer already
--   item      the item as the server sent it
local compat = require('codekv.compat')

local M = {}

--- Read an item; nil if it does not fit the line as it is now.
---@param item table an LSP inline completion item
---@param line string the cursor's line
---@param row integer
---@param col integer
---@param encoding string
---@return table? suggestion
function M.read(item, line, row, col, encoding)
  local range, text = item.range, item.insertText
  if type(text) ~= 'string' or not range or range.start.line ~= row or range['end'].line ~= row then
    return nil
  end
  local from = compat.byte_of(line, range.start.character, encoding)
  local to = compat.byte_of(line, range['end'].character, encoding)
  text = text:gsub('\r\n?', '\n')
  local typed = line:sub(from + 1, col)
  if from > col or to < col or text:sub(1, #typed) ~= typed then
    return nil
  end
  local rest, tail = text:sub(#typed + 1), line:sub(col + 1, to)
  if rest == tail then
    return nil
  end
  return { row = row, col = col, rest = rest, tail = tail, done = typed, item = item }
end

--- The suggestion after the first `count` bytes of its rest have come into the buffer.
---@param s table
---@param count integer
---@return table
function M.advance(s, count)
  local taken = s.rest:sub(1, count)
  local row, col = M.after(s.row, s.col, taken)
  return { row = row, col = col, rest = s.rest:sub(count + 1), tail = s.tail, done = s.done .. taken, item = s.item }
end

--- Where the cursor is after `text` has been inserted.
---@return integer row
---@return integer col
function M.after(row, col, text)
  local _, breaks = text:gsub('\n', '')
  if breaks == 0 then
    return row, col + #text
  end
  return row + breaks, #text:match('[^\n]*$')
end

--- If the user typed the beginning of the suggestion: the suggestion as it is now.
---@param s table
---@param line string the cursor's line now
---@param row integer
---@param col integer
---@param before string the cursor's line when the suggestion was made or last advanced
---@return table? suggestion
function M.follow(s, line, row, col, before)
  local typed = line:sub(s.col + 1, col)
  if row ~= s.row or col <= s.col or s.rest:sub(1, #typed) ~= typed then
    return nil
  end
  if line:sub(1, s.col) ~= before:sub(1, s.col) or line:sub(col + 1) ~= before:sub(s.col + 1) then
    return nil
  end
  local next = M.advance(s, #typed)
  return next.rest ~= '' and next.rest ~= next.tail and next or nil
end

--- Bytes of the rest up to the end of its next word, as `w` counts words.
---@param rest string
---@return integer
function M.word(rest)
  local blank = #rest:match('^%s*')
  local class, count = nil, blank
  for _, char in ipairs(vim.fn.split(rest:sub(blank + 1), '\\zs')) do
    local this = char:match('^%s') and 0 or vim.fn.charclass(char)
    if this == 0 or (class and this ~= class) then
      break
    end
    class, count = this, count + #char
  end
  return count
end

--- Bytes of the rest up to the end of its next line; a break at the cursor comes along.
---@param rest string
---@return integer
function M.line(rest)
  local break_at = rest:find('\n', rest:sub(1, 1) == '\n' and 2 or 1, true)
  return break_at and break_at - 1 or #rest
end

--- Spread `text` over the gaps of `tail`, so that the tail's characters stay in place.
---
--- `"hi", x)` over `)` gives one piece, before the parenthesis.
---@param text string one line
---@param tail string
---@return {at: integer, text: string}[]? pieces nil if the tail is not contained in order
function M.pieces(text, tail)
  local pieces, from = {}, 1
  for at, char in ipairs(vim.fn.split(tail, '\\zs')) do
    -- The last character belongs to the end, so that nothing seems to follow it.
    local is_last = at == vim.fn.strchars(tail)
    local found = is_last and text:sub(-#char) == char and #text - #char + 1 or text:find(char, from, true)
    if not found or found < from then
      return nil
    end
    table.insert(pieces, { at = #vim.fn.strcharpart(tail, 0, at - 1), text = text:sub(from, found - 1) })
    from = found + #char
  end
  table.insert(pieces, { at = #tail, text = text:sub(from) })
  return vim.tbl_filter(function(piece)
    return piece.text ~= ''
  end, pieces)
end

return M
