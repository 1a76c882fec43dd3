// Which models the picker offers. Pure.

export interface Choice {
  readonly label: string;
  readonly description: string;
}

/** Offered when the server does not list any itself. */
const BUILT_IN: readonly Choice[] = [
  { label: 'qwen2.5-coder-0.5b', description: 'default; knows what follows the cursor' },
  { label: 'smollm2-135m', description: 'smallest; sees only what precedes the cursor' },
];

/** The server's `models`, or the built-in names; the present one is marked. */
export function choices(report: unknown, current: string): Choice[] {
  const listed = typeof report === 'object' && report !== null ? (report as { models?: unknown }).models : undefined;
  const models = Array.isArray(listed) ? listed.flatMap(choice) : [];
  return (models.length > 0 ? models : BUILT_IN).map((each) =>
    each.label === current ? { ...each, description: `in use; ${each.description}`.replace(/; $/, '') } : each);
}

function choice(value: unknown): Choice[] {
  if (typeof value === 'string') { return [{ label: value, description: '' }]; }
  const { name, description } = (value ?? {}) as { name?: unknown; description?: unknown };
  return typeof name === 'string' ? [{ label: name, description: typeof description === 'string' ? description : '' }] : [];
}
