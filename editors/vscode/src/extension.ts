// Puts the parts together.

import * as vscode from 'vscode';
import { MENU, registerCommands } from './commands';
import { Launcher } from './launch';
import { Server } from './server';
import { Statistics } from './statistics';
import { StatusBar } from './statusBar';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('codekv', { log: true });
  const launcher = new Launcher(context, log);
  const bar = new StatusBar(MENU);
  const running = new Server(context, launcher, log);
  const statistics = new Statistics(running);
  server = running;
  registerCommands(context, { server: running, launcher, bar, statistics, log });
  context.subscriptions.push(
    log, bar, running, statistics,
    running.onStatus((status) => bar.show(status)),
    vscode.window.onDidChangeActiveTextEditor((editor) => running.focus(editor)),
    vscode.workspace.onDidChangeConfiguration((event) => changed(event, running)),
  );
  // Not awaited: the window must not wait for a model.
  void running.start();
}

export function deactivate(): Promise<void> | undefined {
  return server?.stop();
}

async function changed(event: vscode.ConfigurationChangeEvent, running: Server): Promise<void> {
  // The server's own options reach it by themselves: it has asked to be told of them.
  if (event.affectsConfiguration('codekv.command')) { await running.restart(); }
}
