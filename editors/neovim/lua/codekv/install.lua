-- Installs the server into an environment of its own, with the installer that all
-- editors share (editors/install.py); nothing else on the machine is changed.
local config = require('codekv.config')

local M = {}

local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local is_windows = vim.fn.has('win32') == 1
-- Written last by the installer.
local MARK = 'codekv-complete'
local running

--- Where the environment is.
function M.folder()
  return vim.fs.joinpath(vim.fn.stdpath('data'), 'codekv', 'server')
end

--- The installer: in the repository, or beside the plugin.
function M.installer()
  local editors = vim.fs.normalize(vim.fs.joinpath(here, '..', '..', '..'))
  for _, path in ipairs({ vim.fs.joinpath(editors, 'install.py'), vim.fs.joinpath(editors, 'neovim', 'install.py') }) do
    if vim.uv.fs_stat(path) then
      return path
    end
  end
end

--- The command line of the environment, if it was made completely.
---@return string[]?
function M.command()
  local name = is_windows and 'Scripts/codekv.exe' or 'bin/codekv'
  local program = vim.fs.joinpath(M.folder(), name)
  if vim.uv.fs_stat(vim.fs.joinpath(M.folder(), MARK)) and vim.fn.executable(program) == 1 then
    return { program, 'serve' }
  end
end

--- The command line that installs.
---@return string[]
function M.install_command()
  local given = config.options.install
  local command = { given.python, '-I', M.installer(), '--into', M.folder(), '--until-stdin-ends' }
  for option, value in pairs({
    ['--source'] = given.source,
    ['--torch-index'] = given.torch_index,
    ['--packages'] = given.packages,
    ['--uv'] = given.uv,
  }) do
    if value then
      vim.list_extend(command, { option, value })
    end
  end
  return command
end

--- Hand over each whole line of a stream.
local function lines(take)
  local rest = ''
  return function(_, data)
    rest = rest .. (data or '\n')
    for line in rest:gmatch('([^\r\n]+)[\r\n]') do
      vim.schedule(function()
        take(line)
      end)
    end
    rest = rest:match('[^\r\n]*$')
  end
end

--- Install; `say` gets one line per step, `done` whether it worked.
---@param say fun(text: string, level?: integer)
---@param done fun()
function M.run(say, done)
  if running then
    say('the installation is going on already', vim.log.levels.WARN)
    return
  end
  if not M.installer() then
    say('install.py is missing: keep the plugin within its repository', vim.log.levels.ERROR)
    return
  end
  local step, reason = '', nil
  local function take(line)
    local kind, text = line:match('^(%S+) (.*)$')
    if kind == 'step' then
      step = text
      say(text)
    elseif kind == 'megabytes' then
      vim.api.nvim_echo({ { ('codekv: %s: %s MB'):format(step, text) } }, false, {})
    elseif kind == 'error' then
      reason = text
    end
  end
  local command = M.install_command()
  local is_started, problem = pcall(function()
    running = vim.system(command, { text = true, stdin = true, cwd = vim.uv.os_homedir(), stdout = lines(take) }, function(result)
      vim.schedule(function()
        running = nil
        if result.code == 0 and M.command() then
          say('the server is installed')
          done()
        else
          say('not installed: ' .. (reason or ('exit code ' .. result.code)), vim.log.levels.ERROR)
        end
      end)
    end)
  end)
  if not is_started then
    running = nil
    say(('%s cannot be started (%s); set install.python in setup()'):format(command[1], problem), vim.log.levels.ERROR)
  end
end

--- Cancel; what was fetched stays for the next time.
function M.cancel()
  if running then
    running:write(nil)
  end
end

return M
