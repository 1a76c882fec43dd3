// What the server says about itself, and how that reads in a status bar.
// Pure: knows neither the editor nor the connection.

export type State = 'starting' | 'loading' | 'ready' | 'working' | 'paused' | 'error' | 'stopped';

export interface Last {
  readonly totalMs?: number;
  readonly exact?: number;
  readonly restored?: number;
  readonly moved?: number;
  readonly computed?: number;
  readonly generated?: number;
}

export interface Status {
  readonly state: State;
  readonly message: string;
  readonly model: string;
  readonly last: Last;
}

/** Says what the editor knows by itself, when no server can tell. */
export function localStatus(state: State, message = ''): Status {
  return { state, message, model: '', last: {} };
}

const SERVER_STATES: ReadonlySet<string> = new Set(['loading', 'ready', 'working', 'paused', 'error']);

/** Reads a status message; whatever is missing or malformed is left out. */
export function parseStatus(value: unknown): Status {
  const fields = asRecord(value);
  const state = asText(fields['state']).toLowerCase();
  return {
    state: SERVER_STATES.has(state) ? (state as State) : 'ready',
    message: asText(fields['message']),
    model: asText(fields['model']),
    last: parseLast(fields['last']),
  };
}

function parseLast(value: unknown): Last {
  const fields = asRecord(value);
  const last: Record<string, number> = {};
  const put = (name: keyof Last, raw: unknown) => {
    if (typeof raw === 'number' && Number.isFinite(raw)) { last[name] = raw; }
  };
  put('totalMs', fields['total_ms']);
  for (const name of ['exact', 'restored', 'moved', 'computed', 'generated'] as const) { put(name, fields[name]); }
  return last;
}

/** The status bar's text; tests and users wait for `codekv: ready`. */
export function barText(status: Status): string {
  const icon = status.state === 'loading' || status.state === 'starting' ? '$(sync~spin) ' : '';
  return `${icon}codekv: ${status.state}`;
}

/** One line each: state, model, last latency, what the cache saved. */
export function tooltipLines(status: Status): string[] {
  const lines = [status.message ? `${status.state}: ${status.message}` : status.state];
  if (status.model) { lines.push(`Model: ${status.model}`); }
  const { totalMs, exact, restored, moved, computed, generated } = status.last;
  if (totalMs !== undefined) { lines.push(`Last completion: ${Math.round(totalMs)} ms`); }
  const counts = Object.entries({ exact, restored, moved, computed })
    .flatMap(([name, count]) => (count === undefined ? [] : [`${count} ${name}`]));
  if (counts.length > 0) { lines.push(`Context tokens: ${counts.join(', ')}`); }
  if (generated !== undefined) { lines.push(`Generated tokens: ${generated}`); }
  return lines;
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
