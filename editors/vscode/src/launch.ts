// Decides which command starts the server, and offers to install one.

import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import { local } from './configuration';
import { createEnvironment, EnvironmentError, isOutdated, onPath, ownServer } from './environment';

export class Launcher {
  private readonly folder: string;
  private readonly installer: string;
  private installing: Promise<boolean> | undefined;
  private toldOfUpdate = false;

  constructor(context: vscode.ExtensionContext, private readonly log: vscode.LogOutputChannel) {
    this.folder = join(context.globalStorageUri.fsPath, 'server');
    this.installer = join(context.extensionPath, 'server', 'install.py');
  }

  /** The command line: the setting, else the own environment, else the search path. */
  command(): string[] | undefined {
    const configured = local().command;
    if (configured.length > 0) { return configured.length === 1 ? [...configured, 'serve'] : configured; }
    const own = ownServer(this.folder);
    if (own) { void this.offerUpdate(); }
    const found = own ?? onPath('codekv') ?? onPath('codekv', join(homedir(), '.local', 'bin'));
    return found ? [found, 'serve'] : undefined;
  }

  /** Asks, once, whether to renew an environment that an older extension has made. */
  private async offerUpdate(): Promise<void> {
    if (this.toldOfUpdate || this.installing || local().installFrom || !isOutdated(this.folder, dirname(this.installer))) { return; }
    this.toldOfUpdate = true;
    const answer = await vscode.window.showInformationMessage('codekv: the server is not the one of this extension.', 'Update Server');
    if (answer) { await vscode.commands.executeCommand('codekv.ui.install'); }
  }

  /** Asks whether to make an environment; resolves to whether there is one now. */
  async offer(): Promise<boolean> {
    const create = 'Create Environment';
    const settings = 'Open Settings';
    const answer = await vscode.window.showInformationMessage(
      'codekv: the server is not installed. Create a Python environment for it? Nothing else on this machine is changed.',
      create, settings);
    if (answer === settings) { await vscode.commands.executeCommand('workbench.action.openSettings', 'codekv.command'); }
    return answer === create && this.install();
  }

  /** Makes the environment anew, with progress; a second call joins the first. */
  install(): Promise<boolean> {
    this.installing ??= this.installNow().finally(() => { this.installing = undefined; });
    return this.installing;
  }

  private async installNow(): Promise<boolean> {
    const { python, installFrom, torchIndex, packages } = local();
    const title = 'codekv: installing the server';
    const work = async (progress: vscode.Progress<{ message: string }>, token: vscode.CancellationToken) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      const plan = { folder: this.folder, installer: this.installer, python, source: installFrom, torchIndex, packages, uv: onPath('uv') };
      await createEnvironment(plan, {
        step: (message) => { progress.report({ message }); this.log.info(message); },
        output: (line) => this.log.info(line),
        signal: abort.signal,
      });
    };
    try {
      await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, work);
      return true;
    } catch (error) {
      await this.explain(error);
      return false;
    }
  }

  private async explain(error: unknown): Promise<void> {
    if (error instanceof Error && error.name === 'AbortError') {
      this.log.info('installation cancelled');
      return;
    }
    const message = error instanceof EnvironmentError ? error.message : `The environment could not be made: ${String(error)}`;
    this.log.error(message);
    const answer = await vscode.window.showErrorMessage(`codekv: ${message}`, 'Show Log', 'Open Settings');
    if (answer === 'Show Log') { this.log.show(); }
    if (answer === 'Open Settings') { await vscode.commands.executeCommand('workbench.action.openSettings', 'codekv'); }
  }
}
