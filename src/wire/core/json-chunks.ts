import type { Steps } from "./steps.ts";

/**
 * Serializes plain data (objects, arrays, strings, numbers, booleans, null, undefined) as `JSON.stringify` does, in chunks of about `size`
 * characters, so that other requests are served while a large value is serialized. Throws `RangeError` if the value is nested too deeply.
 */
export function* jsonChunks(value: unknown, size: number): Generator<string, void, undefined> {
  let chunk = "";
  for (const part of partsOf(value, size)) {
    chunk += part;
    if (chunk.length < size) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}

/** Joins chunks, one in each step. */
export function* joinChunks(chunks: Iterable<string, void, undefined>): Steps<string> {
  const read: string[] = [];
  for (const chunk of chunks) {
    read.push(chunk);
    yield;
  }
  return read.join("");
}

/** Whether a value's JSON may be longer than `size` characters. Stops as soon as this is known. */
export function isLong(value: unknown, size: number): boolean {
  return leftOf(value, size) < 0;
}

function* partsOf(value: unknown, size: number): Generator<string, void, undefined> {
  if (typeof value === "string" && isLong(value, size)) yield* partsOfText(value, size);
  else if (typeof value !== "object" || value === null) yield JSON.stringify(value) ?? "null";
  else if (!isLong(value, size)) yield JSON.stringify(value);
  else if (Array.isArray(value)) yield* partsOfList(value, size);
  else yield* partsOfObject(value as Readonly<Record<string, unknown>>, size);
}

function* partsOfText(text: string, size: number): Generator<string, void, undefined> {
  yield '"';
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + Math.max(size, 2), text.length);
    // Halves of a surrogate pair would be escaped.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

function* partsOfList(items: readonly unknown[], size: number): Generator<string, void, undefined> {
  yield "[";
  for (let at = 0; at < items.length;) {
    if (at > 0) yield ",";
    // Short items are serialized together.
    let end = at;
    for (let left = size; end < items.length; end++) {
      left = leftOf(items[end], left);
      if (left < 0) break;
    }
    if (end === at) yield* partsOf(items[end++], size);
    else yield JSON.stringify(items.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield "]";
}

function* partsOfObject(members: Readonly<Record<string, unknown>>, size: number): Generator<string, void, undefined> {
  yield "{";
  let isFirst = true;
  for (const name of Object.keys(members)) {
    const member = members[name];
    if (member === undefined) continue;
    if (!isFirst) yield ",";
    isFirst = false;
    yield* partsOf(name, size);
    yield ":";
    yield* partsOf(member, size);
  }
  yield "}";
}

/** The rest of `left` characters after a value is serialized; below 0: the value may be longer. */
function leftOf(value: unknown, left: number): number {
  if (typeof value === "string") return left - value.length - 3;
  if (typeof value !== "object" || value === null) return left - 8;
  let rest = left - 3;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && rest >= 0; at++) rest = leftOf(value[at], rest);
    return rest;
  }
  for (const name in value) {
    rest = leftOf((value as Readonly<Record<string, unknown>>)[name], rest - name.length - 4);
    if (rest < 0) break;
  }
  return rest;
}

function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}
