import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createEnvironment, EnvironmentError, installCommand, isNewEnough, isOutdated, onPath, ownServer, type Progress } from '../src/environment';
import { choices } from '../src/models';
import { outline } from '../src/report';
import { explicitValue, nest, section } from '../src/settings';
import { barText, localStatus, parseStatus, tooltipLines } from '../src/status';

const quiet = (signal = new AbortController().signal): Progress & { lines: string[] } => {
  const lines: string[] = [];
  return { step: (line) => lines.push(line), output: (line) => lines.push(line), signal, lines };
};

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'codekv-unit-'));
  try { await work(folder); } finally { rmSync(folder, { recursive: true, force: true }); }
}

test('a full status is shown with latency, reuse and model', () => {
  const status = parseStatus({
    state: 'ready', message: '', model: 'tiny',
    last: { total_ms: 123.4, exact: 800, restored: 10, moved: 5, computed: 2, generated: 9 },
  });
  assert.equal(barText(status), 'codekv: ready');
  assert.deepEqual(tooltipLines(status), [
    'ready', 'Model: tiny', 'Last completion: 123 ms',
    'Context tokens: 800 exact, 10 restored, 5 moved, 2 computed', 'Generated tokens: 9']);
});

test('missing and malformed status fields are left out', () => {
  for (const value of [undefined, null, 3, [], {}, { state: 7, last: 'x' }, { last: { total_ms: NaN, exact: '1' } }]) {
    assert.deepEqual(tooltipLines(parseStatus(value)), ['ready']);
  }
  assert.equal(parseStatus({ state: 'PAUSED' }).state, 'paused');
  assert.equal(barText(localStatus('loading')), '$(sync~spin) codekv: loading');
});

test('an error keeps its message', () => {
  assert.deepEqual(tooltipLines(parseStatus({ state: 'error', message: 'no model' })), ['error: no model']);
});

test('settings are nested, and only those the user has set', () => {
  const set: Record<string, unknown> = {
    'model.name': 'm', 'kvcache.purge_strategy.interval': 3, 'completion.debounce_ms': '25',
    'privacy.exclude': [], 'command': ['x'], 'server.log_file': '',
  };
  const keys = [...Object.keys(set), 'completion.max_tokens'];
  assert.deepEqual(nest(keys, (key) => set[key]), {
    model: { name: 'm' }, kvcache: { purge_strategy: { interval: 3 } }, completion: { debounce_ms: 25 },
    privacy: { exclude: [] },
  });
});

test('a debounce of "auto" stays text and an empty model name is no choice', () => {
  const set: Record<string, unknown> = { 'completion.debounce_ms': 'auto', 'model.name': '' };
  assert.deepEqual(nest(Object.keys(set), (key) => set[key]), { completion: { debounce_ms: 'auto' } });
});

test('the nearest explicit value wins, even if it is false or zero', () => {
  assert.equal(explicitValue({ globalValue: 1, workspaceValue: 0 }), 0);
  assert.equal(explicitValue({ globalValue: true, workspaceFolderValue: false }), false);
  assert.equal(explicitValue({}), undefined);
  assert.equal(explicitValue(undefined), undefined);
});

test('a server may ask for the whole, a section or a value', () => {
  const settings = { model: { name: 'm' } };
  assert.deepEqual(section(settings, undefined), { codekv: settings });
  assert.deepEqual(section(settings, 'codekv'), settings);
  assert.equal(section(settings, 'codekv.model.name'), 'm');
  assert.equal(section(settings, 'codekv.model.name.more'), null);
  assert.equal(section(settings, 'codekv.nothing'), null);
  assert.equal(section(settings, 'editor'), null);
});

test('the model picker takes the server\'s list and marks the present model', () => {
  assert.deepEqual(choices({ models: ['a', { name: 'b', description: 'big' }, 7] }, 'b'),
    [{ label: 'a', description: '' }, { label: 'b', description: 'in use; big' }]);
  assert.equal(choices({ models: ['a'] }, 'a')[0]?.description, 'in use');
  assert.ok(choices(undefined, '').length >= 2);
});

test('a report is an outline, one value a line', () => {
  assert.equal(outline({ state: 'ready', last: { total_ms: 12.3456, items: [] }, advice: ['wait'], none: null }),
    'state: ready\nlast:\n  total_ms: 12.35\n  items: -\nadvice:\n  1: wait\nnone: -\n');
});

test('Python 3.11 and newer will do', () => {
  for (const [version, enough] of [[[3, 11], true], [[3, 14], true], [[4, 0], true], [[3, 10], false], [[2, 7], false]] as const) {
    assert.equal(isNewEnough(version), enough);
  }
});

