import type { UserText } from "../user-text.ts";
import {
  integerValue,
  isBoolean,
  isFloat,
  isFunction,
  isInteger,
  isList,
  isMapping,
  isNamespace,
  isNone,
  isText,
  isTrue,
  isUndefined,
  keyValue,
  parameters,
  typeName,
  type Value,
  undefinedValue,
} from "./values.ts";

/** Python's `str()`, which Jinja prints with. Undefined prints as empty text. */
export function pythonText(value: Value, user: UserText): string {
  if (isText(value)) return value.value;
  if (isInteger(value)) return String(value.value);
  if (isFloat(value)) return pythonFloat(value.value);
  if (isBoolean(value)) return value.value ? "True" : "False";
  if (isNone(value)) return "None";
  if (isList(value) || isMapping(value) || isNamespace(value)) return pythonRepr(value, user);
  return isFunction(value) ? "<function>" : "";
}

/** Python's `repr()`, which containers print their items with. */
function pythonRepr(value: Value, user: UserText): string {
  if (isText(value)) return quoted(value.value, user);
  if (isList(value)) {
    const items = value.value.map((item) => pythonRepr(item, user));
    if (value.type !== "tuple") return `[${items.join(", ")}]`;
    return items.length === 1 ? `(${items[0] ?? ""},)` : `(${items.join(", ")})`;
  }
  if (isMapping(value) || isNamespace(value)) {
    const items = [...value.value].map(
      ([key, item]) => `${pythonRepr(keyValue(key), user)}: ${pythonRepr(item, user)}`,
    );
    return `{${items.join(", ")}}`;
  }
  return value.type === "undefined" ? "Undefined" : pythonText(value, user);
}

/** Quotes a string with single quotes, or with double quotes if that avoids escapes. Non-printable characters are escaped. */
function quoted(text: string, user: UserText): string {
  const plain = user.plain(text);
  const quote = plain.includes("'") && !plain.includes('"') ? '"' : "'";
  const escapes = quote === "'" ? /[\\'\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu : /[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
  return quote + user.change(text, (part) => part.replace(escapes, escapedCharacter)) + quote;
}

function escapedCharacter(character: string): string {
  const short = shortEscapes.get(character);
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ["\\", "\\\\"],
  ["'", "\\'"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/** Prints a float like Python: whole numbers with `.0`, and an exponent of at least two digits below 1e-4 and from 1e16 on. */
export function pythonFloat(number: number): string {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf";
  if (Object.is(number, -0)) return "-0.0";
  const [mantissa = "", exponent = ""] = number.toExponential().split("e");
  const power = Number(exponent);
  if (number !== 0 && (power < -4 || power >= 16)) {
    return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const digits = String(number);
  return /[.e]/.test(digits) ? digits : `${digits}.0`;
}

interface Layout {
  /** Spaces per level; null for a single line. */
  readonly indent: number | null;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly ascii: boolean;
  readonly sortKeys: boolean;
}

/**
 * The filter `tojson` of chat templates, which is Python's `json.dumps(value, ensure_ascii=False, …)`:
 * `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`. A single positional argument is the indentation, as in
 * Jinja's own filter. Undefined counts as null.
 */
export function toJson(value: Value, args: readonly Value[], user: UserText): string {
  const [positional, keyword, separators, ascii, sortKeys] = parameters(
    args,
    "",
    "indent",
    "separators",
    "ensure_ascii",
    "sort_keys",
  );
  const spaces = keyword ?? (positional !== undefined && isInteger(positional) ? positional : integerValue(-1));
  const indent = isInteger(spaces) && spaces.value >= 0 ? spaces.value : null;
  const [item, key] =
    separators !== undefined && isList(separators)
      ? separators.value.map((separator) => (isText(separator) ? separator.value : ""))
      : [indent === null ? ", " : ",", ": "];
  const layout: Layout = {
    indent,
    itemSeparator: item ?? ", ",
    keySeparator: key ?? ": ",
    ascii: ascii !== undefined && isTrue(ascii),
    sortKeys: sortKeys !== undefined && isTrue(sortKeys),
  };
  const parts: string[] = [];
  const add = (text: string): void => {
    user.countWritten(text.length);
    parts.push(text);
  };
  write(value, layout, user, 0, add);
  return parts.join("");
}

/** Passes the parts of a JSON text to `add`. */
function write(value: Value, layout: Layout, user: UserText, depth: number, add: (text: string) => void): void {
  if (isText(value)) add(jsonString(value.value, layout, user));
  else if (isInteger(value)) add(String(value.value));
  else if (isFloat(value)) add(pythonFloat(value.value).replace("inf", "Infinity").replace("nan", "NaN"));
  else if (isBoolean(value)) add(String(value.value));
  else if (isNone(value) || isUndefined(value)) add("null");
  else if (isList(value)) {
    const items = value.value;
    writeEnclosed("[]", items.length, layout, depth, add, (at) =>
      write(items[at] ?? undefinedValue, layout, user, depth + 1, add),
    );
  } else if (isMapping(value) || isNamespace(value)) {
    const entries = [...value.value];
    if (layout.sortKeys) entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    writeEnclosed("{}", entries.length, layout, depth, add, (at) => {
      const [key, item = undefinedValue] = entries[at] ?? [];
      add(jsonString(String(key), layout, user) + layout.keySeparator);
      write(item, layout, user, depth + 1, add);
    });
  } else throw new TypeError(`Object of type ${typeName(value)} is not JSON serializable`);
}

function writeEnclosed(
  brackets: "[]" | "{}",
  count: number,
  { indent, itemSeparator }: Layout,
  depth: number,
  add: (text: string) => void,
  writeItem: (at: number) => void,
): void {
  if (count === 0) return add(brackets);
  const newline = indent === null ? "" : `\n${" ".repeat(indent * depth)}`;
  const inner = indent === null ? "" : newline + " ".repeat(indent);
  const [open = "", close = ""] = brackets;
  add(open + inner);
  for (let at = 0; at < count; at++) {
    if (at > 0) add(itemSeparator + inner);
    writeItem(at);
  }
  add(newline + close);
}

function jsonString(text: string, layout: Layout, user: UserText): string {
  return `"${user.change(text, (part) => {
    const escaped = JSON.stringify(part).slice(1, -1);
    return layout.ascii ? escaped.replace(/[\u007f-\uffff]/g, unicodeEscape) : escaped;
  })}"`;
}

function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
