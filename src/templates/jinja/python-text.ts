import type { UserText } from "../user-text.ts";
import {
  isBoolean,
  isFloat,
  isFunction,
  isInteger,
  isList,
  isMapping,
  isNamespace,
  isNone,
  isText,
  keyValue,
  type Value,
} from "./values.ts";

/** Python's `str()`, with which Jinja prints. Undefined prints as empty text. */
export function pythonText(value: Value, user: UserText): string {
  if (isText(value)) return value.value;
  if (isInteger(value)) return String(value.value);
  if (isFloat(value)) return floatText(value.value);
  if (isBoolean(value)) return value.value ? "True" : "False";
  if (isNone(value)) return "None";
  if (isList(value) || isMapping(value) || isNamespace(value)) return pythonRepr(value, user);
  return isFunction(value) ? "<function>" : "";
}

/** Python's `repr()`: how containers show what they hold. */
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

/** In single quotes, or in double quotes if that saves escapes. Characters that do not print are escaped. */
function quoted(text: string, user: UserText): string {
  const plain = user.plain(text);
  const quote = plain.includes("'") && !plain.includes('"') ? '"' : "'";
  const escapes = quote === "'" ? /[\\'\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu : /[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
  return quote + user.change(text, (piece) => piece.replace(escapes, escapedCharacter)) + quote;
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

/** Python writes whole floats with `.0`, and an exponent of at least two digits below 1e-4 and from 1e16 on. */
export function floatText(number: number): string {
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