test('an executable is found on the search path, a plain file is not', () => inFolder(async (folder) => {
  writeFileSync(join(folder, 'codekv'), '#!/bin/sh\n', { mode: 0o644 });
  assert.equal(onPath('codekv', folder), undefined);
  writeFileSync(join(folder, 'other'), '#!/bin/sh\n', { mode: 0o755 });
  assert.equal(onPath('other', `${join(folder, 'missing')}:${folder}`), join(folder, 'other'));
}));

const planFor = (folder: string, installer: string, python: string, uv?: string) =>
  ({ folder, installer, python, source: '', torchIndex: '', packages: '', uv });

test('an interpreter that is missing or too old is named in the error', () => inFolder(async (folder) => {
  const old = join(folder, 'old-python');
  writeFileSync(old, '#!/bin/sh\necho 3 9\n', { mode: 0o755 });
  for (const [python, reason] of [[join(folder, 'missing'), /found none/], [old, /is 3\.9/]] as const) {
    await assert.rejects(createEnvironment(planFor(join(folder, 'env'), 'install.py', python), quiet()), (error: Error) =>
      error instanceof EnvironmentError && reason.test(error.message) && error.message.includes('3.11'));
  }
}));

/** Answers like Python when asked for its version, and else runs `body` as the installer. */
const fakePython = (folder: string, body: string) => {
  const python = join(folder, 'fake-python');
  writeFileSync(python, `#!/bin/sh\ncase "$2" in\n-c) echo 3 12;;\n*) ${body};;\nesac\n`, { mode: 0o755 });
  return python;
};

test('only what is set is handed to the installer', () => {
  const plan = planFor('/env', '/ext/install.py', '');
  assert.deepEqual(installCommand(plan, 'python3'), ['python3', '-I', '/ext/install.py', '--into', '/env', '--until-stdin-ends']);
  const full = { ...plan, source: '/w.whl', torchIndex: 'https://i', packages: '/p', uv: '/bin/uv' };
  assert.deepEqual(installCommand(full, 'python3').slice(3), [
    '--into', '/env', '--source', '/w.whl', '--torch-index', 'https://i', '--packages', '/p', '--uv', '/bin/uv', '--until-stdin-ends']);
  assert.deepEqual(installCommand(full, undefined).slice(0, 2), ['/bin/uv', 'run']);
});

test('a failing installer gives the reason, and what it made is not used', () => inFolder(async (folder) => {
  const python = fakePython(folder, 'mkdir -p "$4/bin"; echo "error no room on the disk"; exit 1');
  const env = join(folder, 'env');
  await assert.rejects(createEnvironment(planFor(env, 'install.py', python), quiet()), /no room on the disk/);
  assert.equal(ownServer(env), undefined);
}));

test('progress is shown in megabytes, and a complete environment is found again', { skip: process.platform === 'win32' }, () => inFolder(async (folder) => {
  const make = 'mkdir -p "$4/bin"; echo "step fetching packages"; echo "megabytes 12.5"; echo "output pip says this"; '
    + 'echo "#!/bin/sh" > "$4/bin/codekv"; chmod +x "$4/bin/codekv"; touch "$4/codekv-complete"; echo "command $4/bin/codekv"';
  const env = join(folder, 'env');
  const progress = quiet();
  const command = await createEnvironment(planFor(env, 'install.py', fakePython(folder, make)), progress);
  assert.equal(command, join(env, 'bin/codekv'));
  assert.equal(ownServer(env), command);
  assert.ok(progress.lines.includes('fetching packages: 12.5 MB'));
  assert.ok(progress.lines.includes('pip says this'));
}));

test('an environment that another wheel made is out of date', () => inFolder(async (folder) => {
  const [env, brought] = [join(folder, 'env'), join(folder, 'brought')];
  mkdirSync(env); mkdirSync(brought);
  assert.equal(isOutdated(env, brought), false);
  writeFileSync(join(brought, 'codekv-2-py3-none-any.whl'), '');
  assert.equal(isOutdated(env, brought), false);
  writeFileSync(join(env, 'codekv-complete'), 'codekv-2-py3-none-any.whl\n');
  assert.equal(isOutdated(env, brought), false);
  writeFileSync(join(env, 'codekv-complete'), 'codekv-1-py3-none-any.whl\n');
  assert.equal(isOutdated(env, brought), true);
}));

test('cancelling ends the input of the installer and is no error of it', () => inFolder(async (folder) => {
  const abort = new AbortController();
  const progress = quiet(abort.signal);
  const python = fakePython(folder, 'echo output begun; cat; exit 1');
  const output = progress.output;
  const watching = { ...progress, output: (line: string) => { output(line); if (line === 'begun') { abort.abort(); } } };
  const env = join(folder, 'env');
  await assert.rejects(createEnvironment(planFor(env, 'install.py', python), watching), { name: 'AbortError' });
  assert.equal(ownServer(env), undefined);
}));
