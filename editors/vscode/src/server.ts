// The running server: its process, its connection, its status.

import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { LanguageClient, RevealOutputChannelOn, State as ClientState, TransportKind, type LanguageClientOptions } from 'vscode-languageclient/node';
import { serverSettings } from './configuration';
import type { Launcher } from './launch';
import { Retry } from './retry';
import { section } from './settings';
import { localStatus, parseStatus, type Status } from './status';

const DOCUMENTS = ['file', 'untitled', 'vscode-notebook-cell'].map((scheme) => ({ scheme }));

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private turn: Promise<void> = Promise.resolve();
  private readonly changed = new vscode.EventEmitter<Status>();
  readonly onStatus = this.changed.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly launcher: Launcher,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  start(): Promise<void> {
    return this.inTurn(() => this.startNow());
  }

  restart(): Promise<void> {
    return this.inTurn(async () => { await this.stopNow(); await this.startNow(); });
  }

  stop(): Promise<void> {
    return this.inTurn(() => this.stopNow());
  }

  /** Runs one of the server's own commands. */
  async command(name: string, ...args: unknown[]): Promise<unknown> {
    return this.running().sendRequest('workspace/executeCommand', { command: name, arguments: args });
  }

  /** Everything the server tells about itself, as it comes. */
  async report(): Promise<unknown> {
    return this.running().sendRequest('codekv/status', {});
  }

  /** Sends the user's settings; without a server there is nothing to do. */
  private async pushSettings(): Promise<void> {
    if (this.client?.isRunning()) {
      const settings = { codekv: serverSettings(this.context) };
      await this.client.sendNotification('workspace/didChangeConfiguration', { settings });
    }
  }

  async focus(editor: vscode.TextEditor | undefined): Promise<void> {
    if (!this.client?.isRunning()) { return; }
    const known = editor && DOCUMENTS.some(({ scheme }) => scheme === editor.document.uri.scheme);
    const params = known ? { textDocument: { uri: this.client.code2ProtocolConverter.asUri(editor.document.uri) } } : {};
    await this.client.sendNotification('textDocument/didFocus', params);
  }

  dispose(): void {
    this.changed.dispose();
  }

  private running(): LanguageClient {
    if (!this.client?.isRunning()) { throw new Error('the server is not running; use "codekv: Restart Server"'); }
    return this.client;
  }

  /** One start or stop at a time, in the order asked for. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(work, work);
    return this.turn;
  }

  private async startNow(): Promise<void> {
    if (this.client) { return; }
    this.changed.fire(localStatus('starting'));
    const [command, ...args] = this.launcher.command() ?? [];
    if (!command) {
      this.changed.fire(localStatus('stopped', 'the server is not installed'));
      void this.launcher.offer().then((made) => (made ? this.start() : undefined));
      return;
    }
    this.log.info(`starting ${[command, ...args].join(' ')}`);
    const client = new LanguageClient('codekv', 'codekv', { command, args, transport: TransportKind.stdio, options: { cwd: homedir() } }, this.options());
    this.client = client;
    client.onNotification('codekv/didChangeStatus', (params: unknown) => this.changed.fire(parseStatus(params)));
    client.onDidChangeState(({ newState }) => {
      if (newState === ClientState.Stopped && this.client === client) { this.changed.fire(localStatus('stopped', 'the server ended')); }
      if (newState === ClientState.Starting) { this.changed.fire(localStatus('starting')); }
      if (newState === ClientState.Running) { void this.greet(client); }
    });
    try {
      await client.start();
    } catch (error) {
      await this.failed(client, command, error);
    }
  }

  /** A server that has just come up: also one that was started again after a crash. */
  private async greet(client: LanguageClient): Promise<void> {
    try {
      this.changed.fire(parseStatus(await client.sendRequest('codekv/status', {})));
      await this.focus(vscode.window.activeTextEditor);
    } catch (error) {
      this.log.warn(`status: ${String(error)}`);
      this.changed.fire(localStatus('ready'));
    }
  }

  private async failed(client: LanguageClient, command: string, error: unknown): Promise<void> {
    this.client = undefined;
    await client.dispose().catch(() => undefined);
    const message = `the server did not start (${command}): ${error instanceof Error ? error.message : String(error)}`;
    this.log.error(message);
    this.changed.fire(localStatus('error', message));
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.log.warn(`stopping: ${String(error)}`);
    }
    if (client) { this.changed.fire(localStatus('stopped')); }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: DOCUMENTS,
      initializationOptions: () => serverSettings(this.context),
      outputChannel: this.log,
      // The log is there to be opened; a completion tool must not push itself forward.
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        provideInlineCompletionItems: new Retry().provideInlineCompletionItems,
        workspace: {
          configuration: ({ items }) => items.map((item) =>
            section(serverSettings(this.context, item.scopeUri ? vscode.Uri.parse(item.scopeUri) : undefined), item.section)),
          didChangeConfiguration: () => this.pushSettings(),
        },
      },
    };
  }
}
