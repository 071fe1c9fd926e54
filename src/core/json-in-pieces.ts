/**
 * The same text as `JSON.stringify` makes of plain data (objects, lists, texts, numbers, booleans, null, undefined), in pieces of about
 * `size` characters, so that others have their turn while a large one is written. Each step takes about as long as `JSON.stringify` for a
 * piece. Throws `RangeError` where the value is nested too deeply.
 */
export function* jsonInPieces(value: unknown, size: number): Generator<string, void, undefined> {
  let held = "";
  for (const part of partsOf(value, size)) {
    held += part;
    if (held.length < size) continue;
    yield held;
    held = "";
  }
  if (held !== "") yield held;
}

/** Whether a value's JSON may be longer than `size` characters. Looks no further than it must. */
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
    // Two halves of a character would be escaped.
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
    // As many as make a piece are written together.
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

/** What `left` characters have left when a value is written; below 0: too few, however many. */
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
