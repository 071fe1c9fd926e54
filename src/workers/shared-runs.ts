import type { DetachedRuns, OwnRun, ReadRun } from "../server/detached-runs.ts";
import { type ReasoningEnd, RunningAnswers } from "../server/running-answers.ts";
import { storeFailure } from "../server/client-stores.ts";
import type { DetachedRun } from "../apis/port-state.ts";
import type { Peer } from "./peer.ts";

/** A worker that does not answer within this time has died, or hangs. In milliseconds. */
const timeoutMs = 2000;

/** A worker reads the run of another one, from chunk `from` on. */
interface ReadMessage {
  readonly reader: number;
  readonly key: string;
  readonly from: number;
}

/** Returns a function that finds runs of other workers. */
export function findRunIn(primary: Peer): (key: string) => Promise<DetachedRun | undefined> {
  return async (key) => {
    const isThere = await primary.request("runs.find", key).catch(() => false);
    return isThere === true ? new RemoteRun(primary, key) : undefined;
  };
}

/** A run of another worker. */
class RemoteRun implements DetachedRun {
  readonly #primary: Peer;
  readonly #key: string;

  constructor(primary: Peer, key: string) {
    this.#primary = primary;
    this.#key = key;
  }

  async *events(): AsyncGenerator<string> {
    let reader: unknown;
    try {
      reader = await this.#primary.request("runs.open", this.#key);
      if (reader === undefined) return;
      for (let from = 0; ;) {
        const message: ReadMessage = { reader: reader as number, key: this.#key, from };
        const { text, next } = (await this.#primary.request("runs.read", message)) as ReadRun;
        if (text === "") return;
        yield text;
        from = next;
      }
    } catch (error) {
      throw storeFailure(error);
    } finally {
      if (reader !== undefined) this.#primary.notify("runs.close", reader);
    }
  }

  /** If its worker dies, the run has ended as well. */
  async cancel(): Promise<void> {
    await this.#primary.request("runs.cancel", this.#key).catch(() => {});
  }
}

/** Lets other workers read and cancel the runs of this one. */
export function lendRuns(primary: Peer, runs: DetachedRuns): void {
  /** Kept until the reader closes, so that a run can be read to its end after it has ended. */
  const readers = new Map<number, OwnRun>();
  primary.onRequest("runs.has", (key) => runs.own(key as string) !== undefined);
  primary.onRequest("runs.open", (body) => {
    const { reader, key } = body as ReadMessage;
    const run = runs.own(key);
    if (run) readers.set(reader, run);
    return run !== undefined;
  });
  primary.onRequest("runs.read", (body) => {
    const { reader, from } = body as ReadMessage;
    const run = readers.get(reader);
    if (!run) throw new Error("There is no such reader.");
    return run.read(from);
  });
  primary.onNotification("runs.close", (reader) => void readers.delete(reader as number));
  primary.onRequest("runs.cancel", (key) => runs.own(key as string)?.cancel());
}

/** The running answers of a worker, which finds those of other workers. */
export function shareAnswers(primary: Peer): RunningAnswers {
  const answers = new RunningAnswers(async (owner, id) => {
    const result = await primary.request("answers.end-reasoning", { owner, id }).catch((error: unknown) => {
      throw storeFailure(error);
    });
    return result as ReasoningEnd;
  });
  primary.onRequest("answers.end-own-reasoning", (body) => {
    const { owner, id } = body as { readonly owner: string; readonly id: string };
    return answers.endOwnReasoning(owner, id);
  });
  return answers;
}

/** In the primary process: connects the workers. */
export class RunsOfWorkers {
  readonly #workers = new Set<Peer>();
  /** The worker of the run, and the worker that reads it. */
  readonly #readers = new Map<number, { readonly owner: Peer; readonly reader: Peer }>();
  #lastReader = 0;

  join(worker: Peer): void {
    this.#workers.add(worker);
    worker.onRequest("runs.find", async (key) => (await this.#workerOf(key as string)) !== undefined);
    worker.onRequest("runs.open", (key) => this.#open(key as string, worker));
    worker.onRequest("runs.read", (body) => {
      const reader = this.#readers.get((body as ReadMessage).reader);
      if (!reader) throw new Error("The process that generated the response has ended.");
      return reader.owner.request("runs.read", body);
    });
    worker.onNotification("runs.close", (reader) => this.#close(reader as number));
    worker.onRequest("runs.cancel", async (key) => (await this.#workerOf(key as string))?.request("runs.cancel", key));
    worker.onRequest("answers.end-reasoning", (body) => this.#endReasoning(body, worker));
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      for (const [id, { owner, reader }] of this.#readers) if (owner === worker || reader === worker) this.#close(id);
    });
  }

  /** The result of the worker that has the answer; "not-running" if none of those that answer in time has it. */
  #endReasoning(body: unknown, by: Peer): Promise<ReasoningEnd> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve("not-running"), timeoutMs);
      const asked = [...this.#workers].map(async (worker) => {
        if (worker === by) return;
        const result = (await worker.request("answers.end-own-reasoning", body)) as ReasoningEnd;
        if (result !== "not-running") resolve(result);
      });
      void Promise.allSettled(asked).then(() => {
        clearTimeout(timer);
        resolve("not-running");
      });
    });
  }

  async #open(key: string, reader: Peer): Promise<number | undefined> {
    const owner = await this.#workerOf(key);
    const id = ++this.#lastReader;
    const message: ReadMessage = { reader: id, key, from: 0 };
    if (!owner || (await owner.request("runs.open", message)) !== true) return undefined;
    this.#readers.set(id, { owner, reader });
    if (!this.#workers.has(reader)) this.#close(id);
    return id;
  }

  #close(reader: number): void {
    this.#readers.get(reader)?.owner.notify("runs.close", reader);
    this.#readers.delete(reader);
  }

  /** The first worker that has the run; undefined if none of those that answer has it. */
  #workerOf(key: string): Promise<Peer | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      const asked = [...this.#workers].map(async (worker) => {
        if ((await worker.request("runs.has", key)) === true) resolve(worker);
      });
      void Promise.allSettled(asked).then(() => {
        clearTimeout(timer);
        resolve(undefined);
      });
    });
  }
}
