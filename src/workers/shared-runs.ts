import type { DetachedRuns, OwnRun, ReadRun } from "../server/detached-runs.ts";
import { storeFailure } from "../server/assembled-texts.ts";
import type { DetachedRun } from "../apis/port-state.ts";
import type { Peer } from "./peer.ts";

/** A worker that does not say within so many milliseconds whether a run is its own has died, or will soon. */
const patienceMs = 2000;

/** What a worker reads of another one's run: who reads, which run, and from which piece on. */
interface Reading {
  readonly reader: number;
  readonly key: string;
  readonly from: number;
}

/** A worker's way to the runs of the other workers. */
export function findRunIn(primary: Peer): (key: string) => Promise<DetachedRun | undefined> {
  return async (key) => {
    const isThere = await primary.ask("runs.find", key).catch(() => false);
    return isThere === true ? new RunElsewhere(primary, key) : undefined;
  };
}

/** A run that another worker has begun. */
class RunElsewhere implements DetachedRun {
  readonly #primary: Peer;
  readonly #key: string;

  constructor(primary: Peer, key: string) {
    this.#primary = primary;
    this.#key = key;
  }

  async *pieces(): AsyncGenerator<string> {
    let reader: unknown;
    try {
      reader = await this.#primary.ask("runs.open", this.#key);
      if (reader === undefined) return;
      for (let from = 0; ;) {
        const reading: Reading = { reader: reader as number, key: this.#key, from };
        const { text, next } = (await this.#primary.ask("runs.read", reading)) as ReadRun;
        if (text === "") return;
        yield text;
        from = next;
      }
    } catch (error) {
      throw storeFailure(error);
    } finally {
      if (reader !== undefined) this.#primary.tell("runs.close", reader);
    }
  }

  /** Where its worker dies meanwhile, nobody generates it, either. */
  async cancel(): Promise<void> {
    await this.#primary.ask("runs.cancel", this.#key).catch(() => {});
  }
}

/** Lets the other workers have what this one runs. */
export function lendRuns(primary: Peer, runs: DetachedRuns): void {
  /** Held until the reader closes: a run is read to its end, also when it is over before that. */
  const readers = new Map<number, OwnRun>();
  primary.answer("runs.has", (key) => runs.own(key as string) !== undefined);
  primary.answer("runs.open", (body) => {
    const { reader, key } = body as Reading;
    const run = runs.own(key);
    if (run) readers.set(reader, run);
    return run !== undefined;
  });
  primary.answer("runs.read", (body) => {
    const { reader, from } = body as Reading;
    const run = readers.get(reader);
    if (!run) throw new Error("Nobody reads here.");
    return run.read(from);
  });
  primary.hear("runs.close", (reader) => void readers.delete(reader as number));
  primary.answer("runs.cancel", (key) => runs.own(key as string)?.cancel());
}

/** The primary's side: it brings the workers together. */
export class RunsOfWorkers {
  readonly #workers = new Set<Peer>();
  /** Whose run each reader reads. */
  readonly #readers = new Map<number, { readonly of: Peer; readonly by: Peer }>();
  #lastReader = 0;

  join(worker: Peer): void {
    this.#workers.add(worker);
    worker.answer("runs.find", async (key) => (await this.#workerOf(key as string)) !== undefined);
    worker.answer("runs.open", (key) => this.#open(key as string, worker));
    worker.answer("runs.read", (body) => {
      const reader = this.#readers.get((body as Reading).reader);
      if (!reader) throw new Error("The process that generated the response has ended.");
      return reader.of.ask("runs.read", body);
    });
    worker.hear("runs.close", (reader) => this.#close(reader as number));
    worker.answer("runs.cancel", async (key) => (await this.#workerOf(key as string))?.ask("runs.cancel", key));
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      for (const [reader, { of, by }] of this.#readers) if (of === worker || by === worker) this.#close(reader);
    });
  }

  async #open(key: string, by: Peer): Promise<number | undefined> {
    const of = await this.#workerOf(key);
    const reader = ++this.#lastReader;
    if (!of || (await of.ask("runs.open", { reader, key, from: 0 } satisfies Reading)) !== true) return undefined;
    this.#readers.set(reader, { of, by });
    if (!this.#workers.has(by)) this.#close(reader);
    return reader;
  }

  #close(reader: number): void {
    this.#readers.get(reader)?.of.tell("runs.close", reader);
    this.#readers.delete(reader);
  }

  /** The first worker that has it; undefined: none has, of those that answer. */
  #workerOf(key: string): Promise<Peer | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), patienceMs);
      const asked = [...this.#workers].map(async (worker) => {
        if ((await worker.ask("runs.has", key)) === true) resolve(worker);
      });
      void Promise.allSettled(asked).then(() => {
        clearTimeout(timer);
        resolve(undefined);
      });
    });
  }
}
