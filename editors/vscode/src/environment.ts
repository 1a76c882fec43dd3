// Finds the server, or makes an environment of its own for it. Knows processes and
// files; shows nothing itself.

import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';

const WINDOWS = process.platform === 'win32';
const OLDEST_PYTHON = [3, 11] as const;
/** Written last by the installer, so that a half-made environment is never used. */
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
  // A relative entry would lead into whatever folder is open.
  return path.split(delimiter).filter(isAbsolute)
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

/** Whether the environment in `folder` was made from another wheel than the one in `brought`. */
export function isOutdated(folder: string, brought: string): boolean {
  try {
    const wheel = readdirSync(brought).find((name) => name.startsWith('codekv-') && name.endsWith('.whl'));
    return wheel !== undefined && readFileSync(join(folder, COMPLETE), 'utf8').trim() !== wheel;
  } catch {
    return false;
  }
}

/** What to install, and with what; an empty text means "as install.py decides". */
export interface Plan {
  /** The environment's folder. */
  readonly folder: string;
  /** The installer and, beside it, the server's wheel and its constraints. */
  readonly installer: string;
  readonly python: string;
  readonly source: string;
  readonly torchIndex: string;
  readonly packages: string;
  /** The program uv; then no Python has to be there. */
  readonly uv: string | undefined;
}

/** The command line that runs the installer. */
export function installCommand(plan: Plan, python: string | undefined): string[] {
  const runner = python ? [python, '-I'] : [plan.uv ?? 'uv', 'run', '--no-project', '--no-config', '--python', '3.12', 'python', '-I'];
  const options: [string, string | undefined][] = [
    ['--into', plan.folder], ['--source', plan.source], ['--torch-index', plan.torchIndex],
    ['--packages', plan.packages], ['--uv', plan.uv],
  ];
  const given = options.flatMap(([name, value]) => (value ? [name, value] : []));
  return [...runner, plan.installer, ...given, '--until-stdin-ends'];
}

/** Makes the environment with the installer.
 *
 * An environment that is not complete is never used; packages that were fetched stay for the next try.
 * @returns the server's command
 * @throws EnvironmentError
 */
export async function createEnvironment(plan: Plan, progress: Progress): Promise<string> {
  progress.step('looking for Python');
  const python = await findPython(plan.python, progress).catch((error: unknown) => {
    if (plan.uv && !plan.python) { return undefined; }
    throw error;
  });
  await mkdir(dirname(plan.folder), { recursive: true });
  const [command = '', ...args] = installCommand(plan, python);
  progress.output(`> ${[command, ...args].join(' ')}`);
  const told = new Told(progress);
  const status = await start(command, args, (line) => told.take(line), progress.signal, dirname(plan.folder));
  progress.signal.throwIfAborted();
  const found = ownServer(plan.folder);
  if (status !== 0 || !found) { throw new EnvironmentError(told.error || `the installer ended with status ${status}`); }
  return found;
}

/** Understands the installer's lines. */
export class Told {
  error = '';
  private doing = '';

  constructor(private readonly progress: Progress) {}

  take(line: string): void {
    const space = line.indexOf(' ');
    const [kind, text] = [line.slice(0, space), line.slice(space + 1)];
    if (kind === 'step') { this.doing = text; this.progress.step(text); }
    else if (kind === 'megabytes') { this.progress.step(`${this.doing}: ${text} MB`); }
    else if (kind === 'error') { this.error = text; }
    else { this.progress.output(kind === 'output' ? text : line); }
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
  const status = await start(command, ['-I', '-c', code], (line) => lines.push(line), signal, homedir()).catch(() => undefined);
  const version = lines[0]?.trim().split(' ').map(Number);
  return status === 0 && version?.length === 2 && version.every(Number.isInteger) ? version : undefined;
}

/** Runs a command, hands over its output line by line, and tells its exit status. */
function start(command: string, args: readonly string[], line: (text: string) => void, signal: AbortSignal, cwd: string): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
    // The installer ends itself, and all it has started, when its input ends.
    const stop = () => child.stdin.end();
    if (signal.aborted) { stop(); } else { signal.addEventListener('abort', stop, { once: true }); }
    child.stdin.on('error', () => undefined);
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
