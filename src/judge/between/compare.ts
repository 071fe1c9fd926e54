import { isObject } from "../../wire/core/json.ts";

/** How a value of one side differs on the other. */
export type DifferenceKind = "lost" | "changed" | "moved" | "invented" | "reordered";

export interface Difference {
  readonly kind: DifferenceKind;
  /** Such as `messages[1].content[0].text`; `[]` in place of an index: at any of them. */
  readonly path: string;
  /** Absent: the value is not on that side. */
  readonly clientSide?: unknown;
  readonly vendorSide?: unknown;
  /** Where it is now, if it was moved. */
  readonly to?: string;
}

/**
 * What is different between two JSON values, from the first to the second: members and items that are lost, changed, invented or in
 * another order. A value that is lost at one path and invented at another is moved. Linear in the sizes of both.
 */
export function differences(clientSide: unknown, vendorSide: unknown): Difference[] {
  const found: Difference[] = [];
  compare(clientSide, vendorSide, "", found);
  return withMoves(found);
}

function compare(clientSide: unknown, vendorSide: unknown, path: string, found: Difference[]): void {
  if (Object.is(clientSide, vendorSide)) return;
  if (Array.isArray(clientSide) && Array.isArray(vendorSide)) return compareLists(clientSide, vendorSide, path, found);
  if (isObject(clientSide) && isObject(vendorSide)) return compareObjects(clientSide, vendorSide, path, found);
  if (clientSide === undefined) found.push({ kind: "invented", path, vendorSide });
  else if (vendorSide === undefined) found.push({ kind: "lost", path, clientSide });
  else found.push({ kind: "changed", path, clientSide, vendorSide });
}

function compareObjects(
  clientSide: Readonly<Record<string, unknown>>,
  vendorSide: Readonly<Record<string, unknown>>,
  path: string,
  found: Difference[],
): void {
  const names = Object.keys(clientSide).filter((name) => clientSide[name] !== undefined);
  const others = Object.keys(vendorSide).filter((name) => vendorSide[name] !== undefined);
  for (const name of names) compare(clientSide[name], vendorSide[name], joined(path, name), found);
  for (const name of others)
    if (clientSide[name] === undefined) compare(undefined, vendorSide[name], joined(path, name), found);
  const shared = names.filter((name) => vendorSide[name] !== undefined);
  const same = new Set(shared);
  const order = others.filter((name) => same.has(name));
  if (shared.join("\n") !== order.join("\n"))
    found.push({ kind: "reordered", path, clientSide: shared, vendorSide: order });
}

function compareLists(
  clientSide: readonly unknown[],
  vendorSide: readonly unknown[],
  path: string,
  found: Difference[],
): void {
  const texts = clientSide.map((item) => JSON.stringify(item));
  const others = vendorSide.map((item) => JSON.stringify(item));
  if (texts.length === others.length && texts.toSorted().join("\n") === others.toSorted().join("\n")) {
    if (texts.join("\n") !== others.join("\n")) found.push({ kind: "reordered", path, clientSide, vendorSide });
    return;
  }
  // Items that are on both sides stay together, in their order: one that is missing or added must not make all that follow differ.
  const [own, theirs] = [new Set(texts), new Set(others)];
  const isShared =
    texts.filter((text) => theirs.has(text)).join("\n") === others.filter((text) => own.has(text)).join("\n");
  const left = [...clientSide.keys()].filter((at) => !isShared || !theirs.has(texts[at] ?? ""));
  const right = [...vendorSide.keys()].filter((at) => !isShared || !own.has(others[at] ?? ""));
  for (const [at, other] of paired(clientSide, left, vendorSide, right))
    compare(
      at === undefined ? undefined : clientSide[at],
      other === undefined ? undefined : vendorSide[other],
      `${path}[${at ?? other}]`,
      found,
    );
}

/** The places of two lists, in their order: an item and the next one on the other side that is like it, or an item alone. */
function paired(
  clientSide: readonly unknown[],
  left: readonly number[],
  vendorSide: readonly unknown[],
  right: readonly number[],
): (readonly [at: number | undefined, other: number | undefined])[] {
  const queues = new Map<string, number[]>();
  for (const [place, at] of right.entries()) {
    const kind = kindOf(vendorSide[at]);
    const places = queues.get(kind) ?? [];
    places.push(place);
    queues.set(kind, places);
  }
  for (const places of queues.values()) places.reverse();
  const pairs: (readonly [number | undefined, number | undefined])[] = [];
  let next = 0;
  // An item without one like it is compared with what is in its place, unless that is like another one.
  const wanted = new Set(left.map((at) => kindOf(clientSide[at])));
  const isWanted = (place: number): boolean => {
    const at = right[place];
    return at === undefined || wanted.has(kindOf(vendorSide[at]));
  };
  for (const at of left) {
    const places = queues.get(kindOf(clientSide[at])) ?? [];
    while ((places.at(-1) ?? next) < next) places.pop();
    const texts = textsOf(clientSide[at]);
    const candidates = places.slice(-maxCandidates).toReversed();
    const has = (place: number): boolean => {
      const whole = textsOf(vendorSide[right[place] ?? 0]).join("\n");
      return texts.every((text) => whole.includes(text));
    };
    const place = candidates.find(has) ?? candidates[0] ?? (isWanted(next) ? undefined : next);
    if (place === undefined) pairs.push([at, undefined]);
    else {
      for (; next < place; next++) pairs.push([undefined, right[next]]);
      pairs.push([at, right[next++]]);
    }
  }
  for (; next < right.length; next++) pairs.push([undefined, right[next]]);
  return pairs;
}

/** How many items of a kind are looked at for the one that has an item's texts. */
const maxCandidates = 8;

/** Items of one kind may be the same one: by their roles and types, or the first members of objects that have neither. */
function kindOf(item: unknown): string {
  if (!isObject(item)) return typeof item;
  const { role, type } = item;
  return JSON.stringify(role === undefined && type === undefined ? Object.keys(item)[0] : [role, type]);
}

/** The texts of an item and its parts; results of calls are known by their order. */
function textsOf(item: unknown): string[] {
  if (!isObject(item)) return [];
  const { text, content } = item;
  const parts = Array.isArray(content) ? content.filter(isObject).map((part) => part["text"]) : [];
  return [text, ...parts].filter((one) => typeof one === "string");
}

/** Replaces pairs of a lost and an equal invented value. Values that occur anywhere, such as `true`, are not moved. */
function withMoves(found: readonly Difference[]): Difference[] {
  const lost = new Map<string, Difference>();
  for (const one of found)
    if (one.kind === "lost" && isTelling(one.clientSide)) lost.set(JSON.stringify(one.clientSide), one);
  const moved = new Map<Difference, Difference>();
  const dropped = new Set<Difference>();
  for (const one of found) {
    const from = one.kind === "invented" ? lost.get(JSON.stringify(one.vendorSide)) : undefined;
    if (!from || moved.has(from)) continue;
    moved.set(from, {
      kind: "moved",
      path: from.path,
      clientSide: from.clientSide,
      vendorSide: one.vendorSide,
      to: one.path,
    });
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
