import { isObject } from "../../wire/core/json.ts";

/** How a value of one side differs on the other. */
export type DifferenceKind = "lost" | "changed" | "moved" | "invented" | "reordered";

export interface Difference {
  readonly kind: DifferenceKind;
  /** Such as `messages[1].content[0].text`; `[]` in place of an index: at any of them. */
  readonly path: string;
  /** Absent: the value is not on that side. */
  readonly front?: unknown;
  readonly behind?: unknown;
  /** Where it is now, if it was moved. */
  readonly to?: string;
}

/**
 * What is different between two JSON values, from the first to the second: members and items that are lost, changed, invented or in
 * another order. A value that is lost at one path and invented at another is moved. Linear in the sizes of both.
 */
export function differences(front: unknown, behind: unknown): Difference[] {
  const found: Difference[] = [];
  compare(front, behind, "", found);
  return withMoves(found);
}

function compare(front: unknown, behind: unknown, path: string, found: Difference[]): void {
  if (Object.is(front, behind)) return;
  if (Array.isArray(front) && Array.isArray(behind)) return compareLists(front, behind, path, found);
  if (isObject(front) && isObject(behind)) return compareObjects(front, behind, path, found);
  if (front === undefined) found.push({ kind: "invented", path, behind });
  else if (behind === undefined) found.push({ kind: "lost", path, front });
  else found.push({ kind: "changed", path, front, behind });
}

function compareObjects(
  front: Readonly<Record<string, unknown>>,
  behind: Readonly<Record<string, unknown>>,
  path: string,
  found: Difference[],
): void {
  const names = Object.keys(front).filter((name) => front[name] !== undefined);
  const others = Object.keys(behind).filter((name) => behind[name] !== undefined);
  for (const name of names) compare(front[name], behind[name], joined(path, name), found);
  for (const name of others) if (front[name] === undefined) compare(undefined, behind[name], joined(path, name), found);
  const shared = names.filter((name) => behind[name] !== undefined);
  const same = new Set(shared);
  const order = others.filter((name) => same.has(name));
  if (shared.join("\n") !== order.join("\n")) found.push({ kind: "reordered", path, front: shared, behind: order });
}

function compareLists(front: readonly unknown[], behind: readonly unknown[], path: string, found: Difference[]): void {
  const texts = front.map((item) => JSON.stringify(item));
  const others = behind.map((item) => JSON.stringify(item));
  if (texts.length === others.length && texts.toSorted().join("\n") === others.toSorted().join("\n")) {
    if (texts.join("\n") !== others.join("\n")) found.push({ kind: "reordered", path, front, behind });
    return;
  }
  // Items that are equal at the end stay together: one that is missing before them must not make all of them differ.
  let same = 0;
  const shorter = Math.min(texts.length, others.length);
  while (same < shorter && texts.at(-1 - same) === others.at(-1 - same)) same++;
  const length = Math.max(front.length, behind.length) - same;
  for (let at = 0; at < length; at++)
    compare(
      at < front.length - same ? front[at] : undefined,
      at < behind.length - same ? behind[at] : undefined,
      `${path}[${at}]`,
      found,
    );
}

/** Replaces pairs of a lost and an equal invented value. Values that occur anywhere, such as `true`, are not moved. */
function withMoves(found: readonly Difference[]): Difference[] {
  const lost = new Map<string, Difference>();
  for (const one of found) if (one.kind === "lost" && isTelling(one.front)) lost.set(JSON.stringify(one.front), one);
  const moved = new Map<Difference, Difference>();
  const dropped = new Set<Difference>();
  for (const one of found) {
    const from = one.kind === "invented" ? lost.get(JSON.stringify(one.behind)) : undefined;
    if (!from || moved.has(from)) continue;
    moved.set(from, { kind: "moved", path: from.path, front: from.front, behind: one.behind, to: one.path });
    dropped.add(one);
  }
  return found.flatMap((one) => (dropped.has(one) ? [] : [moved.get(one) ?? one]));
}

function isTelling(value: unknown): boolean {
  return typeof value === "string" ? value.length > 3 : typeof value === "object" && value !== null;
}

function joined(path: string, name: string): string {
  const plain = /^[\w$-]+$/.test(name);
  if (!plain) return `${path}[${JSON.stringify(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}

/** A value for people, at most 120 characters long. */
export function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}…` : text;
}
