import type { DetachedRuns } from "../server/detached-runs.ts";
import { type ReasoningEnd, RunningAnswers } from "../server/running-answers.ts";
import { storeFailure } from "../server/client-stores.ts";
import type { FoundRun, RunState } from "../server/written-text.ts";
import type { Peer } from "./peer.ts";

/** A worker that does not answer within this time has died, or hangs. In milliseconds. */
const timeoutMs = 2000;

/** A worker begins to read the run of another one at chunk `from`. The primary process numbers the readers. */
interface OpenMessage {
  readonly reader: number;
  readonly key: string;
  readonly from: number;
}

/** Returns a function that finds runs of other workers. */
export function findRunIn(primary: Peer): (key: string) => Promise<FoundRun | undefined> {
  return async (key) => {
    const state = await primary.request("runs.find", key).catch(() => undefined);
    return state ? new RemoteRun(primary, key, state as RunState) : undefined;
  };
}

/** A run of another worker. */
class RemoteRun implements FoundRun {
  readonly #primary: Peer;
  readonly #key: string;
  readonly state: RunState;

  constructor(primary: Peer, key: string, state: RunState) {
    this.#primary = primary;
    this.#key = key;
    this.state = state;
  }

  events(from = 0): AsyncIterableIterator<string> {
    const primary = this.#primary;
    const opened = primary.request("runs.open", { reader: 0, key: this.#key, from } satisfies OpenMessage);
    // It is awaited by the first step.
    opened.catch(() => {});
    const reader: AsyncIterableIterator<string> = {
      [Symbol.asyncIterator]: () => reader,
      async next() {
        try {
          const number = await opened;
          const text = number === undefined ? "" : ((await primary.request("runs.read", number)) as string);
          return text === "" ? { done: true, value: undefined } : { done: false, value: text };
        } catch (error) {
          throw storeFailure(error);
        }
      },
      return() {
        void opened.then(
          (number) => number !== undefined && primary.notify("runs.close", number),
          () => {},
        );
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    return reader;
  }

  /** If its worker dies, the run has ended as well. */
  async cancel(): Promise<void> {
    await this.#primary.request("runs.cancel", this.#key).catch(() => {});
  }
}

/** Lets other workers read and cancel the runs of this one. */
export function lendRuns(primary: Peer, runs: DetachedRuns): void {
  /** A run can be read to its end after it has ended. */
  const readers = new Map<number, AsyncIterator<string>>();
  primary.onRequest("runs.has", (key) => runs.own(key as string)?.state);
  primary.onRequest("runs.open", (body) => {
    const { reader, key, from } = body as OpenMessage;
    const run = runs.own(key);
    if (run) readers.set(reader, run.events(from));
    return run !== undefined;
  });
  primary.onRequest("runs.read", async (number) => {
    const reader = readers.get(number as number);
    if (!reader) throw new Error("There is no such reader.");
    const step = await reader.next();
    return step.done === true ? "" : step.value;
  });
  primary.onNotification("runs.close", (number) => {
    void readers.get(number as number)?.return?.();
    readers.delete(number as number);
  });
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
    worker.onRequest("runs.find", async (key) => (await this.#find(key as string))?.state);
    worker.onRequest("runs.open", (body) => this.#open(body as OpenMessage, worker));
    worker.onRequest("runs.read", (number) => {
      const reader = this.#readers.get(number as number);
      if (!reader) throw new Error("The process that generated the response has ended.");
      return reader.owner.request("runs.read", number);
    });
    worker.onNotification("runs.close", (reader) => this.#close(reader as number));
    worker.onRequest("runs.cancel", async (key) =>
      (await this.#find(key as string))?.worker.request("runs.cancel", key),
    );
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

  async #open({ key, from }: OpenMessage, reader: Peer): Promise<number | undefined> {
    const owner = (await this.#find(key))?.worker;
    const id = ++this.#lastReader;
    const message: OpenMessage = { reader: id, key, from };
    if (!owner || (await owner.request("runs.open", message)) !== true) return undefined;
    this.#readers.set(id, { owner, reader });
    if (!this.#workers.has(reader)) this.#close(id);
    return id;
  }

  #close(reader: number): void {
    this.#readers.get(reader)?.owner.notify("runs.close", reader);
    this.#readers.delete(reader);
  }

  /** The first worker that has the run, and its state there; undefined if none of those that answer has it. */
  #find(key: string): Promise<{ readonly worker: Peer; readonly state: RunState } | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      const asked = [...this.#workers].map(async (worker) => {
        const state = (await worker.request("runs.has", key)) as RunState | undefined;
        if (state) resolve({ worker, state });
      });
      void Promise.allSettled(asked).then(() => {
        clearTimeout(timer);
        resolve(undefined);
      });
    });
  }
}
