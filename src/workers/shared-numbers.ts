import { lastingNumbers, mergeNumbers } from "../server/metrics/merge-numbers.ts";
import type { NumbersOfProcess } from "../server/metrics/merge-numbers.ts";
import type { Metrics } from "../server/service.ts";
import { askAll } from "./peer.ts";
import type { Peer } from "./peer.ts";

/** A worker that does not answer within this time is left out; Prometheus waits for ten seconds. In milliseconds. */
const timeoutMs = 2000;

interface WorkerState {
  readonly worker: string;
  readonly isUp: boolean;
}

/** The answer of the primary process to a worker that is scraped. */
interface NumbersOfOthers {
  readonly numbers: readonly NumbersOfProcess[];
  readonly workers: readonly WorkerState[];
}

/** A worker's metrics: any worker returns those of all. `ownText` returns the metrics of this worker, for the others. */
export function shareNumbers(primary: Peer, worker: string, own: Metrics, ownText: () => Promise<string>): Metrics {
  primary.onRequest("numbers.own", ownText);
  return {
    observe: (record, outcome) => own.observe(record, outcome),
    contentType: own.contentType,
    async text(engines, openRequests) {
      const text = await own.text(engines, openRequests);
      const answer = await primary.request("numbers.others", text).catch(() => undefined);
      const { numbers, workers } = (answer ?? { numbers: [], workers: [{ worker, isUp: true }] }) as NumbersOfOthers;
      return mergeNumbers([{ worker, text }, ...numbers]) + upText(workers);
    },
    close: () => own.close(),
  };
}

function upText(workers: readonly WorkerState[]): string {
  const head = "# HELP truewire_worker_up 1: the worker has reported its metrics.\n# TYPE truewire_worker_up gauge\n";
  return head + workers.map(({ worker, isUp }) => `truewire_worker_up{worker="${worker}"} ${isUp ? 1 : 0}\n`).join("");
}

/** In the primary process. It keeps the last metrics of each worker, so that no counter decreases if the worker ends or is late. */
export class NumbersOfWorkers {
  readonly #ofPrimary: () => Promise<string>;
  readonly #names = new Map<Peer, string>();
  readonly #texts = new Map<Peer, string>();
  #gone = "";

  /** `ofPrimary` returns the metrics of the primary process. */
  constructor(ofPrimary: () => Promise<string>) {
    this.#ofPrimary = ofPrimary;
  }

  /** `name` identifies the worker. */
  join(worker: Peer, name: string): void {
    this.#names.set(worker, name);
    worker.onRequest("numbers.others", (text) => this.#others(worker, text as string));
    void worker.closed.then(() => {
      this.#names.delete(worker);
      const last = this.#texts.get(worker);
      this.#texts.delete(worker);
      if (last !== undefined) this.#gone = mergeNumbers([this.#gone, lastingNumbers(last)].map(unnamed));
    });
  }

  async #others(asking: Peer, text: string): Promise<NumbersOfOthers> {
    this.#texts.set(asking, text);
    const others = [...this.#names.keys()].filter((worker) => worker !== asking);
    const [answers, ofPrimary] = await Promise.all([askAll(others, "numbers.own", timeoutMs), this.#ofPrimary()]);
    for (const [worker, own] of answers) if (this.#names.has(worker)) this.#texts.set(worker, own as string);
    const numbers: NumbersOfProcess[] = [];
    const workers: WorkerState[] = [{ worker: this.#names.get(asking) ?? "", isUp: true }];
    for (const worker of others) {
      const name = this.#names.get(worker);
      const last = this.#texts.get(worker);
      // It has ended in the meantime: its counters are in those of the ended workers.
      if (name === undefined) continue;
      const isUp = answers.has(worker);
      workers.push({ worker: name, isUp });
      if (last !== undefined) numbers.push({ worker: name, text: isUp ? last : lastingNumbers(last) });
    }
    return { numbers: [...numbers, unnamed(this.#gone), { worker: "primary", text: ofPrimary }], workers };
  }
}

function unnamed(text: string): NumbersOfProcess {
  return { worker: "", text };
}
