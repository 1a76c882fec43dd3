// The status bar item.

import * as vscode from 'vscode';
import { barText, localStatus, tooltipLines, type Status } from './status';

/** Shorter work is not shown: the text would flicker with every keystroke. */
const SHOW_WORKING_AFTER_MS = 400;

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('codekv.status', vscode.StatusBarAlignment.Right, 100);
  private status = localStatus('starting');
  private later: NodeJS.Timeout | undefined;

  constructor(menuCommand: string) {
    this.item.name = 'codekv';
    this.item.command = menuCommand;
    this.draw();
    this.item.show();
  }

  get current(): Status {
    return this.status;
  }

  show(next: Status): void {
    clearTimeout(this.later);
    // A message may leave out the model or the last counts; they have not changed then.
    const last = Object.keys(next.last).length > 0 ? next.last : this.status.last;
    this.status = { ...next, model: next.model || this.status.model, last };
    void vscode.commands.executeCommand('setContext', 'codekv.paused', next.state === 'paused');
    if (next.state === 'working') {
      this.later = setTimeout(() => this.draw(), SHOW_WORKING_AFTER_MS);
    } else {
      this.draw();
    }
  }

  dispose(): void {
    clearTimeout(this.later);
    this.item.dispose();
  }

  private draw(): void {
    this.item.text = barText(this.status);
    const tooltip = new vscode.MarkdownString();
    tooltipLines(this.status).forEach((line, at) => tooltip.appendText(at === 0 ? `codekv ${line}` : line).appendMarkdown('\n\n'));
    this.item.tooltip = tooltip;
    // For screen readers, which see no tooltip.
    this.item.accessibilityInformation = { label: `codekv ${tooltipLines(this.status).join('; ')}`, role: 'button' };
    const failed = this.status.state === 'error' || this.status.state === 'stopped';
    this.item.backgroundColor = failed ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
  }
}
