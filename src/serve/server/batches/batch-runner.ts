import { messageBatches } from "../../../wire/apis/batches/anthropic.ts";
import type { BatchBeginning, BatchForm } from "../../../wire/apis/batches/form.ts";
import { openaiBatches } from "../../../wire/apis/batches/openai.ts";
import { loggedError } from "../../../wire/core/failure.ts";
import type { FileStore } from "../client-stores.ts";
import type { Batches, Service } from "../service.ts";
import { BatchRun } from "./batch-run.ts";
import { ClientBatches, RecentBatches } from "./stored-batches.ts";
import type { Claim } from "./stored-batches.ts";

/** How often batches of other processes are looked at, in milliseconds. */
const lookEveryMs = 10_000;
/** A process that has not reported for this long has ended, in milliseconds: one of another machine cannot be asked. */
const staleMs = 60_000;
/** The most clients whose batches one process runs at the same time. The batches of one client run one after the other. */
const maxRunning = 16;

/** Runs the batches of all clients: those that are created here, and those whose process has ended. */
export class BatchRunner implements Batches {
  readonly #service: Service;
  readonly #files: FileStore;
  readonly #recent: RecentBatches;
  /** By owner, the ids of batches that have not ended. */
  readonly #open = new Map<string, Set<string>>();
  readonly #running = new Map<string, BatchRun>();
  readonly #name: string;
  readonly #concurrency: number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking: Promise<void> | undefined;
  #looksAgain = false;
  #isClosed = false;

  /** `concurrency`: the most requests of a client that run at the same time. */
  private constructor(service: Service, files: FileStore, concurrency: number) {
    this.#service = service;
    this.#files = files;
    this.#recent = new RecentBatches(files);
    this.#concurrency = concurrency;
    // Several servers of one process are told apart.
    this.#name = `${service.processes?.own ?? ""} ${crypto.randomUUID()}`.trim();
  }

  /** Begins to look for batches, if files are on. */
  static start(service: Service, concurrency: number): BatchRunner | undefined {
    const { files } = service.stores;
    if (!files) return undefined;
    const runner = new BatchRunner(service, files, concurrency);
    runner.#start();
    return runner;
  }

  #start(): void {
    this.#timer = setInterval(() => this.look(), lookEveryMs);
    // The timer of a handler must not keep its process running.
    (this.#timer as { unref?: () => void }).unref?.();
    this.look();
  }

  /** Runs what may run. Called when a batch was created. */
  look(): void {
    this.#looksAgain = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
  }

  /** Called when a client has cancelled a batch. */
  cancelled(owner: string): void {
    void this.#running.get(owner)?.check();
  }

  /** Stops all requests, and gives the batches back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#looking;
    await Promise.all([...this.#running.values()].map((run) => run.stop()));
  }

  async #look(): Promise<void> {
    while (this.#looksAgain && !this.#isClosed) {
      this.#looksAgain = false;
      try {
        for (const { owner, id } of await this.#recent.added()) {
          const ids = this.#open.get(owner) ?? new Set();
          this.#open.set(owner, ids.add(id));
        }
        for (const owner of this.#open.keys()) await this.#startOneOf(owner);
      } catch (error) {
        this.#service.log.warn({ cause: loggedError(error) }, "the store of batches cannot be reached");
      }
    }
  }

  /** Starts the first batch of a client that no process runs. */
  async #startOneOf(owner: string): Promise<void> {
    if (this.#running.has(owner) || this.#running.size >= maxRunning) return;
    const batches = new ClientBatches(this.#files, owner);
    for (const id of this.#open.get(owner) ?? []) {
      const found = await batches.find(id);
      if (!found || found.state.ended) this.#forget(owner, id);
      else if (!this.#isClosed && (found.claim === undefined || (await this.#isStale(found.claim, batches, id)))) {
        const claim: Claim = { by: this.#name, number: found.nextClaim, at: Date.now() };
        await batches.add(id, { claim });
        const claimed = await batches.find(id);
        if (claimed?.claim?.by !== this.#name || claimed.claim.number !== claim.number) continue;
        return this.#run(claimed.state, claim, batches);
      }
    }
  }

  #forget(owner: string, id: string): void {
    const ids = this.#open.get(owner);
    ids?.delete(id);
    if (ids?.size === 0) this.#open.delete(owner);
  }

  #run(beginning: BatchBeginning, claim: Claim, batches: ClientBatches): void {
    const form: BatchForm = beginning.api === "openai" ? openaiBatches : messageBatches;
    const { owner } = batches;
    const run = new BatchRun({
      service: this.#service,
      files: this.#files,
      batches,
      beginning,
      form,
      claim,
      concurrency: this.#concurrency,
    });
    this.#running.set(owner, run);
    void run.done.then(() => {
      this.#running.delete(owner);
      if (!this.#isClosed) this.look();
    });
  }

  async #isStale({ by, at }: Claim, batches: ClientBatches, id: string): Promise<boolean> {
    if (by === this.#name) return !this.#running.has(batches.owner);
    if (this.#service.processes?.hasEnded(by) === true) return true;
    const beat = await batches.beat(id);
    return Date.now() - Math.max(at, beat?.by === by ? beat.at : 0) > staleMs;
  }
}
