import type { UserText } from "../user-text.ts";
import { floatText } from "./python-text.ts";
import {
  integerValue,
  isBoolean,
  isFloat,
  isInteger,
  isList,
  isMapping,
  isNamespace,
  isNone,
  isTrue,
  isUndefined,
  isText,
  parameters,
  typeName,
  type Value,
} from "./values.ts";

interface Layout {
  /** Spaces a level; null: on one line. */
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
  if (isFloat(value)) return floatText(value.value).replace("inf", "Infinity").replace("nan", "NaN");
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
  return `"${user.change(text, (piece) => {
    const escaped = JSON.stringify(piece).slice(1, -1);
    return layout.ascii ? escaped.replace(/[\u007f-\uffff]/g, unicodeEscape) : escaped;
  })}"`;
}

function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
