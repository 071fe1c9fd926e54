import { isObject } from "../../wire/core/json.ts";
import { ExactNumber, scalarJson } from "../parts/json-text.ts";

/** The keys from the root to a value. */
export type JsonPath = readonly (string | number)[];

/** A visible line of a tree. */
export interface JsonRow {
  readonly parent: JsonRow | undefined;
  /** The name or the index in the parent; of a line of a long text, its number. Absent for the root. */
  readonly key: string | number | undefined;
  readonly value: unknown;
  /** 0 for the root. */
  readonly depth: number;
  /** A line of a text that is opened, which is no value of its own. */
  readonly isLine?: boolean;
  isOpen: boolean;
}

/** A longer text is folded, and opens in lines. In characters. */
const maxInline = 100;
/** In characters; a longer line is broken. */
const maxLine = 120;
/** `openAll` opens no further values beyond this number of rows. */
const maxRows = 100_000;

/** The entries of a list or an object. */
function entriesOf(value: unknown): (readonly [string | number, unknown])[] {
  if (Array.isArray(value)) return value.map((item, at) => [at, item] as const);
  return isObject(value) && !(value instanceof ExactNumber) ? Object.entries(value) : [];
}

/** The number of values, or of lines, that a row opens to. 0: it does not open. */
export function sizeOf({ value, isLine }: JsonRow): number {
  if (isLine === true) return 0;
  if (typeof value === "string") return value.length > maxInline || value.includes("\n") ? linesOf(value).length : 0;
  return Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 0;
}

/** Whether a row opens; faster than `sizeOf`. */
export function isFolding({ value, isLine }: JsonRow): boolean {
  if (isLine === true) return false;
  if (typeof value === "string") return value.length > maxInline || value.includes("\n");
  if (Array.isArray(value)) return value.length > 0;
  if (!isObject(value) || value instanceof ExactNumber) return false;
  for (const _ in value) return true;
  return false;
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .flatMap((line) => (line.length <= maxLine ? [line] : (line.match(new RegExp(`.{1,${maxLine}}`, "gsu")) ?? [])));
}

/** The visible rows of a document. Rows of values that were never opened do not exist. */
export class JsonRows {
  #rows: readonly JsonRow[];

  /** The root is open. */
  constructor(root: unknown) {
    const row: JsonRow = { parent: undefined, key: undefined, value: root, depth: 0, isOpen: false };
    this.#rows = [row];
    this.open(row);
  }

  /** In order. Changes with each fold. */
  get all(): readonly JsonRow[] {
    return this.#rows;
  }

  open(row: JsonRow): void {
    if (row.isOpen || !isFolding(row)) return;
    const at = this.#rows.indexOf(row);
    row.isOpen = true;
    this.#rows = [...this.#rows.slice(0, at + 1), ...childrenOf(row), ...this.#rows.slice(at + 1)];
  }

