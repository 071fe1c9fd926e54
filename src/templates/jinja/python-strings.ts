import type { UserText } from "../user-text.ts";

// Python's str methods on the text of templates. Texts may hold marks (see UserText), so nothing here may look at single characters
// of a text without asking `user`. Offsets and lengths count code points.

/** What `str.strip()` and `str.split()` take for white space; JavaScript's set differs at the edges. */
const space = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const leadingSpace = new RegExp(`^${space}+`);
const isSpace = new RegExp(space);
const lineEnd = /\r\n|[\n\r\v\f\x85\u2028\u2029]/g;
const spaceRun = new RegExp(`${space}+`, "g");

/** `chars`: which characters to take off; absent: white space. */
export function stripStart(text: string, chars?: string): string {
  if (chars === undefined) return text.replace(leadingSpace, "");
  const set = new Set(chars);
  let from = 0;
  for (const character of text) {
    if (!set.has(character)) break;
    from += character.length;
  }
  return text.slice(from);
}

export function stripEnd(text: string, chars?: string): string {
  let to = text.length;
  const set = chars === undefined ? null : new Set(chars);
  while (to > 0) {
    const wide = to > 1 && (text.codePointAt(to - 2) ?? 0) > 0xffff ? 2 : 1;
    const character = text.slice(to - wide, to);
    if (set === null ? !isSpace.test(character) : !set.has(character)) break;
    to -= wide;
  }
  return text.slice(0, to);
}

export function strip(text: string, chars?: string): string {
  return stripEnd(stripStart(text, chars), chars);
}

/** `limit`: at most so many cuts; negative: all. */
export function split(text: string, separator: string | null, limit: number, user: UserText): string[] {
  if (separator === null) return splitAtSpace(text, limit);
  const parts: string[] = [];
  let from = 0;
  for (const { start, end } of occurrences(text, separator, user)) {
    if (limit >= 0 && parts.length >= limit) break;
    parts.push(text.slice(from, start));
    from = end;
  }
  return [...parts, text.slice(from)];
}

/** As `split`, but the cuts are made from the end. */
export function splitFromEnd(text: string, separator: string | null, limit: number, user: UserText): string[] {
  if (limit < 0) return split(text, separator, limit, user);
  const cuts =
    separator === null
      ? Array.from(strip(text).matchAll(spaceRun), (match) => ({
          start: match.index,
          end: match.index + match[0].length,
        }))
      : [...occurrences(text, separator, user)];
  const whole = separator === null ? strip(text) : text;
  const parts: string[] = [];
  let from = 0;
  for (const { start, end } of limit === 0 ? [] : cuts.slice(-limit)) {
    parts.push(whole.slice(from, start));
    from = end;
  }
  return separator === null && whole === "" ? [] : [...parts, whole.slice(from)];
}

function splitAtSpace(text: string, limit: number): string[] {
  const parts: string[] = [];
  let rest = stripStart(text);
  while (rest !== "") {
    if (limit >= 0 && parts.length >= limit) return [...parts, rest];
    spaceRun.lastIndex = 0;
    const match = spaceRun.exec(rest);
    if (match === null) return [...parts, rest];
    parts.push(rest.slice(0, match.index));
    rest = rest.slice(spaceRun.lastIndex);
  }
  return parts;
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

/** `limit`: replace at most so many; negative: all. */
export function replace(text: string, old: string, by: string, limit: number, user: UserText): string {
  if (old === "") {
    const characters = user.characters(text);
    const places = limit < 0 ? characters.length + 1 : limit;
    const spread = characters.map((character, index) => (index < places ? by : "") + character).join("");
    return spread + (characters.length < places ? by : "");
  }
  return split(text, old, limit, user).join(by);
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

/** Each letter that follows no letter in upper case, all others in lower case. */
export function titleCase(text: string): string {
  return text.replace(/\p{L}[\p{L}\p{M}]*/gu, capitalize);
}

export function capitalize(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
}

/** `str.format` with the fields that templates use: `{}`, `{0}`, `{name}`; a format specification is not among them. */
export function format(text: string, positional: readonly string[], named: ReadonlyMap<string, string>): string {
  let next = 0;
  return text.replace(/\{\{|\}\}|\{(\w*)\}|\{[^}]*\}?/g, (field, name?: string) => {
    if (field === "{{" || field === "}}") return field.slice(1);
    if (name === undefined) throw new SyntaxError(`str.format: cannot fill the field ${field}`);
    const value = name === "" ? positional[next++] : /^\d+$/.test(name) ? positional[Number(name)] : named.get(name);
    if (value === undefined) throw new RangeError(`str.format: nothing to fill the field ${field} with`);
    return value;
  });
}

/** Where the text stands, under any spelling, from left to right. */
function* occurrences(text: string, part: string, user: UserText): Generator<{ start: number; end: number }> {
  if (part === "") throw new RangeError("empty separator");
  const spellings = user.spellings(part);
  let from = 0;
  for (;;) {
    let start = -1;
    let length = 0;
    for (const spelling of spellings) {
      const at = text.indexOf(spelling, from);
      if (at !== -1 && (start === -1 || at < start)) [start, length] = [at, spelling.length];
    }
    if (start === -1) return;
    from = start + length;
    yield { start, end: from };
  }
}
