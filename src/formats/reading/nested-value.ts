import { itemOf, propertyOf, typedValue, typesOf } from "./tool-types.ts";
import type { DeclaredTypes } from "./tool-types.ts";

/** Deeper is text. */
const deepest = 60;

/**
 * The JSON of a value in nested tags: `open`key`>`value…, closed by `open` + `/` key `>`. Where the schema allows a string, the markup is
 * the string. `item` names the members of an array.
 */
export function nestedValue(
  text: string,
  open: string,
  item: string,
  declared: DeclaredTypes | undefined,
  root: unknown,
  depth = 0,
): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith(open) || declared?.types.has("string") === true || depth === deepest) {
    return typedValue(text, declared);
  }
  const members = split(trimmed, open);
  if (members === null) return typedValue(text, declared);
  const schema = declared?.schema;
  const types = declared?.types ?? new Set<string>();
  const isArray = members.every(([key]) => key === item) && (types.has("array") || !types.has("object"));
  const inner = (value: string, part: unknown): string => {
    const known =
      part === undefined ? undefined : { types: typesOf(part, root), schema: part as DeclaredTypes["schema"] };
    return nestedValue(value, open, item, known, root, depth + 1);
  };
  if (isArray) return `[${members.map(([, value], index) => inner(value, itemOf(schema, index, root))).join(",")}]`;
  return `{${members
    .map(([key, value]) => `${JSON.stringify(key)}:${inner(value, propertyOf(schema, key, root))}`)
    .join(",")}}`;
}

/** The tags side by side: key and content of each. null: it is not only tags. */
function split(text: string, open: string): [key: string, content: string][] | null {
  const members: [string, string][] = [];
  let at = 0;
  while (at < text.length) {
    if (!text.startsWith(open, at)) return null;
    const keyEnd = text.indexOf(">", at + open.length);
    if (keyEnd < 0) return null;
    const key = text.slice(at + open.length, keyEnd);
    const close = findClose(text, keyEnd + 1, `${open}${key}>`, `${open}/${key}>`);
    if (close < 0) return null;
    members.push([key, text.slice(keyEnd + 1, close)]);
    at = close + open.length + key.length + 2;
    while (at < text.length && text[at]?.trim() === "") at++;
  }
  return members;
}

/** Where the close is that belongs to an opener before `from`; −1: nowhere. */
function findClose(text: string, from: number, open: string, close: string): number {
  let depth = 1;
  for (let at = from; ;) {
    const nextClose = text.indexOf(close, at);
    if (nextClose < 0) return -1;
    const nextOpen = text.indexOf(open, at);
    if (nextOpen >= 0 && nextOpen < nextClose) {
      depth++;
      at = nextOpen + open.length;
    } else {
      depth--;
      if (depth === 0) return nextClose;
      at = nextClose + close.length;
    }
  }
}
