import { Session } from "node:inspector";
import type { FuzzTarget } from "./targets.ts";

/** Bytes of an input at most. */
const maxLength = 4096;

/** A byte for each character, or UTF-8 where that is not possible. */
function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, /^[\0-\xff]*$/.test(text) ? "latin1" : "utf8");
}

/**
 * Changes inputs at random, and keeps those that reach a block of code that none has reached, or more often (by powers of two): V8's own
 * coverage says it. jazzer.js 4.0 would do the same with libFuzzer; its library does not load on Debian 12 (glibc 2.38), and 2.1 does not
 * install without a compiler.
 */
export class CoverageFuzzer {
  readonly #target: FuzzTarget;
  readonly #corpus: Uint8Array[];
  readonly #fresh: Uint8Array[];
  readonly #reached = new Set<string>();
  readonly #session = new Session();
  #random: number;
  runs: number = 0;

  constructor(target: FuzzTarget, { seed, corpus }: { readonly seed: number; readonly corpus: readonly Uint8Array[] }) {
    this.#target = target;
    this.#random = seed >>> 0 || 1;
    const seeds = target.seeds.map((one) => (typeof one === "string" ? bytesOf(one) : one));
    this.#corpus = [...seeds];
    this.#fresh = [...seeds, ...corpus];
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  get summary(): string {
    return `${this.runs} inputs, ${this.#corpus.length} kept, ${this.#reached.size} blocks`;
  }

  /** The next input: what was kept before, then changes of it. */
  next(): Uint8Array {
    const given = this.#fresh.shift();
    if (given) return given;
    let input = this.#one(this.#corpus) ?? new Uint8Array();
    for (let changes = 1 + this.#below(4); changes > 0; changes--) input = this.#changed(input);
    return input.subarray(0, maxLength);
  }

  /** Reads an input; returns whether it reached something new, and is kept. Throws what the target throws. */
  run(input: Uint8Array): boolean {
    this.runs++;
    this.#covered();
    this.#target.run(input);
    const before = this.#reached.size;
    for (const block of this.#covered()) this.#reached.add(block);
    if (this.#reached.size === 0) throw new Error("V8 reports no coverage: the fuzzer would only guess.");
    if (this.#reached.size === before) return false;
    this.#corpus.push(input.slice());
    return true;
  }

  /** The blocks of Truewire's code, and of its packages, that ran since the last call. */
  #covered(): string[] {
    const blocks: string[] = [];
    // The callback runs before `post` returns.
    this.#session.post("Profiler.takePreciseCoverage", (error, answer) => {
      if (error) throw error;
      for (const { url, scriptId, functions } of answer.result) {
        if (!url.startsWith("file:") || url.includes("/test/fuzz/")) continue;
        for (const { ranges } of functions)
          for (const { startOffset, endOffset, count } of ranges)
            if (count > 0) blocks.push(`${scriptId}:${startOffset}-${endOffset}:${Math.floor(Math.log2(count))}`);
      }
    });
    return blocks;
  }

  #changed(input: Uint8Array): Uint8Array {
    const at = this.#below(input.length + 1);
    const length = this.#below(Math.min(16, input.length - at) + 1);
    const bytes = [...input];
    switch (this.#below(7)) {
      case 0: // Another byte.
        if (at < bytes.length) bytes[at] = this.#below(256);
        break;
      case 1: // Another bit.
        if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << this.#below(8));
        break;
      case 2:
        bytes.splice(at, length);
        break;
      case 3:
        bytes.splice(at, 0, ...bytes.slice(at, at + length));
        break;
      case 4: {
        const word = this.#one(this.#target.words) ?? "";
        bytes.splice(at, length >> 1, ...bytesOf(word));
        break;
      }
      case 5: {
        const other = this.#one(this.#corpus) ?? input;
        const from = this.#below(other.length + 1);
        bytes.splice(at, bytes.length, ...other.subarray(from));
        break;
      }
      case 6: // Many of the same, which finds what is not linear.
        bytes.splice(
          at,
          0,
          ...Array<number[]>(1 + this.#below(64))
            .fill(bytes.slice(at, at + length))
            .flat(),
        );
    }
    return Uint8Array.from(bytes);
  }

  #one<T>(list: readonly T[]): T | undefined {
    return list[this.#below(list.length)];
  }

  /** xorshift32, so that a seed gives the same inputs. */
  #below(limit: number): number {
    let x = this.#random;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#random = x >>> 0;
    return limit === 0 ? 0 : this.#random % limit;
  }
}
