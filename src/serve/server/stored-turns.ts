import { sha256 } from "@noble/hashes/sha2.js";
import { loggedError } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import type { KeptPart, KeptTurn, TurnMemory } from "../../wire/core/turn-memory.ts";
import { BoundedIndex } from "../kv/memory-store.ts";
import { ownerOf } from "../kv/store.ts";
import type { Store, StoreLimits } from "../kv/store.ts";
import type { Log } from "./log.ts";

export interface TurnLimits extends StoreLimits {
  /** The maximum size of one turn, in bytes. A larger one is not kept. */
  readonly maxTurnBytes: number;
}

/** What a memory has done since its start. */
export interface TurnCounts {
  readonly kept: number;
  readonly keptBytes: number;
  readonly found: number;
  readonly missing: number;
  /** Of turns that were evicted, or expired, before they were asked for again or after. */
  readonly evictedBytes: number;
}

/** With a store, this process keeps only what it has used last, in bytes. */
const maxLocalBytes = 16 * 1024 * 1024;
/** Texts that wait for a slow store may take this many bytes; further ones are not written. */
const maxPendingBytes = 8 * 1024 * 1024;
/** The number of turns that are written at the same time. */
const maxWrites = 8;
/** How long it is believed that an owner has no turns in the store, in milliseconds: another process may keep its first one at any time. */
const absentMs = 250;
/** A turn that was looked for twice without success is not looked for in the store again for this time, in milliseconds. */
const missMs = 5 * 60_000;
/** The maximum number of turns that are known to be missing. */
const maxMisses = 20_000;
/** A request waits no longer than this for the store, in milliseconds. */
const maxFindMs = 1000;
/** How often this process notes in the store that an owner has turns, in milliseconds. */
const noteMs = 60_000;
/** Longer keys are replaced by their hash. In characters. */
const maxKeyLength = 128;
/** What an entry takes in addition to its text, in bytes: estimated. */
const entryBytes = 200;

/** A turn in UTF-8, or the name of the entry that has it. */
type LocalEntry = Uint8Array | string;

/** What this process knows of an owner's turns in the store. Times are by `Date.now`. */
interface KnownOwner {
  readonly has: boolean;
  readonly seenAt: number;
  /** When this process noted in the store that the owner has turns. */
  readonly notedAt: number;
}

interface Write {
  readonly owner: string;
  readonly bytes: number;
  /** The text of the turn first: an entry that refers to it must not come before it. */
  readonly entries: readonly (readonly [name: string, text: string])[];
}

/**
 * Turns in this process, and in a store that other processes share if there is one: then a turn is found by all of them, and after a
 * restart. An entry with several keys has one text, to which the keys refer.
 *
 * Writes do not delay anything. If the store fails or is slow, turns are kept in this process only, and the log says so once.
 */
export class StoredTurns implements TurnMemory {
  readonly #limits: TurnLimits;
  readonly #log: Log;
  readonly #local: BoundedIndex<LocalEntry>;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();
  #store: Store | undefined;
  readonly #owners = new Map<string, KnownOwner>();
  /**
   * How often a turn was looked for in the store without success, by the name of its first key. A turn may still be on its way to the store
   * when it is looked for first: only the second time counts.
   */
  readonly #misses: BoundedIndex<number>;
  readonly #queue: Write[] = [];
  #pendingBytes = 0;
  #writing = 0;
  #whenIdle: (() => void)[] = [];
  #isReported = false;
  #counts = { kept: 0, keptBytes: 0, found: 0, missing: 0, evictedBytes: 0 };

  /** `isShared`: turns are kept in a store, too, which `use` sets before the first request. */
  constructor(limits: TurnLimits, isShared: boolean, log: Log) {
    this.#limits = limits;
    this.#log = log;
    const maxBytes = isShared ? Math.min(limits.maxBytes, maxLocalBytes) : limits.maxBytes;
    this.#misses = new BoundedIndex({ maxCount: maxMisses, maxBytes: Infinity, maxAgeMs: missMs }, ownerOf, () => {});
    this.#local = new BoundedIndex(
      { ...limits, maxBytes },
      ownerOf,
      (_, bytes) => (this.#counts.evictedBytes += bytes),
    );
  }

  get counts(): TurnCounts {
    return this.#counts;
  }

