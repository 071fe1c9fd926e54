import { bodyTooLarge } from "../../wire/apis/failures.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { OpenList, type Placed } from "../../wire/core/open-list.ts";
import type { Steps } from "../../wire/core/steps.ts";
import { inTurns } from "./turns.ts";

/** How long a body waits for memory before its request is refused, in milliseconds. */
const waitMs = 10_000;
/** While others wait, a body must arrive at `bytesPerSecond` after this time, in milliseconds. */
const slowAfterMs = 5000;
/** How often slow senders are looked for, in milliseconds. */
const lookEveryMs = 1000;
/** While others wait for memory, a body must arrive at least at this rate. In bytes. */
const bytesPerSecond = 256 * 1024;
/** The first reservation for a body of unknown length, in bytes, and the factor by which each next one grows. */
const firstStep = 16 * 1024;
const growth = 4;
/** A body leaves this many times its size free for smaller ones, up to a quarter of the budget. */
const leftForSmaller = 4;

/**
 * Limits the total size of the request bodies that a server holds in memory. A body counts until its request has been answered, because the
 * parsed request is about as large. A body that exceeds the budget waits, and its socket is not read in the meantime.
 *
 * Each body leaves memory for smaller ones, and the smallest waiting body is admitted first, so a request never waits for memory that only
 * larger requests hold. No body counts for more than half of the budget, so a body of any size can be served alone.
 */
export class BodyBudget {
  /** In bytes. May change while bodies are held. */
  limit: number;
  #used = 0;
  /** By size, the smallest first; of one size, in the order of arrival. */
  readonly #waiting: Waiting[] = [];
  /** Bodies that are being received. */
  readonly #receiving = new OpenList<BodyLease>();
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #ledger: Ledger = {
    grow: (lease, size) => this.#grow(lease, size),
    complete: (lease, size) => this.#complete(lease, size),
    release: (lease, bytes) => this.#release(lease, bytes),
    receiving: (lease) => this.#receiving.add(lease),
  };

  constructor(limit: number) {
    this.limit = limit;
  }

  /** In bytes. */
  get used(): number {
    return this.#used;
  }

  /** Returns the lease of one body, which holds nothing at first. */
  lease(): BodyLease {
    return new BodyLease(this.#ledger);
  }

  /** Grows a lease to `size` bytes. Returns a promise if the budget is used up; it rejects with 503 if no memory becomes free in time. */
  #grow(lease: BodyLease, size: number): Promise<void> | undefined {
    const bytes = Math.min(size, Math.floor(this.limit / 2)) - lease.size;
    if (bytes <= 0) return undefined;
    const [first] = this.#waiting;
    if ((!first || first.bytes > bytes) && this.#fits(lease, bytes)) {
      this.#add(lease, bytes);
      return undefined;
    }
    const begun = performance.now();
    lease.waits = true;
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        lease,
        bytes,
        admit: () => {
          waiting.drop();
          // Waiting for memory does not count as slowness.
          lease.since += performance.now() - begun;
          resolve();
        },
        drop: () => {
          lease.waits = false;
          clearTimeout(timer);
        },
      };
      const timer = setTimeout(() => {
        lease.waits = false;
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        this.#watch();
        reject(budgetUsedUp());
      }, waitMs);
      this.#waiting.splice(this.#indexOf(bytes), 0, waiting);
      this.#watch();
    });
  }

  #add(lease: BodyLease, bytes: number): void {
    this.#used += bytes;
    lease.size += bytes;
  }

  #complete(lease: BodyLease, size: number): void {
    const counted = size < lease.size ? size : Math.max(lease.size, Math.min(size, Math.floor(this.limit / 2)));
    const surplus = lease.size - counted;
    lease.size = counted;
    this.#release(lease, surplus);
  }

  #release(lease: BodyLease, bytes: number): void {
    this.#used -= bytes;
    this.#receiving.delete(lease);
    if (lease.waits) {
      const at = this.#waiting.findIndex((waiting) => waiting.lease === lease);
      this.#waiting.splice(at, 1)[0]?.drop();
    }
    for (let [next] = this.#waiting; next && this.#fits(next.lease, next.bytes); [next] = this.#waiting) {
      this.#waiting.shift();
      this.#add(next.lease, next.bytes);
      next.admit();
    }
    this.#watch();
  }

  #fits({ size }: BodyLease, bytes: number): boolean {
    const left = Math.min((size + bytes) * leftForSmaller, this.limit / 4);
    return this.#used + bytes <= this.limit - left;
  }

  /** The index in the queue: after bodies that are not larger. */
  #indexOf(bytes: number): number {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiting[middle]?.bytes ?? 0) <= bytes) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Checks for slow senders while other bodies wait. */
  #watch(): void {
    if (this.#waiting.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    } else this.#timer ??= setInterval(() => this.#refuseSlow(), lookEveryMs);
  }

  #refuseSlow(): void {
    const now = performance.now();
    for (const lease of this.#receiving) {
      const allowedMs = slowAfterMs + (lease.received / bytesPerSecond) * 1000;
      if (!lease.waits && now - lease.since > allowedMs) lease.onTooSlow?.();
    }
  }
}

