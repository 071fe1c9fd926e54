import { modelFamily } from "../../wire/core/turn-state.ts";
import { digestText } from "../../wire/core/digest.ts";
import { sourcePortOf } from "../../wire/apis/ports.ts";
import { urlOfConversation } from "./balance.ts";
import { withCredential } from "./credential.ts";
import { keyOfConversation, KeyState, withKeyHeaders } from "./key-pool.ts";
import type { Credential, PoolKey, UpstreamOptions } from "./options.ts";
import { inBackground } from "./transport.ts";
import type { OpenTransport, Transport } from "./transport.ts";
import type { GenerationFailure } from "../../wire/core/events.ts";
import type { UpstreamUrl } from "../../wire/core/engine.ts";
import { loggedFailure } from "../../wire/core/failure.ts";
import { isUnreachable } from "./transport-failure.ts";

/** After this many failures in a row a target gets no requests, if there are others. */
const failuresUntilEjected = 3;
/** How long an ejected target waits for a probe, and for each further one. */
const ejectionMs = 2000;
/** How often targets are checked for a probe that is due. */
const probeEveryMs = 500;

/** One base URL: its connections, its load, and whether it is in service. */
export class UpstreamTarget {
  /** For people: without credentials, and without the values of its query. */
  readonly url: string;
  readonly transport: Transport;
  readonly credential: Credential | undefined;
  /** Identifies the URL and the credentials, for the states that the server gives (`TurnState.source`). */
  readonly source: string;
  /** Present if the upstream has several keys. */
  readonly keyState: KeyState | undefined;
  readonly rankName: string;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #query: string;
  /** Requests whose answers are not complete. */
  outstanding = 0;
  /** Failed attempts that were followed by another one. */
  retries = 0;
  /** The failure since the last success, for people. */
  failure: string | undefined;
  #ejections = 0;
  #failures = 0;
  #answers = true;
  #probing = false;
  /** 0: in service. Else the time (of `performance.now`) when it is probed. */
  #ejectedUntil = 0;

  /** `pooled`: one of several keys, and its number. */
  constructor(
    url: string,
    options: UpstreamOptions,
    open: OpenTransport,
    pooled?: PoolKey & { readonly number: number },
  ) {
    const base = new URL(url);
    this.url = shownUrl(url);
    const { headers, sourceId = digestText } = options;
    const own = pooled?.key ?? options.credential ?? options.key;
    const key = typeof own === "object" ? own.id : own;
    this.source = sourceId(JSON.stringify([url, key, headers]));
    this.keyState = pooled && new KeyState(pooled.weight, `key ${pooled.number}`);
    this.rankName = `${url} ${key}`;
    this.#origin = base.origin;
    this.#query = base.search;
    this.#basePath = base.pathname.replace(/\/+$/, "");
    const transport = open(base.origin, options);
    const port = sourcePortOf(options);
    if (typeof own === "object") this.transport = withCredential(transport, base.origin, port, own);
    else this.transport = pooled ? withKeyHeaders(transport, port.headers(own)) : transport;
    this.credential = typeof own === "object" ? own : undefined;
  }

  /**
   * The path of an endpoint (`/chat/completions`) on this server, with the query of the base URL. `model`: the name that replaces `{model}`
   * in the base URL, where the server has a path for each model (Azure's deployments).
   */
  path(endpoint: string, model = ""): string {
    const query = endpoint.includes("?") ? this.#query.replace("?", "&") : this.#query;
    return this.#basePath.replace("%7Bmodel%7D", () => encodeURIComponent(model)) + endpoint + query;
  }

  /** The URL of an endpoint, for people: without credentials and query. */
  endpointUrl(endpoint: string): string {
    return `${this.#origin}${this.#basePath}${endpoint.split("?", 1)[0] ?? ""}`;
  }

  /** The path of an endpoint that replaces the base URL's `/v1`. */
  rootPath(endpoint: string): string {
    return this.#basePath.replace(/\/v1$/, "") + endpoint + this.#query;
  }

