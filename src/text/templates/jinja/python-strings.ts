import type { UserText } from "../user-text.ts";

// Python's str methods. Texts may contain marks (see UserText), so single characters must be read with `user`. Offsets and lengths are in
// code points.

/** White space for `str.strip()` and `str.split()`; JavaScript's set is slightly different. */
export const space = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const leadingSpace = new RegExp(`^${space}+`);
const isSpace = new RegExp(space);
const lineEnd = /\r\n|[\n\r\v\f\x85\u2028\u2029]/g;
const word = new RegExp(`[^${space.slice(1)}+`, "g");

/** `chars`: the characters to strip; undefined for white space. */
export function stripStart(text: string, chars: string | undefined, user: UserText): string {
  if (chars === undefined) return text.replace(leadingSpace, "");
  const set = new Set(chars);
  const characters = user.characters(text);
  const kept = characters.findIndex((character) => !set.has(user.plain(character)));
  return kept === -1 ? "" : characters.slice(kept).join("");
}

export function stripEnd(text: string, chars: string | undefined, user: UserText): string {
  if (chars !== undefined) {
    const set = new Set(chars);
    const characters = user.characters(text);
    const last = characters.findLastIndex((character) => !set.has(user.plain(character)));
    return characters.slice(0, last + 1).join("");
  }
  return stripSpaceAtEnd(text);
}

/** `str.rstrip()`. Marks are not white space. */
export function stripSpaceAtEnd(text: string): string {
  let to = text.length;
  while (to > 0 && isSpace.test(text.charAt(to - 1))) to--;
  return text.slice(0, to);
}

export function strip(text: string, chars: string | undefined, user: UserText): string {
  return stripEnd(stripStart(text, chars, user), chars, user);
}

/** `limit`: the maximum number of splits; negative for no limit. `fromEnd`: splits at the last separators instead of the first. */
export function splitText(
  text: string,
  separator: string | null,
  limit: number,
  user: UserText,
  fromEnd = false,
): string[] {
  if (limit === 0 && separator !== null) return [text];
  if (separator === null) return splitAtSpace(text, limit, fromEnd);
  const { whole, places } = occurrences(text, separator, user);
  const kept = limit < 0 ? places : fromEnd ? places.slice(-limit) : places.slice(0, limit);
  const parts: string[] = [];
  let from = 0;
  for (const { start, end } of kept) {
    parts.push(whole.slice(from, start));
    from = end;
  }
  return [...parts, whole.slice(from)];
}

/** Splits at runs of white space, and strips both ends, except for white space that the limit leaves in the last part. */
function splitAtSpace(text: string, limit: number, fromEnd: boolean): string[] {
  const words = Array.from(text.matchAll(word), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }));
  const cuts = limit < 0 ? words.length : Math.min(limit, words.length);
  if (words.length <= cuts) return words.map(({ start, end }) => text.slice(start, end));
  if (fromEnd) {
    const first = words[words.length - cuts - 1];
    return [
      text.slice(words[0]?.start, first?.end),
      ...words.slice(words.length - cuts).map(({ start, end }) => text.slice(start, end)),
    ];
  }
  return [...words.slice(0, cuts).map(({ start, end }) => text.slice(start, end)), text.slice(words[cuts]?.start)];
}

export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let from = 0;
  for (const { 0: end, index } of text.matchAll(lineEnd)) {
    lines.push(text.slice(from, keepEnds ? index + end.length : index));
    from = index + end.length;
  }
  return from < text.length ? [...lines, text.slice(from)] : lines;
}

/** `limit`: the maximum number of replacements; negative for no limit. */
export function replace(text: string, old: string, by: string, limit: number, user: UserText): string {
  if (old === "") {
    const characters = user.characters(text);
    const places = limit < 0 ? characters.length + 1 : limit;
    const spread = characters.map((character, index) => (index < places ? by : "") + character).join("");
    return spread + (characters.length < places ? by : "");
  }
  return splitText(text, old, limit, user).join(by);
}

export function startsWith(text: string, start: string, user: UserText): boolean {
  return user.plain(text).startsWith(user.plain(start));
}

export function endsWith(text: string, end: string, user: UserText): boolean {
  return user.plain(text).endsWith(user.plain(end));
}

/** The offset in code points, or -1. */
export function find(text: string, part: string, fromEnd: boolean, user: UserText): number {
  const plain = user.plain(text);
  const wanted = user.plain(part);
  const at = fromEnd ? plain.lastIndexOf(wanted) : plain.indexOf(wanted);
  return at <= 0 ? at : Array.from(plain.slice(0, at)).length;
}

export function count(text: string, part: string, user: UserText): number {
  const plain = user.plain(text);
  return part === "" ? Array.from(plain).length + 1 : plain.split(user.plain(part)).length - 1;
}

/** Converts the first letter of each word to upper case, all others to lower case. */
export function titleCase(text: string): string {
  return text.replace(/\p{L}[\p{L}\p{M}]*/gu, capitalize);
}

export function capitalize(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
}

/** `str.format` with the fields `{}`, `{0}` and `{name}`. Format specifications are not supported. */
export function format(text: string, positional: readonly string[], named: ReadonlyMap<string, string>): string {
  let next = 0;
  return text.replace(/\{\{|\}\}|\{(\w*)\}|\{[^}]*\}?/g, (field, name?: string) => {
    if (field === "{{" || field === "}}") return field.slice(1);
    if (name === undefined) throw new SyntaxError(`str.format: cannot fill the field ${field}`);
    const value = name === "" ? positional[next++] : /^\d+$/.test(name) ? positional[Number(name)] : named.get(name);
    if (value === undefined) throw new RangeError(`str.format: no value for the field ${field}`);
    return value;
  });
}

/**
 * Finds all occurrences of a part in a text. The offsets are for `whole`: the text with a mark for each marked character, since the part
 * may begin or end inside a marked text.
 */
function occurrences(
  text: string,
  part: string,
  user: UserText,
): { whole: string; places: { start: number; end: number }[] } {
  if (part === "") throw new RangeError("empty separator");
  const sought = user.plain(part);
  if (!user.hasMarks(text)) return { whole: text, places: allIn(text, sought) };
  const characters = user.characters(text);
  const offsets = new Map<number, number>();
  let plainLength = 0;
  let length = 0;
  for (const character of characters) {
    offsets.set(plainLength, length);
    plainLength += user.plain(character).length;
    length += character.length;
  }
  offsets.set(plainLength, length);
  const places = allIn(user.plain(text), sought).map(({ start, end }) => ({
    start: offsets.get(start) ?? 0,
    end: offsets.get(end) ?? length,
  }));
  return { whole: characters.join(""), places };
}

function allIn(text: string, part: string): { start: number; end: number }[] {
  const places: { start: number; end: number }[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    places.push({ start: at, end: at + part.length });
  }
  return places;
}