  use(store: Store): void {
    this.#store = store;
  }

  mayHave(owner: string | undefined): boolean {
    const name = ownerName(owner);
    return this.#local.holds(name) || this.#mayBeInStore(name);
  }

  keep(owner: string | undefined, keys: readonly string[], turn: KeptTurn): void {
    const names = [...new Set(keys)].map(entryName);
    const [first] = names;
    if (first === undefined) return;
    const at = Date.now();
    const text = JSON.stringify({ at, parts: turn.parts });
    const bytes = this.#encoder.encode(text);
    const size = bytes.length + entryBytes;
    if (size > Math.min(this.#limits.maxTurnBytes, this.#limits.maxBytes)) {
      this.#log.debug(
        { bytes: size },
        "a turn is not kept: it is larger than the limit of one turn (sessions.maxTurn)",
      );
      return;
    }
    const of = ownerName(owner);
    const id = names.length === 1 ? first : `turn.text.${crypto.randomUUID()}`;
    const others = names.filter((name) => name !== id);
    this.#local.set(`${of} ${id}`, bytes, size, at);
    for (const name of others) this.#local.set(`${of} ${name}`, id, entryBytes, at);
    for (const name of names) this.#misses.delete(`${of} ${name}`);
    this.#counts.kept++;
    this.#counts.keptBytes += bytes.length;
    if (!this.#store) return;
    const reference = JSON.stringify({ at, id });
    this.#write({ owner: of, bytes: size, entries: [[id, text], ...others.map((name) => [name, reference] as const)] });
  }

  find(owner: string | undefined, keys: readonly string[]): KeptTurn | undefined | Promise<KeptTurn | undefined> {
    const of = ownerName(owner);
    const names = keys.map(entryName);
    for (const name of names) {
      const turn = this.#findHere(of, name);
      if (turn) return this.#counted(turn);
    }
    const isMissing = (this.#misses.get(`${of} ${names[0]}`) ?? 0) > 1;
    if (this.#store && !isMissing && this.#mayBeInStore(of))
      return within(maxFindMs, this.#findInStore(this.#store, of, names));
    return this.#counted(undefined);
  }

  /** Closes the store when what was kept is written, but after `graceMs` milliseconds at the latest. */
  async close(graceMs: number): Promise<void> {
    if (this.#writing > 0) await within(graceMs, new Promise<void>((resolve) => this.#whenIdle.push(resolve)));
    const turns = this.#writing + this.#queue.length;
    if (turns > 0) this.#log.warn({ turns }, "turns could not be stored before the server stopped");
    this.#queue.length = 0;
    await this.#store?.close();
  }

  #findHere(owner: string, name: string): KeptTurn | undefined {
    const entry = this.#local.get(`${owner} ${name}`);
    const bytes = typeof entry === "string" ? this.#local.get(`${owner} ${entry}`) : entry;
    return bytes instanceof Uint8Array ? readTurn(this.#decoder.decode(bytes)) : undefined;
  }

  async #findInStore(store: Store, owner: string, names: readonly string[]): Promise<KeptTurn | undefined> {
    try {
      if (!(await this.#hasInStore(store, owner))) return this.#counted(undefined);
      const texts = await Promise.all(names.map((name) => store.get(`${owner} ${name}`)));
      for (const [at, text] of texts.entries()) {
        const turn = await this.#resolve(store, owner, names[at] ?? "", text);
        if (turn) return this.#counted(turn);
      }
      this.#isReported = false;
      const miss = `${owner} ${names[0]}`;
      this.#misses.set(miss, (this.#misses.get(miss) ?? 0) + 1, 1);
    } catch (error) {
      this.#report(
        error,
        "the turns that are kept cannot be read; they are sent without what their clients did not return",
      );
    }
    return this.#counted(undefined);
  }

  /** The turn of an entry's text, which may refer to another entry. It is kept here for the next request. */
  async #resolve(store: Store, owner: string, name: string, text: string | undefined): Promise<KeptTurn | undefined> {
    if (text === undefined) return undefined;
    const { at = 0, id } = readEntry(text);
    const content = id === undefined ? text : await store.get(`${owner} ${id}`);
    const turn = content === undefined ? undefined : readTurn(content);
    if (content === undefined || !turn) return undefined;
    const bytes = this.#encoder.encode(content);
    this.#local.set(`${owner} ${id ?? name}`, bytes, bytes.length + entryBytes, at);
    if (id !== undefined) this.#local.set(`${owner} ${name}`, id, entryBytes, at);
    return turn;
  }

  #counted(turn: KeptTurn | undefined): KeptTurn | undefined {
    if (turn) this.#counts.found++;
    else this.#counts.missing++;
    return turn;
  }

  #mayBeInStore(owner: string): boolean {
    return this.#store !== undefined && this.#knownOf(owner)?.has !== false;
  }

  /** What is still true of an owner. */
  #knownOf(owner: string): KnownOwner | undefined {
    const known = this.#owners.get(owner);
    return known && Date.now() - known.seenAt < (known.has ? this.#limits.maxAgeMs : absentMs) ? known : undefined;
  }

  async #hasInStore(store: Store, owner: string): Promise<boolean> {
    const known = this.#knownOf(owner);
    if (known) return known.has;
    const has = (await store.get(`${owner} ${marker}`)) !== undefined;
    // Meanwhile this process may have kept one.
    if (this.#knownOf(owner)?.has !== true) this.#owners.set(owner, { has, seenAt: Date.now(), notedAt: 0 });
    return has;
  }

  #write(write: Write): void {
    if (this.#pendingBytes + write.bytes > maxPendingBytes) {
      this.#report(
        new Error(`More than ${maxPendingBytes} bytes wait to be written.`),
        "turns are kept in this process only",
      );
      return;
    }
    this.#pendingBytes += write.bytes;
    this.#queue.push(write);
    if (this.#writing < maxWrites) void this.#writeQueue();
  }

  async #writeQueue(): Promise<void> {
    this.#writing++;
    for (let write = this.#queue.shift(); write && this.#store; write = this.#queue.shift()) {
      try {
        await this.#writeOne(this.#store, write);
        this.#isReported = false;
      } catch (error) {
        this.#report(error, "turns cannot be stored; they are kept in this process only");
      }
      this.#pendingBytes -= write.bytes;
    }
    if (--this.#writing === 0) for (const wake of this.#whenIdle.splice(0)) wake();
  }

  async #writeOne(store: Store, { owner, entries }: Write): Promise<void> {
    const [[id, text] = ["", ""], ...references] = entries;
    const now = Date.now();
    const { notedAt = 0 } = this.#owners.get(owner) ?? {};
    const isNoted = now - notedAt < noteMs;
    await Promise.all([store.set(`${owner} ${id}`, text), isNoted ? undefined : store.set(`${owner} ${marker}`, "1")]);
    this.#owners.set(owner, { has: true, seenAt: now, notedAt: isNoted ? notedAt : now });
    await Promise.all(references.map(([name, reference]) => store.set(`${owner} ${name}`, reference)));
  }

