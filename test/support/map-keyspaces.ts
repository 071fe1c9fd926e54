import type { Assembled, Keyspace } from "../../src/wire/apis/port-state.ts";

/** The texts of one client, in a map. */
export class MapKeyspace implements Keyspace {
  readonly texts = new Map<string, string>();

  async get(key: string): Promise<string | undefined> {
    return this.texts.get(key);
  }

  async set(key: string, text: string | Iterable<string>): Promise<void> {
    this.texts.set(key, typeof text === "string" ? text : [...text].join(""));
  }

  async readFrom(key: string, from: number): Promise<{ text: string; size: number } | undefined> {
    const text = this.texts.get(key);
    if (text === undefined) return undefined;
    const bytes = Buffer.from(text);
    return { text: bytes.subarray(from).toString(), size: bytes.length };
  }

  async append(key: string, text: string): Promise<boolean> {
    const before = this.texts.get(key);
    if (before !== undefined) this.texts.set(key, before + text);
    return before !== undefined;
  }

  async delete(key: string): Promise<boolean> {
    return this.texts.delete(key);
  }
}

/** Remembers everything; the texts are numbers. */
export class MapAssembled implements Assembled {
  readonly values = new Map<string, object>();
  #last = 0;

  get(key: string): object | undefined {
    return this.values.get(key);
  }

  set(key: string, value: object): void {
    this.values.set(key, value);
  }

  delete(key: string): void {
    this.values.delete(key);
  }

  unique(): string {
    return String(++this.#last);
  }
}
