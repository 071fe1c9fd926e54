import { lastingNumbers, mergeNumbers } from "../server/metrics/merge-numbers.ts";
import type { NumbersOfProcess } from "../server/metrics/merge-numbers.ts";
import type { Metrics } from "../server/service.ts";
import { askAll } from "./peer.ts";
import type { Peer } from "./peer.ts";

/** A worker that does not tell its numbers within so many milliseconds is missing from this reading; Prometheus waits for ten seconds. */
const patienceMs = 2000;

interface WorkersUp {
  readonly worker: string;
  readonly isUp: boolean;
}

/** What the primary tells a worker that is asked for the numbers of all. */
interface NumbersOfOthers {
  readonly numbers: readonly NumbersOfProcess[];
  readonly workers: readonly WorkersUp[];
}

/** A worker's metrics: whoever reads them at any worker reads those of all. `ownText`: what this worker has counted, for the others. */
export function shareNumbers(primary: Peer, worker: string, own: Metrics, ownText: () => Promise<string>): Metrics {
  primary.answer("numbers.own", ownText);
  return {
    observe: (record, outcome) => own.observe(record, outcome),
    contentType: own.contentType,
    async text(engines, openRequests) {
      const text = await own.text(engines, openRequests);
      const told = await primary.ask("numbers.others", text).catch(() => undefined);
      const { numbers, workers } = (told ?? { numbers: [], workers: [{ worker, isUp: true }] }) as NumbersOfOthers;
      return mergeNumbers([{ worker, text }, ...numbers]) + upText(workers);
    },
    close: () => own.close(),
  };
}

function upText(workers: readonly WorkersUp[]): string {
  const head = "# HELP truewire_worker_up 1: the worker has told its numbers.\n# TYPE truewire_worker_up gauge\n";
  return head + workers.map(({ worker, isUp }) => `truewire_worker_up{worker="${worker}"} ${isUp ? 1 : 0}\n`).join("");
}

/** The primary's side. It keeps what a worker told last, so that no counter goes back when the worker ends, or is late. */
export class NumbersOfWorkers {
  readonly #ofPrimary: () => Promise<string>;
  readonly #names = new Map<Peer, string>();
  readonly #told = new Map<Peer, string>();
  #gone = "";

  /** `ofPrimary`: the primary's own numbers. */
  constructor(ofPrimary: () => Promise<string>) {
    this.#ofPrimary = ofPrimary;
  }

  /** `name`: what tells the worker from the others. */
  join(worker: Peer, name: string): void {
    this.#names.set(worker, name);
    worker.answer("numbers.others", (text) => this.#others(worker, text as string));
    void worker.closed.then(() => {
      this.#names.delete(worker);
      const last = this.#told.get(worker);
      this.#told.delete(worker);
      if (last !== undefined) this.#gone = mergeNumbers([this.#gone, lastingNumbers(last)].map(ofNobody));
    });
  }

  async #others(asking: Peer, text: string): Promise<NumbersOfOthers> {
    this.#told.set(asking, text);
    const others = [...this.#names.keys()].filter((worker) => worker !== asking);
    const [answers, ofPrimary] = await Promise.all([askAll(others, "numbers.own", patienceMs), this.#ofPrimary()]);
    for (const [worker, told] of answers) if (this.#names.has(worker)) this.#told.set(worker, told as string);
    const numbers: NumbersOfProcess[] = [];
    const workers: WorkersUp[] = [{ worker: this.#names.get(asking) ?? "", isUp: true }];
    for (const worker of others) {
      const name = this.#names.get(worker);
      const last = this.#told.get(worker);
      // It has ended meanwhile: what it told is in what is kept of those that are gone.
      if (name === undefined) continue;
      const isUp = answers.has(worker);
      workers.push({ worker: name, isUp });
      if (last !== undefined) numbers.push({ worker: name, text: isUp ? last : lastingNumbers(last) });
    }
    return { numbers: [...numbers, ofNobody(this.#gone), { worker: "primary", text: ofPrimary }], workers };
  }
}

function ofNobody(text: string): NumbersOfProcess {
  return { worker: "", text };
}
