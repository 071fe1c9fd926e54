/**
 * The ids that OpenAI gives to a response and its items: a prefix and 50 hexadecimal digits. Source: 644 recorded answers of 2026. The
 * digits are 16 of the response's own, `00`, eight of the Unix time in seconds (an item's: when it began), and 24 that look like a
 * UUID's end; an answer's ids share the first 16 and the group behind the time.
 */
export class ResponseIds {
  readonly #random: () => number;
  readonly #head: string;
  readonly #group: string;

  /** `random` is uniform in [0, 1). */
  constructor(random: () => number, head?: string, group?: string) {
    this.#random = random;
    this.#head = head ?? `0${this.#digits(15)}`;
    this.#group = group ?? `81${this.#oneOf("9a")}${this.#digits(1)}`;
  }

  /** Further ids of the response that has this one; where another server gave it, ids of their own. */
  static of(responseId: string, random: () => number): ResponseIds {
    const [, head, group] = /^resp_([0-9a-f]{16})0[01][0-9a-f]{12}([0-9a-f]{4})[0-9a-f]{16}$/.exec(responseId) ?? [];
    return new ResponseIds(random, head, group);
  }

  /** `created`: Unix time in seconds. */
  response(created: number): string {
    return this.#id("resp_", created);
  }

  item(prefix: string, began: number): string {
    return this.#id(prefix, began);
  }

  #id(prefix: string, time: number): string {
    const seconds = Math.max(0, Math.floor(time)).toString(16).padStart(8, "0").slice(-8);
    const random = `${this.#digits(3)}${this.#oneOf("048c")}`;
    return `${prefix}${this.#head}00${seconds}${random}${this.#group}${this.#oneOf("89ab")}${this.#digits(15)}`;
  }

  #digits(count: number): string {
    let text = "";
    for (let i = 0; i < count; i++) text += Math.floor(this.#random() * 16).toString(16);
    return text;
  }

  #oneOf(characters: string): string {
    return characters.charAt(Math.floor(this.#random() * characters.length));
  }
}
