import type { BatchBeginning, BatchCounts, BatchEnd, BatchState, BatchUsage } from "../../../wire/apis/batches/form.ts";
import type { Keyspace } from "../../../wire/apis/port-state.ts";
import { keyspace } from "../client-stores.ts";
import type { FileStore } from "../client-stores.ts";
import { addToList, readList } from "../files/stored-list.ts";

/** What a batch has done so far. */
export interface BatchProgress {
  readonly counts: BatchCounts;
  readonly usage: BatchUsage;
}

/**
 * Each line of a batch's text. An append is atomic, so what several processes add is read by all in the same order. Times are Unix times in
 * seconds; those of claims in milliseconds.
 */
export type BatchEvent =
  | { readonly claim: Claim }
  /** The process gives the batch back. */
  | { readonly released: number }
  | { readonly started: { readonly at: number; readonly total: number; readonly model?: string | undefined } }
  | { readonly cancelled: number }
  | { readonly finalizing: number }
  | { readonly ended: BatchEnd & BatchProgress };

/** A process takes a batch over. Of the claims with the same number, the first one counts. */
export interface Claim {
  readonly by: string;
  readonly number: number;
  readonly at: number;
}

/** A batch as its text says. */
export interface StoredBatch {
  readonly state: BatchState;
  /** The claim that counts; absent: no process runs the batch. */
  readonly claim?: Claim | undefined;
  /** The number of the next claim. */
  readonly nextClaim: number;
}

/** What the process that runs a batch reports every few seconds. */
export interface Beat extends BatchProgress {
  readonly by: string;
  /** By `Date.now`. */
  readonly at: number;
}

const nothingDone: BatchProgress = {
  counts: { total: 0, completed: 0, failed: 0, cancelled: 0, expired: 0 },
  usage: { input: 0, cached: 0, output: 0, reasoning: 0 },
};

const dayMs = 86_400_000;

/** The batches of one client. */
export class ClientBatches {
  readonly #space: Keyspace;
  readonly #all: Keyspace;
  readonly #maxAgeMs: number;
  readonly owner: string;

  constructor({ store, maxAgeMs }: FileStore, owner: string) {
    this.owner = owner;
    this.#space = keyspace(store, owner);
    this.#all = keyspace(store, "");
    this.#maxAgeMs = maxAgeMs;
  }

  async create(batch: BatchBeginning): Promise<void> {
    await this.#space.set(textKey(batch.id), JSON.stringify(batch));
    await addToList(this.#space, batch.api, batch.id);
    await this.#all.append(openKey(Date.now()), `\n${this.owner} ${batch.id}`, true);
  }

  /** Resolves to whether the batch exists. */
  add(id: string, event: BatchEvent): Promise<boolean> {
    return this.#space.append(textKey(id), `\n${JSON.stringify(event)}`);
  }

  async find(id: string): Promise<StoredBatch | undefined> {
    const text = await this.#space.get(textKey(id));
    return text === undefined ? undefined : readBatch(text);
  }

  /** The batch with what its process reported last. */
  async findWithProgress(id: string): Promise<StoredBatch | undefined> {
    const found = await this.find(id);
    if (!found || found.state.ended) return found;
    const beat = await this.beat(id);
    const { total } = found.state.counts;
    return beat ? { ...found, state: { ...found.state, counts: { ...beat.counts, total }, usage: beat.usage } } : found;
  }

  async beat(id: string): Promise<Beat | undefined> {
    const text = await this.#space.get(beatKey(id));
    return text === undefined ? undefined : (JSON.parse(text) as Beat);
  }

  setBeat(id: string, beat: Beat): Promise<void> {
    return this.#space.set(beatKey(id), JSON.stringify(beat));
  }

  async delete({ id, api }: BatchBeginning): Promise<void> {
    await addToList(this.#space, api, `-${id}`);
    for (const key of [textKey(id), beatKey(id), inputKey(id), resultsKey(id)]) await this.#space.delete(key);
  }

  /** The ids of an API's batches, the newest first. */
  list(api: BatchBeginning["api"]): Promise<readonly string[]> {
    return readList(this.#space, api, this.#maxAgeMs);
  }

  /** The text under a key of this client. */
  text(key: string): Promise<string | undefined> {
    return this.#space.get(key);
  }

  setText(key: string, text: string | Iterable<string, void, undefined>): Promise<void> {
    return this.#space.set(key, text);
  }

  /** Resolves to whether the text existed. */
  append(key: string, text: string, creates: boolean): Promise<boolean> {
    return this.#space.append(key, text, creates);
  }
}

function textKey(id: string): string {
  return `batch ${id}`;
}

function beatKey(id: string): string {
  return `beat ${id}`;
}

/** The requests of a batch that came with it. */
export function inputKey(id: string): string {
  return `input ${id}`;
}

/** The results of a batch that has no files. */
export function resultsKey(id: string): string {
  return `results ${id}`;
}

function openKey(at: number): string {
  return `batches of day ${Math.floor(at / dayMs)}`;
}

/** The batches of all clients that were created today or yesterday: older ones have expired. */
export class RecentBatches {
  readonly #space: Keyspace;
  readonly #read = new Map<string, number>();

  constructor({ store }: FileStore) {
    this.#space = keyspace(store, "");
  }

  /** Those that were added since the last call. */
  async added(): Promise<readonly { readonly owner: string; readonly id: string }[]> {
    const added: { readonly owner: string; readonly id: string }[] = [];
    const now = Date.now();
    for (const key of [openKey(now - dayMs), openKey(now)]) {
      const end = await this.#space.readFrom(key, this.#read.get(key) ?? 0);
      if (!end) continue;
      // A line that another process is writing is read the next time.
      this.#read.set(key, end.size);
      for (const line of end.text.split("\n")) {
        const [owner, id] = line.split(" ");
        if (owner !== undefined && id) added.push({ owner, id });
      }
    }
    return added;
  }
}

/** Reads the text of a batch. Lines that a crash has torn are ignored. */
export function readBatch(text: string): StoredBatch | undefined {
  const [first = "", ...lines] = text.split("\n");
  const beginning = parsed(first) as BatchBeginning | undefined;
  if (!beginning) return undefined;
  const { total = 0 } = beginning;
  const state: Writable<BatchState> = { ...beginning, ...nothingDone, counts: { ...nothingDone.counts, total } };
  let claim: Claim | undefined;
  let nextClaim = 0;
  for (const line of lines) {
    const event = parsed(line) as BatchEvent | undefined;
    if (!event) continue;
    if ("claim" in event) {
      if (event.claim.number !== nextClaim) continue;
      claim = event.claim;
      nextClaim++;
    } else if ("released" in event) {
      if (event.released === claim?.number) claim = undefined;
    } else if ("started" in event) {
      const { at, total, model } = event.started;
      state.startedAt ??= at;
      state.model = model;
      state.counts = { ...nothingDone.counts, total };
    } else if ("cancelled" in event) state.cancelledAt ??= event.cancelled;
    else if ("finalizing" in event) state.finalizingAt ??= event.finalizing;
    else if ("ended" in event && !state.ended) {
      const { counts, usage, ...ended } = event.ended;
      Object.assign(state, { counts, usage, ended });
    }
  }
  return { state, claim, nextClaim };
}

type Writable<T> = { -readonly [Member in keyof T]: T[Member] };

function parsed(line: string): unknown {
  try {
    return line === "" ? undefined : (JSON.parse(line) as unknown);
  } catch {
    return undefined;
  }
}
