import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";

/** Reads a value at a place of a file or of what the browser keeps. Throws `InvalidFile`. */
export type Reader<T> = (value: unknown, place: string) => T;

/** A value is not what was expected. The message names the place and both: `turns[3].text: expected a string, found 7`. */
export class InvalidFile extends Error {
  constructor(place: string, expected: string, found: unknown) {
    super(`${place}: expected ${expected}, found ${shown(found)}`);
    this.name = "InvalidFile";
  }
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isObject(value)) return "an object";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Returns the value of a file. Throws an error for people if it is not JSON. */
export function parsedFile(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The file is not valid JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

export const objectAt: Reader<JsonObject> = (value, place) => {
  if (!isObject(value)) throw new InvalidFile(place, "an object", value);
  return value;
};

export const textAt: Reader<string> = (value, place) => {
  if (typeof value !== "string") throw new InvalidFile(place, "a string", value);
  return value;
};

export const numberAt: Reader<number> = (value, place) => {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    throw new InvalidFile(place, "a number that is not negative", value);
  return value;
};

export function integerAt(min: number, max: number): Reader<number> {
  return (value, place) => {
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value);
    throw new InvalidFile(place, `an integer from ${min} to ${max}`, value);
  };
}

/** A word that is one of several. */
export function oneOf<T extends string>(words: readonly T[]): Reader<T> {
  return (value, place) => {
    const word = words.find((word) => word === value);
    if (word === undefined)
      throw new InvalidFile(place, `one of ${words.map((word) => `"${word}"`).join(", ")}`, value);
    return word;
  };
}

export function listOf<T>(item: Reader<T>): Reader<T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) throw new InvalidFile(place, "a list", value);
    return value.map((one, at) => item(one, `${place}[${at}]`));
  };
}

/** An object whose values are of one kind. */
export function recordOf<T>(item: Reader<T>): Reader<Record<string, T>> {
  return (value, place) => {
    const entries = Object.entries(objectAt(value, place));
    const at = (name: string): string => (name === "" ? `${place}[""]` : `${place}.${name}`);
    return Object.fromEntries(entries.map(([name, one]) => [name, item(one, at(name))]));
  };
}

/** A value that may be absent or null. */
export function optional<T>(read: Reader<T>): Reader<T | undefined> {
  return (value, place) => (value === undefined || value === null ? undefined : read(value, place));
}

/** An object with these members, each read by its reader. Others are ignored, and those that are undefined are left out. */
export function shape<T extends object>(readers: { readonly [Name in keyof T]-?: Reader<T[Name]> }): Reader<T> {
  return (value, place) => {
    const object = objectAt(value, place);
    const read = Object.entries(readers as Record<string, Reader<unknown>>).flatMap(([name, reader]) => {
      const member = reader(object[name], `${place}.${name}`);
      return member === undefined ? [] : [[name, member]];
    });
    return Object.fromEntries(read) as T;
  };
}
