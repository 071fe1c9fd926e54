import { inBackground } from "./background.ts";
import type { Ejections, UrlState } from "./ejections.ts";
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
  /** As configured, in the order of the targets. */
  readonly #urls: readonly string[];
  readonly #ejections: Ejections | undefined;
  readonly #stopListening: (() => void) | undefined;
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `probe`: whether a target answers at all. */
  constructor(options: UpstreamOptions, open: OpenTransport, probe: (target: Target) => Promise<boolean>) {
    this.targets = options.urls.map((url) => new Target(url, options, open));
    this.#probe = probe;
    this.#log = options.log;
    this.#urls = options.urls;
    this.#ejections = options.ejections;
    this.#stopListening = options.ejections?.listen((url, state) => this.#heard(url, state));
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

  succeeded(target: Target): void {
    if (target.succeeded()) this.#tell(target, { inService: true });
  }

  failed(target: Target, cause: unknown): void {
    const answers = !isUnreachable(cause);
    if (!target.failed(performance.now(), answers)) return;
    this.#log?.("out of service", "warn", { url: target.url });
    this.#probeFromNowOn();
    this.#tell(target, { inService: false, answers });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopListening?.();
    await Promise.all(this.targets.map(({ transport }) => transport.destroy()));
  }

  #probeFromNowOn(): void {
    this.#timer ??= inBackground(setInterval(() => this.#probeDue(), probeEveryMs));
  }

  #probeDue(): void {
    const now = performance.now();
    for (const target of this.targets) {
      if (!target.beginProbe(now)) continue;
      void this.#probe(target).then((works) => {
        if (target.endProbe(works, performance.now())) this.#tell(target, { inService: false, answers: false });
        if (!works) return;
        this.succeeded(target);
        this.#log?.("in service again", "info", { url: target.url });
      });
    }
    if (this.targets.every((target) => target.inService())) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #tell(target: Target, state: UrlState): void {
    const url = this.#urls[this.targets.indexOf(target)];
    if (url !== undefined) this.#ejections?.tell(url, state);
  }

  #heard(url: string, state: UrlState): void {
    for (const [at, target] of this.targets.entries()) {
      if (this.#urls[at] !== url) continue;
      if (state.inService) target.succeeded();
      else {
        target.failedElsewhere(performance.now(), state.answers);
        this.#probeFromNowOn();
      }
    }
  }
}
