import { FailureError } from "../core/failure.ts";
import { tooManyUnknown } from "./request/refusals.ts";
import { maxUnknownMembers } from "./request/shapes.ts";

/**
 * The limits on a request's body, far beyond any real request. Without them, reading a body of a few megabytes may take seconds and
 * gigabytes. Documented in docs/serving.md.
 */
export const bodyLimits = {
  /** Nested objects and lists. */
  depth: 1000,
  objectsAndLists: 100_000,
  members: 100_000,
  /** Including the names of members. */
  strings: 300_000,
  /** List items and members: a prompt of token ids has a million. */
  values: 2_000_000,
} as const;

/** The maximum number of members of the body's root object: no API has half as many. */
const maxRootMembers = 2 * maxUnknownMembers;

const words: Readonly<Record<keyof typeof bodyLimits, string>> = {
  depth: "levels of objects and lists within each other",
  objectsAndLists: "objects and lists",
  members: "members of objects",
  strings: "strings",
  values: "values",
};

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts the content of a JSON text before it is parsed, in one pass with constant memory. For a text that is not JSON the counts are
 * meaningless, and the parser fails later.
 */
export class BodyCounter {
  #inString = false;
  #escaped = false;
  #depth = 0;
  #objectsAndLists = 0;
  #members = 0;
  #rootMembers = 0;
  #strings = 0;
  #commas = 0;

  /** Counts the next bytes (UTF-8). Throws `FailureError` 400 as soon as a limit is exceeded. */
  add(bytes: Uint8Array): void {
    // Local variables: writing fields for every byte would take three times as long.
    let [inString, escaped, depth, deepest] = [this.#inString, this.#escaped, this.#depth, 0];
    let [objectsAndLists, members, rootMembers, strings, commas] = [0, 0, 0, 0, 0];
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) inString = false;
        continue;
      }
      switch (byte) {
        case quote:
          inString = true;
          strings++;
          break;
        case comma:
          commas++;
          break;
        case colon:
          members++;
          if (depth === 1) rootMembers++;
          break;
        case openList:
        case openObject:
          objectsAndLists++;
          if (++depth > deepest) deepest = depth;
          break;
        case closeList:
        case closeObject:
          depth--;
      }
    }
    [this.#inString, this.#escaped, this.#depth] = [inString, escaped, depth];
    check("depth", deepest);
    check("objectsAndLists", (this.#objectsAndLists += objectsAndLists));
    check("members", (this.#members += members));
    if ((this.#rootMembers += rootMembers) > maxRootMembers) throw tooManyUnknown();
    check("strings", (this.#strings += strings));
    check("values", (this.#commas += commas) + 1);
  }

  /** Returns a counter that has counted the same. */
  copy(): BodyCounter {
    const copy = new BodyCounter();
    copy.#inString = this.#inString;
    copy.#escaped = this.#escaped;
    copy.#depth = this.#depth;
    copy.#objectsAndLists = this.#objectsAndLists;
    copy.#members = this.#members;
    copy.#rootMembers = this.#rootMembers;
    copy.#strings = this.#strings;
    copy.#commas = this.#commas;
    return copy;
  }

  /** Ends a text. The next one is counted as well. */
  endText(): void {
    [this.#inString, this.#escaped, this.#depth] = [false, false, 0];
  }
}

function check(what: keyof typeof bodyLimits, count: number): void {
  const limit = bodyLimits[what];
  if (count <= limit) return;
  throw new FailureError({
    message: `The request body has more than ${limit} ${words[what]}.`,
    status: 400,
    kind: "invalid-request",
    param: null,
    code: "request_too_large",
  });
}
