import { Digest } from "../../wire/core/digest.ts";
import type { GenerationFailure } from "../../wire/core/events.ts";
import type { ReceivedHeaders, Transport } from "./transport.ts";

/*
 * Several keys of one server. A conversation stays with its key while that serves: vendors cache prompts by account, and a rotation of keys
 * would miss the cache with each request. A key that the server refuses rests, and its conversations go to the others meanwhile.
 */

/** How long a key rests after a 401, and after a 429 that does not say, in milliseconds. */
const unknownKeyMs = 60_000;
const usualRestMs = 5000;
const spentRestMs = 60_000;
/** The longest rest that a server can ask for: a wrong Retry-After must not cost the key a day. */
const maxRestMs = 3_600_000;
/** The longest rest of a key whose remaining limit is 0: limits refill before the time at which all of it is there again. */
const maxRefillMs = 5000;

/** The code of the failure of a request for which there is no credential. */
export const noCredential = "credential_unavailable";

/** A key at one server: whether it rests, and what the server says is left of its limits. */
export class KeyState {
  readonly weight: number;
  /** For people: `key 2`. */
  readonly name: string;
  #restsUntil = 0;
  /** By rate: `requests`, `tokens`. */
  #remaining: Readonly<Record<string, number>> = {};

  constructor(weight: number, name: string) {
    this.weight = weight;
    this.name = name;
  }

  rests(now: number): boolean {
    return now < this.#restsUntil;
  }

  get remaining(): Readonly<Record<string, number>> {
    return this.#remaining;
  }

  /** Reads the limits that an answer reports. */
  received(headers: ReceivedHeaders, now: number): void {
    const remaining: Record<string, number> = {};
    for (const rate of rates)
      for (const [left, reset] of limitHeaders(rate)) {
        const value = headers[left];
        if (typeof value !== "string" || !/^\d{1,15}$/.test(value)) continue;
        remaining[rate] = Number(value);
        const wait = typeof headers[reset] === "string" ? resetMs(headers[reset], Date.now()) : undefined;
        if (value === "0" && wait !== undefined) this.#rest(now, Math.min(wait, maxRefillMs));
      }
    if (Object.keys(remaining).length > 0) this.#remaining = remaining;
  }

  /** Whether a failure is the key's, which rests then: another key may serve the request. */
  failed({ status, code, retryAfterSeconds }: GenerationFailure, now: number): boolean {
    if (status !== 401 && status !== 429 && code !== noCredential) return false;
    const usual = status === 401 ? unknownKeyMs : code === "insufficient_quota" ? spentRestMs : usualRestMs;
    this.#rest(now, retryAfterSeconds === undefined ? usual : Math.min(retryAfterSeconds * 1000, maxRestMs));
    return true;
  }

  #rest(now: number, ms: number): void {
    this.#restsUntil = Math.max(this.#restsUntil, now + ms);
  }
}

const rates = ["requests", "tokens", "input-tokens", "output-tokens"];

/** The headers of what is left and of its reset, of OpenAI and of Anthropic. */
function limitHeaders(rate: string): readonly (readonly [left: string, reset: string])[] {
  return [
    [`x-ratelimit-remaining-${rate}`, `x-ratelimit-reset-${rate}`],
    [`anthropic-ratelimit-${rate}-remaining`, `anthropic-ratelimit-${rate}-reset`],
  ];
}

/** Milliseconds until a reset: `12ms`, `6m0s`, `1.5s` (Go's durations), or a time (RFC 3339). undefined: neither. */
export function resetMs(text: string, unixMs: number): number | undefined {
  if (text.length > 64) return undefined;
  const [, ms] = /^(\d+)ms$/.exec(text) ?? [];
  if (ms !== undefined) return Number(ms);
  const [whole, hours = 0, minutes = 0, seconds = 0] = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$/.exec(text) ?? [];
  if (whole !== undefined && whole !== "")
    return (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  const time = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : Math.max(0, time - unixMs);
}

interface Pooled {
  /** Distinguishes URLs and keys. */
  readonly rankName: string;
  readonly keyState?: KeyState | undefined;
}

/**
 * Returns the target of a conversation by weighted rendezvous hashing: nothing is stored, instances agree, and a key that is added, removed or
 * rests moves only its own conversations. Source: Schindelhauer and Schomaker, "Weighted Distributed Hash Tables". `targets` must not be
 * empty.
 */
export function keyOfConversation<Target extends Pooled>(targets: readonly Target[], conversation: string): Target {
  let chosen: Target | undefined;
  let best = -1;
  for (const target of targets) {
    const [half = ""] = new Digest().add(conversation).add(target.rankName).value.split("-");
    const uniform = (Number.parseInt(half, 36) + 0.5) / 2 ** 32;
    const score = -(target.keyState?.weight ?? 1) / Math.log(uniform);
    if (score > best) [chosen, best] = [target, score];
  }
  if (!chosen) throw new Error("An upstream has no key.");
  return chosen;
}

/** The transport with further headers for each request: those of a key, in place of the first key's. */
export function withKeyHeaders(transport: Transport, own: Readonly<Record<string, string>>): Transport {
  const keyed = <Request extends { readonly headers: Readonly<Record<string, string>> }>(
    request: Request,
  ): Request => ({
    ...request,
    headers: { ...request.headers, ...own },
  });
  return {
    ...transport,
    dispatch: (request, handler) => transport.dispatch(keyed(request), handler),
    request: (request) => transport.request(keyed(request)),
    pass: (request) => transport.pass(keyed(request)),
  };
}
