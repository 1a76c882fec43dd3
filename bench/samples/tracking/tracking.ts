/** The client of the depot's tracking page: asks the server and shows what it says. */

export type Status =
  | "announced"
  | "received"
  | "sorted"
  | "loaded"
  | "delivered"
  | "returned";

export interface TrackingEvent {
  status: Status;
  at: string;
  note?: string;
}

export interface Parcel {
  id: string;
  city: string;
  weightGrams: number;
  isExpress: boolean;
  events: TrackingEvent[];
}

export interface ClientOptions {
  baseUrl: string;
  retries?: number;
  timeoutMs?: number;
  fetch?: typeof fetch;
}

const STATUSES: readonly Status[] = [
  "announced",
  "received",
  "sorted",
  "loaded",
  "delivered",
  "returned",
];
const FIRST_DELAY_MS = 180;
const LONGEST_DELAY_MS = 7_500;
const RETRIED_CODES = new Set([408, 425, 429, 500, 502, 503, 504]);

export class TrackingError extends Error {
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.name = "TrackingError";
    this.code = code;
  }

  get isRetried(): boolean {
    return RETRIED_CODES.has(this.code);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStatus(value: unknown): value is Status {
  return typeof value === "string" && STATUSES.includes(value as Status);
}

function isEvent(value: unknown): value is TrackingEvent {
  if (!isRecord(value)) {
    return false;
  }
  return isStatus(value.status) && typeof value.at === "string";
}

export function parseParcel(value: unknown): Parcel {
  if (!isRecord(value)) {
    throw new TypeError("a parcel must be an object");
  }
  const { id, city, weight_g: weightGrams, express, events } = value;
  if (typeof id !== "string" || typeof city !== "string") {
    throw new TypeError("a parcel must have an id and a city");
  }
  if (typeof weightGrams !== "number" || !Number.isFinite(weightGrams)) {
    throw new TypeError(`${id}: the weight is not a number`);
  }
  if (!Array.isArray(events) || !events.every(isEvent)) {
    throw new TypeError(`${id}: the events cannot be read`);
  }
  return { id, city, weightGrams, isExpress: express === true, events };
}

/** Milliseconds to wait before attempt `attempt`: doubled, capped, and jittered. */
export function delayBefore(attempt: number, random: () => number = Math.random): number {
  const doubled = FIRST_DELAY_MS * 2 ** Math.max(0, attempt - 1);
  const capped = Math.min(doubled, LONGEST_DELAY_MS);
  return Math.round(capped * (0.6 + 0.4 * random()));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export class TrackingClient {
  private readonly baseUrl: string;
  private readonly retries: number;
  private readonly timeoutMs: number;
  private readonly send: typeof fetch;
  private readonly cache = new Map<string, Parcel>();

  constructor(options: ClientOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, "");
    this.retries = options.retries ?? 3;
    this.timeoutMs = options.timeoutMs ?? 4_000;
    this.send = options.fetch ?? fetch;
  }

  async parcel(id: string): Promise<Parcel> {
    const cached = this.cache.get(id);
    const value = await this.get(`/parcels/${encodeURIComponent(id)}`);
    const parcel = parseParcel(value);
    if (cached !== undefined) {
      parcel.events = mergeEvents(cached.events, parcel.events);
    }
    this.cache.set(id, parcel);
    return parcel;
  }

  async parcels(city: string, limit = 50): Promise<Parcel[]> {
    const query = new URLSearchParams({ city, limit: String(limit) });
    const value = await this.get(`/parcels?${query}`);
    if (!Array.isArray(value)) {
      throw new TypeError("the server did not answer with a list");
    }
    return value.map(parseParcel);
  }

  async search(text: string): Promise<string[]> {
    const query = new URLSearchParams({ q: text.trim() });
    const value = await this.get(`/search?${query}`);
    if (!Array.isArray(value)) {
      throw new TypeError("the server did not answer with a list");
    }
    return value.filter((each): each is string => typeof each === "string");
  }

  private async get(path: string): Promise<unknown> {
    let last: TrackingError | undefined;
    for (let attempt = 0; attempt <= this.retries; attempt += 1) {
      if (attempt > 0) {
        await sleep(delayBefore(attempt));
      }
      try {
        return await this.once(path);
      } catch (error) {
        if (!(error instanceof TrackingError) || !error.isRetried) {
          throw error;
        }
        last = error;
      }
    }
    throw last ?? new TrackingError(`${path}: no answer`, 504);
  }

  private async once(path: string): Promise<unknown> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.timeoutMs);
    try {
      const response = await this.send(`${this.baseUrl}${path}`, {
        headers: { accept: "application/json" },
        signal: controller.signal,
      });
      if (!response.ok) {
        throw new TrackingError(`${path}: ${response.statusText}`, response.status);
      }
      return await response.json();
    } finally {
      clearTimeout(timer);
    }
  }
}

/** All events of two lists once, in order of time; the newer list wins over notes. */
export function mergeEvents(
  older: readonly TrackingEvent[],
  newer: readonly TrackingEvent[],
): TrackingEvent[] {
  const byKey = new Map<string, TrackingEvent>();
  for (const event of [...older, ...newer]) {
    byKey.set(`${event.at} ${event.status}`, event);
  }
  return [...byKey.values()].sort((a, b) => a.at.localeCompare(b.at));
}

export function currentStatus(parcel: Parcel): Status {
  return parcel.events.at(-1)?.status ?? "announced";
}

export function isFinal(status: Status): boolean {
  return status === "delivered" || status === "returned";
}

export function formatWeight(grams: number): string {
  if (grams < 1_000) {
    return `${grams} g`;
  }
  return `${(grams / 1_000).toFixed(grams < 10_000 ? 2 : 1)} kg`;
}

export function formatEvent(event: TrackingEvent, locale = "en-GB"): string {
  const at = new Date(event.at);
  const day = at.toLocaleDateString(locale, { day: "2-digit", month: "short" });
  const time = at.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
  const note = event.note ? ` (${event.note})` : "";
  return `${day} ${time}  ${event.status}${note}`;
}

export function formatParcel(parcel: Parcel): string {
  const head = `${parcel.id} to ${parcel.city}, ${formatWeight(parcel.weightGrams)}`;
  const lines = parcel.events.map((event) => `  ${formatEvent(event)}`);
  return [parcel.isExpress ? `${head}, express` : head, ...lines].join("\n");
}
