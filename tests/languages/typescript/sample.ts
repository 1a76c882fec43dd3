import { Store } from "./store";

export interface Options {
  limit: number;
  find(name: string): Store | undefined;
}

export type Names = Record<string, number>;

/* Counts. */
export function count<T extends string>(
  text: T,
  options: Options,
): Names {
  const names: Names = {};
  for (const word of text.split(" ")) {
    names[word] = (names[word] ?? 0) + 1;
  }
  return names;
}

@Injectable()
export abstract class Words<T> extends Store {
  private limit = 1;

  constructor(private readonly options: Options) {
    super();
  }

  @Input()
  public async load(name: string): Promise<T> {
    const found = await this.fetch(name);
    return found as T;
  }

  handler = (event: Event): void => {
    this.limit += 1;
  };

  abstract close(): void;
}

export enum Level {
  Low,
  High,
}

namespace Inner {
  export function help(): string {
    return `text
function notOne() {
`;
  }
}
