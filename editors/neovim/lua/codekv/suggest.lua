-- Suggestions while typing, drawn by the plugin itself: when to ask, what to keep.
--
-- One suggestion at most is shown, at the cursor of the current window. An answer is
-- used only if the buffer and the cursor are as they were when it was asked for.
local compat = require('codekv.compat')
local config = require('codekv.config')
local edit = require('codekv.edit')
local ghost = require('codekv.ghost')
local item = require('codekv.item')

local M = { name = 'plugin' }

local INVOKED, AUTOMATIC = 1, 2
local METHOD = 'textDocument/inlineCompletion'

local clients = {} ---@type table<integer, integer> buffer to client id
local group = vim.api.nvim_create_augroup('codekv.suggest', {})
local timer = assert(vim.uv.new_timer())

local shown = nil ---@type table? suggestion, see codekv.item, plus buf and line
local candidates = {} ---@type table[] the items of the last answer
local index = 1
local has_all = false -- the candidates came from a request by hand
local pending = nil ---@type {client: table, id: integer}?
local last_place = nil ---@type string? where the last event was handled

local function client_of(buf)
  local id = clients[buf]
  return id and vim.lsp.get_client_by_id(id)
end

local function is_inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

local function cursor()
  local place = vim.api.nvim_win_get_cursor(0)
  return place[1] - 1, place[2]
end

local function place_of(buf)
  local row, col = cursor()
  return ('%d:%d:%d:%d'):format(buf, vim.api.nvim_buf_get_changedtick(buf), row, col)
end

local function hide()
  if shown then
    ghost.clear(shown.buf)
    shown = nil
  end
end

local function cancel()
  timer:stop()
  if pending then
    compat.cancel(pending.client, pending.id)
    pending = nil
  end
end

local function reset()
  cancel()
  hide()
  candidates, index, has_all = {}, 1, false
end

local function show(suggestion, buf, is_new)
  suggestion.buf, suggestion.line = buf, vim.api.nvim_get_current_line()
  shown = suggestion
  local note = has_all and #candidates > 1 and ('(%d/%d)'):format(index, #candidates) or nil
  ghost.draw(buf, suggestion, note)
  local client = client_of(buf)
  if is_new and client then
    edit.tell_shown(client, suggestion.item)
  end
end

--- Read the answer's items; those that do not fit the line are left out.
local function readable(items, client)
  local row, col = cursor()
  local line, seen, fitting = vim.api.nvim_get_current_line(), {}, {}
  for _, each in ipairs(items) do
    local suggestion = item.read(each, line, row, col, client.offset_encoding)
    if suggestion and suggestion.rest ~= '' and not seen[suggestion.rest] then
      seen[suggestion.rest] = true
      table.insert(fitting, each)
    end
  end
  return fitting
end

local function show_candidate(buf, at)
  local client = client_of(buf)
  local chosen = candidates[at]
  if not client or not chosen then
    return
  end
  local row, col = cursor()
  local suggestion = item.read(chosen, vim.api.nvim_get_current_line(), row, col, client.offset_encoding)
  hide()
  index = at
  if suggestion then
    show(suggestion, buf, true)
  end
end

local function ask(buf, kind, on_items)
  local client = client_of(buf)
  if not client then
    return
  end
  cancel()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local place = place_of(buf)
  local mine = {}
  local sent, id = compat.request(client, METHOD, params, function(err, result)
    if pending and pending.mine == mine then
      pending = nil
    end
    local is_stale = vim.api.nvim_get_current_buf() ~= buf or not is_inserting() or place_of(buf) ~= place
    if err or is_stale or type(result) ~= 'table' then
      return
    end
    on_items(readable(result.items or result, client))
  end, buf)
  if sent and id then
    pending = { client = client, id = id, mine = mine }
  end
end

local function ask_automatically(buf)
  if vim.api.nvim_get_current_buf() ~= buf or not is_inserting() or vim.fn.pumvisible() == 1 then
    return
  end
  ask(buf, AUTOMATIC, function(items)
    candidates, has_all = items, false
    if #items == 0 then
      hide()
    else
      show_candidate(buf, 1)
    end
  end)
end

--- Handle a change of the text or of the cursor, whichever event tells of it first.
local function on_change(buf)
  local place = place_of(buf)
  if place == last_place then
    return
  end
  last_place = place
  local row, col = cursor()
  local next = shown and shown.buf == buf and item.follow(shown, vim.api.nvim_get_current_line(), row, col, shown.line)
  if next and vim.fn.pumvisible() == 0 then
    cancel()
    show(next, buf, false)
    return
  end
  reset()
  if config.options.auto_trigger then
    timer:start(config.options.debounce_ms, 0, vim.schedule_wrap(function()
      ask_automatically(buf)
    end))
  end
end

---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  clients[buf] = client.id
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  on({ 'InsertEnter', 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, function()
    on_change(buf)
  end)
  on({ 'InsertLeave', 'BufLeave', 'CompleteChanged' }, function()
    last_place = nil
    reset()
  end)
  on({ 'BufUnload', 'BufDelete' }, function()
    M.detach(buf)
  end)
end

---@param buf integer
function M.detach(buf)
  clients[buf] = nil
  if shown and shown.buf == buf then
    reset()
  end
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
end

local function accept_all(s, client)
  edit.insert(s.buf, s.row, s.col, #s.tail, s.rest)
  edit.tell_accepted(client, s.item, s.buf)
end

local function accept_part(s, client, count)
  edit.insert(s.buf, s.row, s.col, 0, s.rest:sub(1, count))
  local next = item.advance(s, count)
  show(next, s.buf, false)
  edit.tell_part(client, s.item, next.done)
end

---@param what 'all'|'word'|'line'
---@return boolean accepted
function M.accept(what)
  local s = shown
  local client = s and client_of(s.buf)
  if not s or not client then
    return false
  end
  local count = what == 'all' and #s.rest or item[what](s.rest)
  local is_whole = count >= #s.rest or s.rest:sub(count + 1) == s.tail
  cancel()
  if is_whole then
    reset()
    accept_all(s, client)
  else
    accept_part(s, client, count)
    -- What was shown stays; the change is our own.
    last_place = place_of(s.buf)
  end
  return true
end

---@return boolean dismissed
function M.dismiss()
  local was_shown = shown ~= nil
  reset()
  return was_shown
end

---@param step integer
function M.cycle(step)
  local buf = vim.api.nvim_get_current_buf()
  if has_all and #candidates > 0 then
    show_candidate(buf, (index - 1 + step) % #candidates + 1)
    return
  end
  local before = shown and shown.rest
  ask(buf, INVOKED, function(items)
    candidates, has_all = items, true
    local at = 1
    local row, col = cursor()
    local line, client = vim.api.nvim_get_current_line(), client_of(buf)
    -- The one that is shown already is not news.
    if before and client and #items > 1 then
      local first = item.read(items[1], line, row, col, client.offset_encoding)
      at = first and first.rest == before and (step > 0 and 2 or #items) or 1
    end
    show_candidate(buf, at)
  end)
end

function M.is_visible()
  return shown ~= nil
end

return M