  close(row: JsonRow): void {
    if (!row.isOpen) return;
    const at = this.#rows.indexOf(row);
    let end = at + 1;
    while ((this.#rows[end]?.depth ?? -1) > row.depth) end++;
    row.isOpen = false;
    this.#rows = [...this.#rows.slice(0, at + 1), ...this.#rows.slice(end)];
  }

  toggle(row: JsonRow): void {
    if (row.isOpen) this.close(row);
    else this.open(row);
  }

  /** Opens everything inside a row, as far as `maxRows` allow; long texts stay folded. */
  openAll(root: JsonRow): void {
    const at = this.#rows.indexOf(root);
    this.close(root);
    const rows: JsonRow[] = [];
    /** The next row is the last one. */
    const waiting = [root];
    for (let row = waiting.pop(); row; row = waiting.pop()) {
      rows.push(row);
      if (!isFolding(row) || (typeof row.value === "string" && row !== root) || rows.length > maxRows) continue;
      row.isOpen = true;
      for (const child of childrenOf(row).reverse()) waiting.push(child);
    }
    this.#rows = this.#rows.slice(0, at).concat(rows, this.#rows.slice(at + 1));
  }

  /** Closes everything but the root. */
  closeAll(): void {
    const [root] = this.#rows;
    if (!root) return;
    this.close(root);
    this.open(root);
  }

  /** Opens the values around a path. Returns its row, or the nearest one that exists. */
  reveal(path: JsonPath): JsonRow | undefined {
    let [row] = this.#rows;
    for (const key of path) {
      if (!row) return undefined;
      this.open(row);
      const parent: JsonRow = row;
      const at = this.#rows.indexOf(parent);
      let next: JsonRow | undefined;
      for (let index = at + 1; (this.#rows[index]?.depth ?? -1) > parent.depth; index++) {
        const child = this.#rows[index];
        if (child?.parent === parent && child.isLine !== true && String(child.key) === String(key)) next = child;
        if (next) break;
      }
      if (!next) return parent;
      row = next;
    }
    return row;
  }
}

function childrenOf(row: JsonRow): JsonRow[] {
  const depth = row.depth + 1;
  if (typeof row.value === "string")
    return linesOf(row.value).map((value, key) => ({ parent: row, key, value, depth, isLine: true, isOpen: false }));
  return entriesOf(row.value).map(([key, value]) => ({ parent: row, key, value, depth, isOpen: false }));
}

/** The path of a row's value. */
export function pathOf(row: JsonRow): JsonPath {
  const keys: (string | number)[] = [];
  for (let at: JsonRow | undefined = row; at; at = at.parent)
    if (at.key !== undefined && at.isLine !== true) keys.unshift(at.key);
  return keys;
}

/** A path as the API's errors write it: `messages[1].content[0].text`; names that are no identifiers are in quotes. */
export function pathText(path: JsonPath): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    if (!/^[\w$-]+$/.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text === "" ? key : `${text}.${key}`;
  }, "");
}

/** The opposite of `pathText`. */
export function parsePath(text: string): JsonPath {
  return [...text.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g)].map(([, index, quoted, name = ""]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? name : String(JSON.parse(quoted));
  });
}

/** Whether the JSON of a value has at most about this number of characters. Takes no longer for a long one. */
export function isShort(value: unknown, maxLength: number): boolean {
  const waiting = [value];
  let length = 0;
  while (waiting.length > 0) {
    const one = waiting.pop();
    length += 2 + (typeof one === "string" ? one.length : 4);
    const entries = entriesOf(one);
    if (length + 2 * entries.length > maxLength) return false;
    for (const [key, item] of entries) {
      length += typeof key === "string" ? key.length : 0;
      waiting.push(item);
    }
  }
  return length <= maxLength;
}

/** The number of values that are searched before the search yields. */
const searchedAtOnce = 5000;

/**
 * Finds the values whose name or text contains `query`, in the order of the rows; case is ignored. Yields a path for each, and undefined
 * where the caller should let the page do other things.
 */
export function* findInJson(root: unknown, query: string): Generator<JsonPath | undefined, void, undefined> {
  const wanted = query.toLowerCase();
  if (wanted === "") return;
  const path: (string | number)[] = [];
  const contains = (text: string): boolean => text.toLowerCase().includes(wanted);
  let left = searchedAtOnce;
  // One frame for each open value. A hostile document may be nested deeper than the call stack.
  const frames: { readonly entries: readonly (readonly [string | number, unknown])[]; next: number }[] = [
    { entries: [["", root]], next: 0 },
  ];
  for (let frame = frames.at(-1); frame; frame = frames.at(-1)) {
    const entry = frame.entries[frame.next++];
    if (!entry) {
      frames.pop();
      path.pop();
      continue;
    }
    const [key, value] = entry;
    if (frames.length > 1) path.push(key);
    const isNamed = typeof key === "string" && contains(key);
    const isFolded = typeof value === "object" && value !== null && !(value instanceof ExactNumber);
    if (isNamed || (!isFolded && contains(typeof value === "string" ? value : scalarJson(value)))) yield [...path];
    if (isFolded) frames.push({ entries: entriesOf(value), next: 0 });
    else path.pop();
    if (--left > 0) continue;
    left = searchedAtOnce;
    yield undefined;
  }
}
