// Reads the user's settings from the editor.

import * as vscode from 'vscode';
import { explicitValue, nest, type Nested } from './settings';

/** The names of all settings, without the leading `codekv.`. */
function settingKeys(context: vscode.ExtensionContext): string[] {
  type Block = { properties?: Record<string, unknown> };
  const blocks = context.extension.packageJSON.contributes.configuration as Block[];
  return blocks.flatMap((block) => Object.keys(block.properties ?? {})).map((key) => key.replace(/^codekv\./, ''));
}

/** What the user has set, in the server's nesting. */
export function serverSettings(context: vscode.ExtensionContext, scope?: vscode.Uri): Nested {
  const config = vscode.workspace.getConfiguration('codekv', scope);
  return nest(settingKeys(context), (key) => explicitValue(config.inspect(key)));
}

export function local(): { command: string[]; python: string; installFrom: string } {
  const config = vscode.workspace.getConfiguration('codekv');
  return {
    command: config.get<string[]>('command', []),
    python: config.get('python', '').trim(),
    installFrom: config.get('installFrom', '').trim() || 'codekv',
  };
}

/** Stores the model where it is set now: the workspace if it has one, else the user. */
export async function setModel(name: string): Promise<void> {
  const config = vscode.workspace.getConfiguration('codekv');
  const inWorkspace = config.inspect('model.name')?.workspaceValue !== undefined;
  await config.update('model.name', name, inWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
}
