-- The plugin's options: defaults, and one message for each that is wrong.
local M = {}

M.defaults = {
  -- The server's command line; false: the one that :CodeKV install made, else the one
  -- on the search path.
  cmd = false,
  -- For :CodeKV install. Left out: what editors/install.py decides.
  install = { python = 'python3', source = nil, torch_index = nil, packages = nil, uv = nil },
  -- Language server settings, in the nesting of codekv.toml.
  settings = {},
  -- Filetypes with completion, or '*' for every ordinary buffer.
  filetypes = '*',
  disabled_filetypes = { 'help', 'gitcommit', 'gitrebase', 'qf' },
  root_markers = { 'codekv.toml', 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod', '.git' },
  autostart = true,
  -- Ask while typing; if false only the request key asks.
  auto_trigger = true,
  -- 'auto': Neovim's own inline completion where there is one (0.12); 'plugin': never.
  ghost = 'auto',
  debounce_ms = 30,
  -- Keys in insert mode; false leaves one out.
  keys = {
    accept = '<Tab>',
    accept_word = '<M-Right>',
    accept_line = '<M-C-Right>',
    next = '<M-]>',
    previous = '<M-[>',
    request = '<M-Bslash>',
    dismiss = '<C-]>',
  },
}

M.options = vim.deepcopy(M.defaults)

local TYPES = {
  cmd = { 'table', 'function', 'boolean' },
  filetypes = { 'string', 'table' },
}

local function kinds(key, default)
  return TYPES[key] or { type(default) }
end

local function check_keys(keys, problems)
  for name, lhs in pairs(keys) do
    if M.defaults.keys[name] == nil then
      table.insert(problems, ('unknown key %q in keys, ignored'):format(name))
    elseif lhs ~= false and type(lhs) ~= 'string' then
      table.insert(problems, ('keys.%s: expected a string or false, got %s'):format(name, type(lhs)))
      keys[name] = M.defaults.keys[name]
    end
  end
end

--- The command line that starts the server.
---@return string[]|function
function M.command()
  local cmd = M.options.cmd
  if type(cmd) ~= 'boolean' then
    return cmd
  end
  return require('codekv.install').command() or { 'codekv', 'serve' }
end

--- Lay `opts` over the defaults.
---@param opts? table
---@return string[] problems one line each; the default is kept
function M.apply(opts)
  local problems, good = {}, {}
  for key, value in pairs(opts or {}) do
    local default = M.defaults[key]
    if default == nil then
      table.insert(problems, ('unknown option %q, ignored'):format(key))
    elseif not vim.tbl_contains(kinds(key, default), type(value)) then
      local expected = table.concat(kinds(key, default), ' or ')
      table.insert(problems, ('%s: expected a %s, got %s; the default is kept'):format(key, expected, type(value)))
    else
      good[key] = vim.deepcopy(value)
    end
  end
  check_keys(good.keys or {}, problems)
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(M.defaults), good)
  -- Lists are replaced, not merged by index.
  for _, key in ipairs({ 'cmd', 'filetypes', 'disabled_filetypes', 'root_markers' }) do
    if good[key] ~= nil then
      M.options[key] = good[key]
    end
  end
  table.sort(problems)
  return problems
end

---@param buf integer
---@return boolean
function M.is_wanted(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= '' or not vim.bo[buf].modifiable then
    return false
  end
  local filetype = vim.bo[buf].filetype
  if filetype == '' or vim.tbl_contains(M.options.disabled_filetypes, filetype) then
    return false
  end
  local wanted = M.options.filetypes
  return wanted == '*' or vim.tbl_contains(type(wanted) == 'table' and wanted or { wanted }, filetype)
end

return M
