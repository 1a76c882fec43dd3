// The commands of the palette and of the status bar's menu.

import * as vscode from 'vscode';
import { setModel } from './configuration';
import type { Launcher } from './launch';
import { choices } from './models';
import type { Server } from './server';
import type { StatusBar } from './statusBar';
import type { Statistics } from './statistics';

// The prefix keeps them apart from the server's own commands, which the client registers.
export const MENU = 'codekv.ui.menu';

interface Parts {
  readonly server: Server;
  readonly launcher: Launcher;
  readonly bar: StatusBar;
  readonly statistics: Statistics;
  readonly log: vscode.LogOutputChannel;
}

export function registerCommands(context: vscode.ExtensionContext, parts: Parts): void {
  const { server, launcher, log } = parts;
  const actions: Record<string, () => Promise<unknown> | void> = {
    'codekv.ui.pause': () => server.command('codekv.pause'),
    'codekv.ui.resume': () => server.command('codekv.resume'),
    'codekv.ui.pickModel': () => pickModel(parts),
    'codekv.ui.showStatistics': () => parts.statistics.show(),
    'codekv.ui.clearCache': () => clearCache(server),
    'codekv.ui.restart': () => server.restart(),
    'codekv.ui.openLog': () => log.show(),
    'codekv.ui.install': () => reinstall(server, launcher),
    [MENU]: () => menu(parts),
  };
  for (const [name, action] of Object.entries(actions)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, () => guarded(log, action)));
  }
}

async function guarded(log: vscode.LogOutputChannel, action: () => Promise<unknown> | void): Promise<void> {
  try {
    await action();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log.error(message);
    void vscode.window.showErrorMessage(`codekv: ${message}`);
  }
}

async function menu({ bar }: Parts): Promise<void> {
  const paused = bar.current.state === 'paused';
  const picked = await vscode.window.showQuickPick([
    paused ? { label: '$(debug-start) Resume', command: 'codekv.ui.resume' } : { label: '$(debug-pause) Pause', command: 'codekv.ui.pause' },
    { label: '$(server) Pick Model…', command: 'codekv.ui.pickModel' },
    { label: '$(graph) Show Statistics', command: 'codekv.ui.showStatistics' },
    { label: '$(trash) Clear Cache', command: 'codekv.ui.clearCache' },
    { label: '$(refresh) Restart Server', command: 'codekv.ui.restart' },
    { label: '$(output) Open Log', command: 'codekv.ui.openLog' },
    { label: '$(gear) Settings', command: 'workbench.action.openSettings', argument: '@ext:codekv.codekv' },
  ], { title: 'codekv', placeHolder: bar.current.message || bar.current.state });
  if (picked) { await vscode.commands.executeCommand(picked.command, ...('argument' in picked ? [picked.argument] : [])); }
}

async function pickModel({ server, bar }: Parts): Promise<void> {
  const report = await server.report().catch(() => undefined);
  const file: vscode.QuickPickItem = { label: '$(file) A GGUF file…' };
  const folder: vscode.QuickPickItem = { label: '$(folder) A folder…' };
  const other: vscode.QuickPickItem = { label: '$(edit) Another name…', description: 'as in `codekv model list`' };
  const known = choices(report, bar.current.model);
  const picked = await vscode.window.showQuickPick<vscode.QuickPickItem>([...known, file, folder, other], { title: 'codekv: model' });
  if (!picked) { return; }
  let name: string | undefined = picked.label;
  if (picked === file) { name = await pickPath({ canSelectFiles: true, filters: { GGUF: ['gguf'] } }); }
  if (picked === folder) { name = await pickPath({ canSelectFolders: true, canSelectFiles: false }); }
  if (picked === other) { name = await vscode.window.showInputBox({ title: 'codekv: model', value: bar.current.model }); }
  if (name) { await setModel(name); }
}

async function pickPath(options: vscode.OpenDialogOptions): Promise<string | undefined> {
  const chosen = await vscode.window.showOpenDialog({ ...options, canSelectMany: false, openLabel: 'Use' });
  return chosen?.[0]?.fsPath;
}

async function clearCache(server: Server): Promise<void> {
  await server.command('codekv.clearCache');
  void vscode.window.setStatusBarMessage('codekv: cache cleared', 3000);
}

async function reinstall(server: Server, launcher: Launcher): Promise<void> {
  // A running server would hold its files open while they are replaced.
  await server.stop();
  await launcher.install();
  await server.start();
}
