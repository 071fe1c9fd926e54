import type { Limits } from "./limits.ts";
import { drained } from "./use.ts";
import type { Use } from "./use.ts";

const dayMs = 86_400_000;

/** A time, by two clocks. */
export interface Moment {
  /** Milliseconds of a clock that never jumps. */
  readonly ms: number;
  /** Unix time in milliseconds. */
  readonly unixMs: number;
}

/** The use under one name, in this process. */
export class Account {
  #requests = 0;
  #tokens = 0;
  /** When both were brought up to date, by the clock that never jumps. */
  #at = 0;
  /** Tokens by day. Two days are kept, so that a clock that jumps to another one and back frees nobody of what was used. */
  #days: readonly Day[] = [];
  open = 0;

  /** What is used now. */
  use({ requestsPerMinute, tokensPerMinute }: Limits, { ms, unixMs }: Moment): Use {
    this.#requests = drained(this.#requests, requestsPerMinute, ms - this.#at);
    this.#tokens = drained(this.#tokens, tokensPerMinute, ms - this.#at);
    this.#at = ms;
    return {
      requests: this.#requests,
      tokens: this.#tokens,
      today: this.#day(dayOf(unixMs)).tokens,
      dayLeftMs: dayMs - (unixMs % dayMs),
      open: this.open,
    };
  }

  /** Opens a request. Returns the day that its tokens are counted on. */
  begin(tokens: number, { unixMs }: Moment): number {
    const today = this.#day(dayOf(unixMs));
    this.#requests++;
    this.#tokens += tokens;
    today.tokens += tokens;
    this.open++;
    return today.number;
  }

  /** Ends a request of that day that has cost so many tokens more (or less) than were counted. */
  end(difference: number, day: number): void {
    this.open--;
    this.#tokens = Math.max(0, this.#tokens + difference);
    const counted = this.#days.find(({ number }) => number === day);
    if (counted) counted.tokens = Math.max(0, counted.tokens + difference);
  }

  /** Goes on from what all instances have used together; what is open here stays. */
  adopt(use: Use, { ms, unixMs }: Moment): void {
    this.#requests = use.requests;
    this.#tokens = use.tokens;
    this.#at = ms;
    this.#day(dayOf(unixMs)).tokens = use.today;
  }

  #day(number: number): Day {
    const [latest, other] = this.#days;
    if (latest?.number === number) return latest;
    const day = other?.number === number ? other : { number, tokens: 0 };
    this.#days = latest ? [day, latest] : [day];
    return day;
  }
}

interface Day {
  readonly number: number;
  tokens: number;
}

function dayOf(unixMs: number): number {
  return Math.floor(unixMs / dayMs);
}
