/** A part of a JSON text, as offsets. */
export interface JsonPlace {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the place of a path in a JSON text: the name of a member, or the element of an array. For a member that is missing, returns its
 * object. `text` must be valid JSON.
 *
 * @param path Names of members and positions in arrays, from the outermost.
 */
export function placeOfPath(text: string, path: readonly PropertyKey[]): JsonPlace {
  let at = skipSpace(text, 0);
  for (const [depth, name] of path.entries()) {
    const isArray = text[at] === "[";
    if (!isArray && text[at] !== "{") break;
    const found = findChild(text, at, name, isArray);
    if (!found) break;
    if (depth === path.length - 1 && found.name) return found.name;
    at = found.value;
  }
  return { start: at, end: endOfValue(text, at) };
}

interface Child {
  /** Absent for an element of an array. */
  readonly name?: JsonPlace;
  /** Offset of its value. */
  readonly value: number;
}

/** The child of the object or array at `open`. Of members with the same name, the last one, as `JSON.parse` does. */
function findChild(text: string, open: number, wanted: PropertyKey, isArray: boolean): Child | undefined {
  let found: Child | undefined;
  let at = skipSpace(text, open + 1);
  for (let index = 0; at < text.length && text[at] !== "]" && text[at] !== "}"; index++) {
    let name: JsonPlace | undefined;
    if (!isArray) {
      name = { start: at, end: endOfString(text, at) };
      at = skipSpace(text, skipSpace(text, name.end) + 1);
    }
    const key: unknown = name ? JSON.parse(text.slice(name.start, name.end)) : index;
    if (key === wanted) found = { ...(name && { name }), value: at };
    at = skipSpace(text, endOfValue(text, at));
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return found;
}

/** The offset after the value at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at) - 1;
    else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    else if (character !== "," && depth === 0 && /[^\s:]/.test(character ?? "")) at = endOfLiteral(text, at) - 1;
    if (depth <= 0) return depth < 0 ? at : at + 1;
  }
  return text.length;
}

function endOfLiteral(text: string, start: number): number {
  const literal = /[^\s,\]}]+/y;
  literal.lastIndex = start;
  return start + (literal.exec(text)?.[0].length ?? 1);
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && /\s/.test(text[at] ?? "")) at++;
  return at;
}
