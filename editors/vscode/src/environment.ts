// Finds the server, or makes an environment of its own for it. Knows processes and
// files; shows nothing itself.

import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

const WINDOWS = process.platform === 'win32';
const OLDEST_PYTHON = [3, 11] as const;
/** Written last, so that a half-made environment is never used. */
const COMPLETE = 'codekv-complete';

export interface Progress {
  /** Tells the user what is going on now. */
  step(message: string): void;
  /** Keeps a line of a tool's output for the log. */
  output(line: string): void;
  readonly signal: AbortSignal;
}

/** A failure whose message tells the user what to do. */
export class EnvironmentError extends Error {}

/** The first executable of that name on the search path. */
export function onPath(name: string, path = process.env['PATH'] ?? ''): string | undefined {
  const endings = WINDOWS ? ['.exe', '.cmd', '.bat'] : [''];
  return path.split(delimiter).filter(Boolean)
    .flatMap((folder) => endings.map((ending) => join(folder, name + ending)))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The command of the environment in `folder`, if that was made completely. */
export function ownServer(folder: string): string | undefined {
  const command = join(folder, WINDOWS ? 'Scripts/codekv.exe' : 'bin/codekv');
  return existsSync(join(folder, COMPLETE)) && isExecutable(command) ? command : undefined;
}

/** Makes the environment: a Python that is new enough, `venv`, `pip install`.
 *
 * Whatever fails or is cancelled leaves nothing behind.
 * @returns the server's command
 * @throws EnvironmentError
 */
export async function createEnvironment(folder: string, python: string, source: string, progress: Progress): Promise<string> {
  progress.step('looking for Python');
  const interpreter = await findPython(python, progress);
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, '..'), { recursive: true });
  try {
    progress.step('creating the environment');
    await run(interpreter, ['-m', 'venv', folder], progress,
      'Python could not create an environment. On Debian and Ubuntu, install the package python3-venv.');
    progress.step(`installing ${source} (this can take a few minutes)`);
    const pip = [join(folder, WINDOWS ? 'Scripts/python.exe' : 'bin/python'), '-m', 'pip'] as const;
    await run(pip[0], [...pip.slice(1), 'install', '--disable-pip-version-check', '--no-input', source], progress,
      `pip could not install ${source}. If this machine is offline, set codekv.installFrom to a local folder or wheel.`);
    await writeFile(join(folder, COMPLETE), '');
    const command = ownServer(folder);
    if (!command) { throw new EnvironmentError(`${source} was installed but brought no codekv command; check codekv.installFrom.`); }
    return command;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function findPython(configured: string, progress: Progress): Promise<string> {
  const names = configured ? [configured] : ['python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3', 'python'];
  const seen: string[] = [];
  for (const name of names) {
    const version = await pythonVersion(name, progress.signal);
    if (!version) { continue; }
    if (isNewEnough(version)) { return name; }
    seen.push(`${name} is ${version.join('.')}`);
  }
  const found = seen.length > 0 ? seen.join(', ') : `found none (tried ${names.join(', ')})`;
  throw new EnvironmentError(`codekv needs Python ${OLDEST_PYTHON.join('.')} or newer; ${found}. Install one, or set codekv.python.`);
}

export function isNewEnough([major = 0, minor = 0]: readonly number[]): boolean {
  return major > OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1]);
}

async function pythonVersion(command: string, signal: AbortSignal): Promise<number[] | undefined> {
  const lines: string[] = [];
  const code = 'import sys; print(*sys.version_info[:2])';
  const status = await start(command, ['-c', code], (line) => lines.push(line), signal).catch(() => undefined);
  const version = lines[0]?.trim().split(' ').map(Number);
  return status === 0 && version?.length === 2 && version.every(Number.isInteger) ? version : undefined;
}

async function run(command: string, args: readonly string[], progress: Progress, advice: string): Promise<void> {
  const tail: string[] = [];
  progress.output(`> ${[command, ...args].join(' ')}`);
  const keep = (line: string) => { progress.output(line); tail.push(line); tail.splice(0, tail.length - 50); };
  const status = await start(command, args, keep, progress.signal);
  if (status !== 0) {
    const reason = tail.reverse().find((line) => /error/i.test(line)) ?? tail[0] ?? `exit status ${status}`;
    throw new EnvironmentError(`${advice} (${reason.trim()})`);
  }
}

/** Runs a command, hands over its output line by line, and tells its exit status. */
function start(command: string, args: readonly string[], line: (text: string) => void, signal: AbortSignal): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { signal, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true });
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split(/\r\n|\n|\r/);
        rest = lines.pop() ?? '';
        lines.filter((each) => each.trim()).forEach(line);
      }).on('end', () => { if (rest.trim()) { line(rest); } });
    }
    child.once('error', reject);
    child.once('close', resolve);
  });
}
