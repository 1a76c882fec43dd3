// The statistics page: a read-only document, written anew each time it is asked for.

import * as vscode from 'vscode';
import { outline } from './report';
import type { Server } from './server';

const PAGE = vscode.Uri.parse('codekv-statistics:codekv statistics');

export class Statistics implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(PAGE.scheme, this);
  private text = '';
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {}

  provideTextDocumentContent(): string {
    return this.text;
  }

  async show(): Promise<void> {
    this.text = outline(await this.server.report());
    this.changed.fire(PAGE);
    const document = await vscode.workspace.openTextDocument(PAGE);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