  report(): UpstreamUrl {
    const { url, outstanding, retries, failure } = this;
    const state = this.inService() ? "ready" : this.#answers ? "ejected" : "absent";
    const counts = { open: outstanding, retries, ejections: this.#ejections };
    const { name: key, remaining = {} } = this.keyState ?? {};
    return {
      url,
      state,
      ...counts,
      ...(failure !== undefined && { failure }),
      ...(key !== undefined && { key }),
      ...(Object.keys(remaining).length > 0 && { remaining }),
    };
  }

  inService(): boolean {
    return this.#ejectedUntil === 0 && this.keyState?.rests(performance.now()) !== true;
  }

  /** Whether the server answers at all, if only with errors. An error for one client must not make it absent for all. */
  answers(): boolean {
    return this.#answers;
  }

  /** Begins a probe if the target is ejected and a probe is due. */
  beginProbe(now: number): boolean {
    if (this.#probing || this.#ejectedUntil === 0 || now < this.#ejectedUntil) return false;
    this.#probing = true;
    return true;
  }

  /** Ends a probe. A request may have succeeded during it. */
  endProbe(answers: boolean, now: number): void {
    this.#probing = false;
    if (this.#ejectedUntil === 0 || answers) return;
    this.#answers = false;
    this.#ejectUntil(now + ejectionMs);
  }

  /** Puts the target in service again. */
  succeeded(): void {
    this.#failures = 0;
    this.failure = undefined;
    this.#ejectedUntil = 0;
    this.#answers = true;
  }

  /** Records a failure of the server, not of a request. Returns true if it put the target out of service. */
  failed(now: number, answers: boolean): boolean {
    this.#failures++;
    const wasEjected = this.#ejectedUntil !== 0;
    if (!wasEjected && this.#failures < failuresUntilEjected) return false;
    this.#answers = answers;
    this.#ejectUntil(now + ejectionMs);
    if (!wasEjected) this.#ejections++;
    return !wasEjected;
  }

  #ejectUntil(time: number): void {
    this.#ejectedUntil = Math.max(this.#ejectedUntil, time);
  }
}

/** A URL as logs and messages show it. */
export function shownUrl(url: string): string {
  const shown = new URL(url);
  const { username, search } = shown;
  shown.username = "";
  shown.password = "";
  shown.search = "";
  const names = [...new URLSearchParams(search).keys()].map((name) => `${name}=[key]`);
  const text = shown.href.replace(/\/$/, "") + (names.length > 0 ? `?${names.join("&")}` : "");
  return username === "" ? text : text.replace("//", "//[key]@");
}

/** Who answers, for the states of the answer: the target and the family of the model. */
export function stateSource(target: UpstreamTarget, model: string): string {
  return `${target.source}.${modelFamily(model)}`;
}

/**
 * The targets of an upstream. A request goes to the target of its conversation (`balance.ts`), or to the one with the fewest outstanding
 * requests. A target that fails several times in a row is ejected: it gets no requests until it has answered a probe (a request for its
 * model list).
 */
export class TargetSet {
  readonly targets: readonly UpstreamTarget[];
  readonly #probe: (target: UpstreamTarget) => Promise<boolean>;
  readonly #log: UpstreamOptions["log"];
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `probe`: whether a target answers. */
  constructor(options: UpstreamOptions, open: OpenTransport, probe: (target: UpstreamTarget) => Promise<boolean>) {
    const { urls, keys = [] } = options;
    this.targets = urls.flatMap((url) =>
      keys.length === 0
        ? [new UpstreamTarget(url, options, open)]
        : keys.map((key, at) => new UpstreamTarget(url, options, open, { ...key, number: at + 1 })),
    );
    this.#probe = probe;
    this.#log = options.log;
  }

  /**
   * Chooses the target of the next attempt: if possible one that was not tried. If all are ejected, one of them is tried anyway.
   * `conversation`: its key, if requests are balanced by it. `source`: the target that made the conversation's latest state; others would
   * refuse that.
   */
  choose(tried: ReadonlySet<UpstreamTarget>, conversation?: string, source?: string): UpstreamTarget {
    // The timer may have ended with the request that set it (see `sharesTimers`), so every request checks, too.
    if (this.#timer !== undefined) this.#probeDue();
    const [only, ...others] = this.targets;
    if (only && others.length === 0) return only;
    const inService = this.targets.filter((target) => target.inService());
    const fresh = inService.filter((target) => !tried.has(target));
    const candidates = fresh.length > 0 ? fresh : inService.length > 0 ? inService : this.targets;
    const maker =
      source === undefined ? undefined : candidates.find((target) => source.startsWith(`${target.source}.`));
    if (maker) return maker;
    if (conversation !== undefined && only?.keyState) return keyOfConversation(candidates, conversation);
    if (conversation !== undefined) return urlOfConversation(candidates, conversation);
    const least = Math.min(...candidates.map(({ outstanding }) => outstanding));
    const idlest = candidates.filter(({ outstanding }) => outstanding === least);
    const target = idlest[this.#turn++ % idlest.length];
    if (!target) throw new Error("An upstream has no URL.");
    return target;
  }

  /** Whether a target in service has not been tried. */
  hasFresh(tried: ReadonlySet<UpstreamTarget>): boolean {
    return this.targets.some((target) => target.inService() && !tried.has(target));
  }

  failed(target: UpstreamTarget, failure: GenerationFailure): void {
    target.failure = failure.isForeign ? `It answered with status ${failure.status}.` : loggedFailure(failure);
    if (!target.failed(performance.now(), !isUnreachable(failure.cause))) return;
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
        if (!works) return;
        target.succeeded();
        this.#log?.("in service again", "info", { url: target.url });
      });
    }
    if (this.targets.every((target) => target.inService())) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}
