// The server's status report as text. Pure.

/** Turns nested values into an indented outline, one value a line. */
export function outline(value: unknown, indent = ''): string {
  if (!isTable(value)) { return `${indent}${scalar(value)}\n`; }
  return entries(value).map(([name, each]) => {
    const flat = !isTable(each) || entries(each).length === 0;
    return flat ? `${indent}${name}: ${scalar(each)}\n` : `${indent}${name}:\n${outline(each, `${indent}  `)}`;
  }).join('');
}

type Table = Record<string, unknown> | readonly unknown[];

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null;
}

function entries(value: Table): [string, unknown][] {
  return Array.isArray(value) ? value.map((each, at) => [String(at + 1), each]) : Object.entries(value);
}

function scalar(value: unknown): string {
  if (typeof value === 'number' && !Number.isInteger(value)) { return value.toPrecision(4).replace(/\.?0+$/, ''); }
  return isTable(value) || value === null || value === undefined || value === '' ? '-' : String(value);
}
