// Asks again for ghost text that the editor has given up by itself.
//
// When the suggestion list opens late and finds nothing, the editor cancels the request
// for ghost text that is under way and makes no other: an answer that takes longer than
// about 0.7 s would never be seen.

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

const TRIGGER = 'editor.action.inlineSuggest.trigger';
/** The editor's own next request, if there is one, comes sooner. */
const WAIT_MS = 60;

export class Retry {
  private newest = 0;
  private retried = '';
  private isRetrying = false;

  readonly provideInlineCompletionItems: NonNullable<Middleware['provideInlineCompletionItems']> =
    (document, position, context, token, next) => {
      const number = ++this.newest;
      const place = `${document.uri}:${document.version}:${position.line}:${position.character}`;
      const isAutomatic = this.isRetrying || context.triggerKind === vscode.InlineCompletionTriggerKind.Automatic;
      this.isRetrying = false;
      const watch = token.onCancellationRequested(() => {
        setTimeout(() => {
          if (isAutomatic && number === this.newest && isStillAt(document, place)) { this.again(place); }
        }, WAIT_MS);
      });
      const triggerKind = isAutomatic ? vscode.InlineCompletionTriggerKind.Automatic : context.triggerKind;
      const answer = Promise.resolve(next(document, position, { ...context, triggerKind }, token));
      return answer.finally(() => watch.dispose());
    };

  /** Once for each place: a person who has pressed Escape twice means it. */
  private again(place: string): void {
    if (place === this.retried) { return; }
    this.retried = place;
    this.isRetrying = true;
    void vscode.commands.executeCommand(TRIGGER);
  }
}

function isStillAt(document: vscode.TextDocument, place: string): boolean {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document !== document) { return false; }
  const { line, character } = editor.selection.active;
  return `${document.uri}:${document.version}:${line}:${character}` === place;
}
