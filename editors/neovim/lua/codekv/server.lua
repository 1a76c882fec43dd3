-- The language server: one for all roots, since each holds a model in memory; attached
-- to the buffers that want it.
local compat = require('codekv.compat')
local config = require('codekv.config')
local status = require('codekv.status')

local M = {}

local NAME = 'codekv'
local group = vim.api.nvim_create_augroup('codekv.server', {})
local has_complained = false
local is_stopping = false

---@return vim.lsp.Client[]
function M.clients()
  return vim.lsp.get_clients({ name = NAME })
end

local function root_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  return vim.fs.root(buf, config.options.root_markers) or (name ~= '' and vim.fs.dirname(name) or vim.uv.cwd())
end

local function focus(client, buf)
  compat.notify(client, 'textDocument/didFocus', { textDocument = { uri = vim.uri_from_bufnr(buf) } })
end

--- Tell a running server of another root.
local function add_root(client, root)
  local uri = vim.uri_from_fname(root)
  local folders = client.workspace_folders or {}
  for _, folder in ipairs(folders) do
    if folder.uri == uri then
      return
    end
  end
  local added = { uri = uri, name = root }
  client.workspace_folders = vim.list_extend(folders, { added })
  compat.notify(client, 'workspace/didChangeWorkspaceFolders', { event = { added = { added }, removed = {} } })
end

local function on_attach(client, buf)
  add_root(client, root_of(buf))
  require('codekv.engine').current().attach(client, buf)
  require('codekv.keys').attach(buf)
  if vim.api.nvim_get_current_buf() == buf then
    focus(client, buf)
  end
end

local function on_exit(code, signal)
  vim.schedule(function()
    local is_expected = is_stopping or vim.v.exiting ~= vim.NIL
    is_stopping = false
    status.stopped(not is_expected and ('the server ended (code %d, signal %d); see :CodeKV log'):format(code, signal) or nil)
  end)
end

local function on_init(client)
  compat.request(client, 'codekv/status', vim.empty_dict(), function(err, result)
    status.set(not err and result or { state = 'ready' })
  end)
end

local function capabilities()
  local caps = vim.lsp.protocol.make_client_capabilities()
  -- Neovim before 0.12 does not announce it by itself.
  caps.textDocument.inlineCompletion = caps.textDocument.inlineCompletion or { dynamicRegistration = false }
  return caps
end

--- Tables are sent as objects even when they are empty.
local function settings()
  local given = config.options.settings
  return next(given) and vim.deepcopy(given) or vim.empty_dict()
end

local function command_is_there(cmd)
  if type(cmd) ~= 'table' or vim.fn.executable(cmd[1]) == 1 then
    return true
  end
  if not has_complained then
    has_complained = true
    local remedy = 'run :CodeKV install, or set cmd in setup()'
    vim.notify(('codekv: %s is not executable; %s'):format(cmd[1], remedy), vim.log.levels.ERROR)
  end
  status.stopped(cmd[1] .. ' is not executable')
  return false
end

--- Attach the server to a buffer, starting it if needed.
---@param buf integer
function M.start(buf)
  if not config.is_wanted(buf) or not command_is_there(config.command()) then
    return
  end
  if #M.clients() == 0 then
    status.set({ state = 'starting' })
  end
  vim.lsp.start({
    name = NAME,
    cmd = config.command(),
    -- Not the project's folder, whose files a program could take for its own.
    cmd_cwd = vim.uv.os_homedir(),
    root_dir = root_of(buf),
    capabilities = capabilities(),
    init_options = settings(),
    settings = { codekv = settings() },
    handlers = {
      ['codekv/didChangeStatus'] = function(_, params)
        status.set(params)
      end,
    },
    on_init = on_init,
    on_attach = on_attach,
    on_exit = on_exit,
  }, {
    bufnr = buf,
    reuse_client = function(client)
      return client.name == NAME and not compat.is_stopped(client)
    end,
  })
end

function M.start_for_open_buffers()
  has_complained = false
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    M.start(buf)
  end
end

--- Stop every server; `after` runs when the last one has ended.
---@param after? fun()
function M.stop(after)
  local clients = M.clients()
  is_stopping = #clients > 0
  for _, client in ipairs(clients) do
    for buf in pairs(client.attached_buffers) do
      require('codekv.engine').current().detach(buf)
      require('codekv.keys').detach(buf)
    end
    compat.stop(client)
  end
  if after then
    M.when_stopped(after)
  end
end

---@param after fun()
function M.when_stopped(after)
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 20, vim.schedule_wrap(function()
    if #M.clients() == 0 and not timer:is_closing() then
      timer:close()
      after()
    end
  end))
end

--- Send the settings again after one has changed.
function M.push_settings()
  for _, client in ipairs(M.clients()) do
    client.settings = { codekv = settings() }
    compat.notify(client, 'workspace/didChangeConfiguration', { settings = client.settings })
  end
end

--- Keep the server with the buffers: new ones are attached, the one in view is told.
function M.watch()
  vim.api.nvim_clear_autocmds({ group = group })
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    callback = function(event)
      if config.options.autostart then
        M.start(event.buf)
      end
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'FocusGained' }, {
    group = group,
    callback = function(event)
      for _, client in ipairs(vim.lsp.get_clients({ name = NAME, bufnr = event.buf })) do
        focus(client, event.buf)
      end
    end,
  })
end

return M
