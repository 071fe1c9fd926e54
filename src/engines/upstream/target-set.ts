import { inBackground } from "./background.ts";
import type { UpstreamOptions } from "./options.ts";
import { Target } from "./target.ts";
import type { OpenTransport } from "./transport.ts";
import { isUnreachable } from "./transport-failure.ts";

/** How often ejected targets are looked at. */
const probeEveryMs = 500;

/**
 * The targets of an upstream. A request goes to the one with the least outstanding requests; one that fails again and again gets none
 * until a probe (its model list) has been answered.
 */
export class TargetSet {
  readonly targets: readonly Target[];
  readonly #probe: (target: Target) => Promise<boolean>;
  readonly #log: UpstreamOptions["log"];
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `probe`: whether a target answers at all. */
  constructor(options: UpstreamOptions, open: OpenTransport, probe: (target: Target) => Promise<boolean>) {
    this.targets = options.urls.map((url) => new Target(url, options, open));
    this.#probe = probe;
    this.#log = options.log;
  }

  /** The target for the next attempt, one that was not tried where possible. When all are ejected, one of them is tried anyway. */
  choose(tried: ReadonlySet<Target>): Target {
    // The timer may be gone with the request that set it (see `sharesTimers`), so every request looks, too.
    if (this.#timer !== undefined) this.#probeDue();
    const inService = this.targets.filter((target) => target.inService());
    const fresh = inService.filter((target) => !tried.has(target));
    const candidates = fresh.length > 0 ? fresh : inService.length > 0 ? inService : this.targets;
    const least = Math.min(...candidates.map(({ outstanding }) => outstanding));
    const idlest = candidates.filter(({ outstanding }) => outstanding === least);
    const target = idlest[this.#turn++ % idlest.length];
    if (!target) throw new Error("An upstream has no URL.");
    return target;
  }

  /** Whether another target than these could be tried. */
  hasFresh(tried: ReadonlySet<Target>): boolean {
    return this.targets.some((target) => target.inService() && !tried.has(target));
  }

  failed(target: Target, cause: unknown): void {
    if (!target.failed(performance.now(), !isUnreachable(cause))) return;
    this.#log?.("out of service", "warn", { url: target.url });
    this.#timer ??= inBackground(setInterval(() => this.#probeDue(), probeEveryMs));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.targets.map(({ transport }) => transport.destroy()));
  }

  #probeDue(): void {
    const now = performance.now();
    for (const target of this.targets) {
      if (!target.beginProbe(now)) continue;
      void this.#probe(target).then((works) => {
        target.endProbe(works, performance.now());
        if (works) this.#log?.("in service again", "info", { url: target.url });
      });
    }
    if (this.targets.every((target) => target.inService())) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}
