// The user's settings in the server's own nesting. Pure.
//
// Only what the user has set is sent: a default sent from here would win over the
// project's codekv.toml.

export type Nested = { [key: string]: unknown };

/** Settings that are the extension's own business and never reach the server. */
const LOCAL: ReadonlySet<string> = new Set(['command', 'python', 'installFrom', 'torchIndex', 'packages']);

export interface Inspected {
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

/** The value the user set, the nearest one first; undefined if none. */
export function explicitValue(found: Inspected | undefined): unknown {
  return found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
}

/** Builds `{model: {name: …}}` from `model.name` and so on, skipping what is unset. */
export function nest(keys: Iterable<string>, valueOf: (key: string) => unknown): Nested {
  const root: Nested = {};
  for (const key of keys) {
    const value = LOCAL.has(key) ? undefined : normal(key, valueOf(key));
    if (value === undefined) { continue; }
    const path = key.split('.');
    const leaf = path.pop() ?? key;
    let node = root;
    for (const part of path) { node = (node[part] ??= {}) as Nested; }
    node[leaf] = value;
  }
  return root;
}

/** Looks up `codekv`, `codekv.model`, … as a server's configuration request names it. */
export function section(settings: Nested, name: string | undefined | null): unknown {
  if (!name) { return { codekv: settings }; }
  const [head, ...rest] = name.split('.');
  if (head !== 'codekv') { return null; }
  let node: unknown = settings;
  for (const part of rest) {
    if (typeof node !== 'object' || node === null) { return null; }
    node = (node as Nested)[part];
  }
  return node ?? null;
}

/** In the settings an empty text means "not set", and a number may be typed as text. */
function normal(key: string, value: unknown): unknown {
  if (value === '' || value === null) { return undefined; }
  if (key === 'completion.debounce_ms' && typeof value === 'string' && /^\d+$/.test(value)) { return Number(value); }
  return value;
}
