import type { GenerationFailure } from "../../wire/core/events.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { FairQueue, queueFull } from "../lifecycle/fair-queue.ts";

/** The requests of one owner that may wait, by default: as for a local model. */
const defaultQueueLimit = 64;

/** Limits how many requests an upstream processes in parallel. The others wait: higher tiers first, owners in turn. */
export class Admission {
  readonly #limit: number;
  readonly #queueLimit: number;
  readonly #waiting = new FairQueue<() => void>();
  #admitted = 0;

  constructor(limit = Infinity, queueLimit = defaultQueueLimit) {
    this.#limit = limit;
    this.#queueLimit = queueLimit;
  }

  get queued(): number {
    return this.#waiting.length;
  }

  /**
   * Calls `admitted` when the request may be sent: immediately, if fewer than the limit are open. Returns a function that must be called
   * once, when the request has ended or is no longer wanted; or the failure of a request that may not even wait. `isFurther`: a further
   * choice of a request, which is not refused if the request itself was not.
   */
  enter(
    { owner, tier }: Pick<GenerationRequest, "owner" | "tier">,
    admitted: () => void,
    isFurther = false,
  ): (() => void) | GenerationFailure {
    if (this.#admitted < this.#limit) {
      this.#admitted++;
      admitted();
      return () => this.#leave();
    }
    const waiting = this.#waiting.lengthOf(owner);
    if (!isFurther && waiting >= this.#queueLimit) return queueFull(waiting);
    let isAdmitted = false;
    const admit = (): void => {
      isAdmitted = true;
      admitted();
    };
    this.#waiting.push(admit, owner, tier);
    return () => (isAdmitted ? this.#leave() : this.#waiting.drop(admit));
  }

  #leave(): void {
    const next = this.#waiting.length > 0 ? this.#waiting.shift() : undefined;
    if (next) next();
    else this.#admitted--;
  }
}
