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
  return written(value, layout, user, 0);
}

function written(value: Value, layout: Layout, user: UserText, depth: number): string {
  if (isText(value)) return jsonString(value.value, layout, user);
  if (isInteger(value)) return String(value.value);
  if (isFloat(value)) return pythonFloat(value.value).replace("inf", "Infinity").replace("nan", "NaN");
  if (isBoolean(value)) return String(value.value);
  if (isNone(value) || isUndefined(value)) return "null";
  if (isList(value)) {
    return enclosed(
      "[",
      value.value.map((item) => written(item, layout, user, depth + 1)),
      "]",
      layout,
      depth,
    );
  }
  if (isMapping(value) || isNamespace(value)) {
    const entries = [...value.value];
    if (layout.sortKeys) entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    const members = entries.map(
      ([key, item]) =>
        jsonString(String(key), layout, user) + layout.keySeparator + written(item, layout, user, depth + 1),
    );
    return enclosed("{", members, "}", layout, depth);
  }
  throw new TypeError(`Object of type ${typeName(value)} is not JSON serializable`);
}

function enclosed(open: string, items: readonly string[], close: string, layout: Layout, depth: number): string {
  if (items.length === 0) return open + close;
  if (layout.indent === null) return open + items.join(layout.itemSeparator) + close;
  const newline = `\n${" ".repeat(layout.indent * depth)}`;
  const inner = newline + " ".repeat(layout.indent);
  return open + inner + items.join(layout.itemSeparator + inner) + newline + close;
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