  #report(error: unknown, line: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#log.warn({ cause: loggedError(error) }, line);
  }
}

/** Resolves with `work`, or to undefined after `ms` milliseconds. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)));
  const first = await Promise.race([work, late]);
  clearTimeout(timer);
  return first;
}

/** The name of an entry that says that its owner has turns. */
const marker = "turn.any";

/** No client has the owner of another one, or of all clients without keys. It has no space, which ends the owner in a key of a store. */
function ownerName(owner: string | undefined): string {
  return owner === undefined ? "-" : `@${encodeURIComponent(owner)}`;
}

function entryName(key: string): string {
  if (key.length <= maxKeyLength) return `turn.key.${key}`;
  let digits = "";
  for (const byte of sha256(new TextEncoder().encode(key))) digits += byte.toString(16).padStart(2, "0");
  return `turn.hash.${digits}`;
}

/** The members of a stored text; those of another type are left out. */
function readEntry(text: string): { readonly at?: number; readonly id?: string; readonly parts?: readonly KeptPart[] } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return {};
  }
  if (!isObject(value)) return {};
  const { at, id, parts } = value;
  return {
    ...(typeof at === "number" && { at }),
    ...(typeof id === "string" && { id }),
    // Only this file writes such texts.
    ...(Array.isArray(parts) && { parts: parts as readonly KeptPart[] }),
  };
}

function readTurn(text: string): KeptTurn | undefined {
  const { parts } = readEntry(text);
  return parts && { parts };
}
