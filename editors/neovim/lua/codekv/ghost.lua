-- Draws a suggestion as virtual text; changes no buffer text.
local item = require('codekv.item')

local M = {}

local ns = vim.api.nvim_create_namespace('codekv')

function M.highlight()
  vim.api.nvim_set_hl(0, 'CodeKVGhost', { link = 'Comment', default = true })
  vim.api.nvim_set_hl(0, 'CodeKVCount', { link = 'NonText', default = true })
end

function M.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  end
end

--- Virtual text shows a tab as one cell; widen it to where the next text would stand.
local function widen(buf, text, column)
  local stop = vim.bo[buf].tabstop
  return (text:gsub('([^\t]*)\t', function(before)
    column = column + vim.fn.strdisplaywidth(before)
    local gap = stop - column % stop
    column = column + gap
    return before .. (' '):rep(gap)
  end))
end

local function mark(buf, row, col, opts)
  if opts.virt_text and opts.virt_text[1][1] == '' then
    return
  end
  -- The line may have become shorter; then the event that follows clears the rest.
  pcall(vim.api.nvim_buf_set_extmark, buf, ns, row, col, opts)
end

---@param buf integer
---@param s table see codekv.item
---@param note? string shown after the text, such as (1/3)
function M.draw(buf, s, note)
  M.clear(buf)
  local lines = vim.split(s.rest, '\n', { plain = true })
  local column = vim.fn.virtcol('.') - 1
  local first = widen(buf, lines[1], column)
  local pieces = #lines == 1 and item.pieces(first, s.tail)
  if pieces then
    for _, piece in ipairs(pieces) do
      mark(buf, s.row, s.col + piece.at, { virt_text = { { piece.text, 'CodeKVGhost' } }, virt_text_pos = 'inline' })
    end
  else
    -- What will be replaced is hidden under the text.
    local missing = vim.fn.strdisplaywidth(s.tail) - vim.fn.strdisplaywidth(first)
    local cover = s.tail == '' and 'inline' or 'overlay'
    mark(buf, s.row, s.col, { virt_text = { { first .. (' '):rep(missing), 'CodeKVGhost' } }, virt_text_pos = cover })
  end
  local below = {}
  for at = 2, #lines do
    below[at - 1] = { { widen(buf, lines[at], 0), 'CodeKVGhost' } }
  end
  if #below > 0 then
    mark(buf, s.row, s.col, { virt_lines = below })
  end
  if note then
    mark(buf, s.row, 0, { virt_text = { { ' ' .. note, 'CodeKVCount' } }, virt_text_pos = 'eol' })
  end
end

return M