interface Waiting {
  readonly lease: BodyLease;
  readonly bytes: number;
  admit(): void;
  drop(): void;
}

interface Ledger {
  grow(lease: BodyLease, size: number): Promise<void> | undefined;
  complete(lease: BodyLease, size: number): void;
  release(lease: BodyLease, bytes: number): void;
  receiving(lease: BodyLease): void;
}

/** The memory of one request's body; `release` returns it to the budget. */
export class BodyLease implements Placed {
  place = -1;
  readonly #ledger: Ledger;
  #released = false;
  /** The reserved bytes. */
  size = 0;
  /** The bytes received, and the time of the first reservation by `performance.now()`. */
  received = 0;
  since = 0;
  /** Waits for memory. */
  waits = false;
  /** Called if the body arrives too slowly while other bodies wait. */
  onTooSlow: (() => void) | undefined;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /**
   * Reserves memory for a body of `bytes` bytes; NaN: unknown length. If it returns a promise, continue reading when it resolves. Rejects
   * with `FailureError` 503 if there is no memory in time.
   */
  begin(bytes: number): Promise<void> | undefined {
    if (this.#released) return undefined;
    const wait = this.#ledger.grow(this, Number.isNaN(bytes) ? firstStep : bytes);
    if (wait) return wait.then(() => this.#receive());
    this.#receive();
    return undefined;
  }

  /** Counts received bytes. If it returns a promise, continue reading when it resolves, as with `begin`. */
  arrived(bytes: number): Promise<void> | undefined {
    this.received += bytes;
    if (this.received <= this.size || this.#released) return undefined;
    return this.#ledger.grow(this, Math.max(this.received, this.size * growth));
  }

  /** Called with the length of the complete body, which is then reserved. A wait for more memory is dropped. */
  complete(bytes: number): void {
    this.onTooSlow = undefined;
    if (!this.#released) this.#ledger.complete(this, bytes);
  }

  /** Releases everything. A wait for more memory is dropped. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    const { size } = this;
    this.size = 0;
    this.#ledger.release(this, size);
  }

  #receive(): void {
    this.since = performance.now();
    if (!this.#released) this.#ledger.receiving(this);
  }
}

/** 503: the budget is used up. */
function budgetUsedUp(): FailureError {
  return new FailureError({
    message:
      "The requests in progress use all the memory that the server has for request bodies. Send the request again later, or a shorter one.",
    status: 503,
    kind: "overloaded",
    code: "request_bodies_full",
    retryAfterSeconds: 5,
  });
}

/** 408: the body arrives too slowly while others wait. */
export function bodyTooSlow(): FailureError {
  return new FailureError({
    message: `The request body arrived too slowly. While other requests wait for memory, at least ${bytesPerSecond} bytes per second must arrive.`,
    status: 408,
    kind: "invalid-request",
    code: "request_body_too_slow",
  });
}

/**
 * Reads a whole byte stream, for which `lease` has begun. Rejects with 413 beyond `limit` bytes, with 503 or 408 if the lease refuses more,
 * and with the result of `failed` if the stream fails.
 */
export async function readAll(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  lease: BodyLease,
  failed: (cause: unknown) => Error,
): Promise<Uint8Array> {
  const reader = stream.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  let isTooSlow = false;
  lease.onTooSlow = () => {
    isTooSlow = true;
    stop();
  };
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw failed(cause);
    });
    if (isTooSlow) throw bodyTooSlow();
    if (done) {
      lease.complete(size);
      return inTurns(joined(chunks, size));
    }
    size += value.length;
    if (size > limit) {
      stop();
      throw bodyTooLarge(limit);
    }
    chunks.push(value);
    const wait = lease.arrived(value.length);
    if (wait)
      await wait.catch((error: unknown) => {
        stop();
        throw error;
      });
  }
}

/** Concatenates chunks: 30 MB take 25 ms. `size`: the sum of their lengths. */
export function* joined(chunks: readonly Uint8Array[], size: number): Steps<Uint8Array> {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
    yield;
  }
  return whole;
}
