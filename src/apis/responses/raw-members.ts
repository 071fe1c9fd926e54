import { valuePhrase } from "../request/issue-failure.ts";
import { mostParts } from "../request/size-limits.ts";
import { arrayTooLong, invalidType, missingParameter, unsupportedEnumValue } from "../request/refusals.ts";

/** The members of one object of a request, read one by one; what is wrong is told with its whole path. A null is no value. */
export class RawMembers {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;

  /** Throws `FailureError` where `value` is no object. */
  constructor(value: unknown, path: string) {
    if (value === undefined) throw missingParameter(path);
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw invalidType(path, "an object", valuePhrase(value));
    }
    this.value = value as Readonly<Record<string, unknown>>;
    this.path = path;
  }

  at(name: string): string {
    return `${this.path}.${name}`;
  }

  has(name: string): boolean {
    return (this.value[name] ?? null) !== null;
  }

  string(name: string): string {
    return this.optionalString(name) ?? this.#missing(name, "a string");
  }

  optionalString(name: string): string | undefined {
    const value = this.value[name] ?? undefined;
    if (value === undefined || typeof value === "string") return value;
    throw invalidType(this.at(name), "a string", valuePhrase(value));
  }

  optionalBoolean(name: string): boolean | undefined {
    const value = this.value[name] ?? undefined;
    if (value === undefined || typeof value === "boolean") return value;
    throw invalidType(this.at(name), "a boolean", valuePhrase(value));
  }

  /** One of these words. */
  word<Word extends string>(name: string, words: readonly Word[]): Word {
    const value = this.string(name);
    const word = words.find((known) => known === value);
    if (word === undefined) throw unsupportedEnumValue(this.at(name), value, words);
    return word;
  }

  list(name: string): RawMembers[] {
    return this.optionalList(name) ?? this.#missing(name, "an array of objects");
  }

  optionalList(name: string): RawMembers[] | undefined {
    const value = this.value[name] ?? undefined;
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw invalidType(this.at(name), "an array of objects", valuePhrase(value));
    if (value.length > mostParts) throw arrayTooLong(this.at(name), mostParts, value.length);
    return value.map((element, index) => new RawMembers(element, `${this.at(name)}[${index}]`));
  }

  /** A text, or parts. */
  textOrList(name: string): string | RawMembers[] {
    const value = this.value[name] ?? undefined;
    if (typeof value === "string") return value;
    if (Array.isArray(value)) return this.list(name);
    if (value === undefined) return this.#missing(name, stringOrList);
    throw invalidType(this.at(name), stringOrList, valuePhrase(value));
  }

  object(name: string): RawMembers {
    return new RawMembers(this.value[name], this.at(name));
  }

  optionalObject(name: string): RawMembers | undefined {
    return this.has(name) ? this.object(name) : undefined;
  }

  #missing(name: string, expected: string): never {
    if (this.value[name] === null) throw invalidType(this.at(name), expected, "null");
    throw missingParameter(this.at(name));
  }
}

const stringOrList = "one of a string or array of objects";
