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

/** The settings that are the extension's own; the user's alone, never a workspace's. */
export function local(): { command: string[]; python: string; installFrom: string; torchIndex: string; packages: string } {
  const config = vscode.workspace.getConfiguration('codekv');
  const text = (name: string) => config.get(name, '').trim();
  return {
    command: config.get<string[]>('command', []),
    python: text('python'),
    installFrom: text('installFrom'),
    torchIndex: text('torchIndex'),
    packages: text('packages'),
  };
}

/** Stores the model where it is set now: the workspace if it has one, else the user. */
export async function setModel(name: string): Promise<void> {
  const config = vscode.workspace.getConfiguration('codekv');
  const inWorkspace = config.inspect('model.name')?.workspaceValue !== undefined;
  await config.update('model.name', name, inWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
}
