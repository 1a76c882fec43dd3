// Words.
import { read } from "fs";

const LIMIT = 10;

/** Counts. */
export function count(text, { limit = LIMIT } = {}) {
  const clean = (word) => {
    return word.toLowerCase();
  };
  const help = `
function notOne() {
}
`;
  return text.split(" ").map(clean);
}

export const total = async (words) => {
  let sum = 0;
  for (const word of words) {
    sum += word.length;
  }
  return sum;
};

class Words extends Map {
  #limit = 1;

  constructor(
    text,
    options,
  ) {
    super(count(text));
  }

  static of(text) {
    if (!text) {
      return null;
    }
    return new Words(text);
  }

  get size() {
    return this.#limit;
  }
}

exports.parse = function (text) {
  return JSON.parse(text);
};

describe("words", () => {
  it("counts", () => {
    expect(count("a")).toBe(1);
  });
});
