import { isObject } from "../../core/json.ts";
import type { LogListener } from "../../core/generation-observer.ts";
import { learnRefusal } from "../../apis/adapt/learn-refusal.ts";
import { mergedProfile } from "../../apis/adapt/lessons.ts";
import { isRefusalOfProbe, plainProbe, type ProfileProbe, profileProbes } from "../../apis/adapt/profile-probes.ts";
import type { RequestBody, ServerProfile } from "../../apis/adapt/server-profile.ts";
import { readFailure } from "../../apis/tolerant/read-failure.ts";
import { readUsage } from "../../apis/tolerant/read-usage.ts";
import { RepairLog } from "../../apis/tolerant/repairs.ts";
import { datedProfile, type ProfileStore } from "./learned-profiles.ts";
import type { UpstreamTarget } from "./targets.ts";
import { inBackground, readBody, type ReceivedHeaders } from "./transport.ts";

/** How long a server must be idle before a probe, so that no client waits for one. */
const defaultIdleMs = 5000;
/** The same between two probes. */
const idleBetweenMs = 100;
/** How often it is checked whether a server is idle. */
const maxCheckMs = 1000;
const probeTimeoutMs = 60_000;
const versionTimeoutMs = 3000;
const maxAnswer = 256 * 1024;

export interface ProberOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly store: ProfileStore;
  /** Without the entries of the prober's own lessons: what is known of the server or configured. */
  readonly profileOf: (model: string, url: string) => ServerProfile;
  readonly idleMs?: number | undefined;
  readonly log?: LogListener | undefined;
}

/**
 * Finds out what a server accepts for a model, after the first answer of that model: a few requests of one token each, one at a time, while
 * the server is idle. A server is asked again when its version changes.
 */
export class ProfileProber {
  readonly #options: ProberOptions;
  /** Servers and models that were asked, or wait. */
  readonly #begun = new Set<string>();
  readonly #closed = new AbortController();
  /** Settles when the last server that was begun has been asked. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: ProberOptions) {
    this.#options = options;
  }

  /** A model of a target has answered a request. */
  answered(target: UpstreamTarget, model: string): void {
    // A URL contains no space.
    const key = `${target.url} ${model}`;
    if (this.#closed.signal.aborted || this.#begun.has(key)) return;
    this.#begun.add(key);
    // One server at a time: their models may share a machine.
    this.#last = this.#last.then(() => this.#ask(target, model)).catch(() => {});
  }

  /** The server has changed: its models are asked again if its version has. */
  changed(): void {
    this.#begun.clear();
  }

  close(): void {
    this.#closed.abort();
  }

  async #ask(target: UpstreamTarget, model: string): Promise<void> {
    const { store, log } = this.#options;
    const { idleMs = defaultIdleMs } = this.#options;
    if (!(await this.#idle(target, idleMs))) return;
    const server = await this.#serverOf(target);
    const before = store.get(target.url, model);
    if (before?.probed === true && before.server === server) return;
    // What another version refused may be accepted now.
    if (before?.server !== undefined && before.server !== server) store.set(target.url, model, { profile: {}, server });
    let profile: ServerProfile = {};
    const plain = await this.#send(target, model, plainProbe);
    if (plain?.status !== 200) return;
    if (isObject(plain.body) && reportsCache(plain.body)) profile = { ...profile, cacheReport: true };
    for (const probe of profileProbes) {
      // A server refuses every request with tools for the same reason.
      if (probe.isAdaptedAnyway || (profile.tools === false && probe.members["tools"] !== undefined)) continue;
      if (!(await this.#idle(target, Math.min(idleMs, idleBetweenMs)))) return;
      const lesson = await this.#lessonOf(target, model, probe, profile);
      if (lesson === "unknown") return;
      profile = mergedProfile(profile, lesson);
    }
    // Refusals may have taught something in the meantime.
    const known = store.get(target.url, model);
    const learned = datedProfile(known, mergedProfile(known?.profile ?? {}, profile));
    store.set(target.url, model, { ...learned, server, probed: true });
    log?.("learned what the server accepts", "info", { model, url: target.url, server, profile });
  }

  /** What a probe shows; "unknown": the server could not be asked. */
  async #lessonOf(
    target: UpstreamTarget,
    model: string,
    { members, refused }: ProfileProbe,
    learned: ServerProfile,
  ): Promise<ServerProfile | "unknown"> {
    const answer = await this.#send(target, model, members);
    if (!answer || (answer.status !== 200 && !isRefusalOfProbe(answer.status))) return "unknown";
    if (answer.status === 200) return {};
    const profile = mergedProfile(this.#options.profileOf(model, target.url), learned);
    const failure = readFailure(answer.body, answer.status);
    const fromWords = failure && learnRefusal(failure, bodyOf(model, members), profile);
    return fromWords ?? refusedForm(members, profile) ?? refused;
  }

  /** Resolves with true when the server has been idle for this long; false: the prober was closed. */
  async #idle(target: UpstreamTarget, idleMs: number): Promise<boolean> {
    const checkMs = Math.min(maxCheckMs, idleMs);
    for (let idle = 0; idle < idleMs; idle = target.outstanding > 0 ? 0 : idle + checkMs) {
      await new Promise((resolve) => inBackground(setTimeout(resolve, checkMs)));
      if (this.#closed.signal.aborted) return false;
    }
    return !this.#closed.signal.aborted;
  }

  /**
   * The name and version of a server, as it reports them: `Server`, `/version` (vLLM, SGLang), `/api/version` (Ollama), `/props`
   * (llama.cpp).
   */
  async #serverOf(target: UpstreamTarget): Promise<string> {
    const parts: string[] = [];
    for (const path of ["/version", "/api/version", "/props"]) {
      const answer = await this.#request(target, "GET", target.rootPath(path), undefined, versionTimeoutMs);
      if (!answer) continue;
      const { server, "x-litellm-version": litellm } = answer.headers;
      for (const text of [server, litellm && `litellm ${String(litellm)}`])
        if (typeof text === "string" && !parts.includes(text)) parts.push(text.slice(0, 100));
      const { version, build_info: build } = isObject(answer.body) ? answer.body : {};
      const found = answer.status === 200 ? (version ?? build) : undefined;
      if (typeof found !== "string") continue;
      parts.push(`${path} ${found.slice(0, 100)}`);
      break;
    }
    return parts.length === 0 ? "unknown version" : parts.join(", ");
  }

  #send(target: UpstreamTarget, model: string, members: RequestBody): Promise<ProbeAnswer | null> {
    const body = JSON.stringify(bodyOf(model, members));
    return this.#request(target, "POST", target.path("/chat/completions"), body, probeTimeoutMs);
  }

  /** null: no answer. */
  async #request(
    target: UpstreamTarget,
    method: "GET" | "POST",
    path: string,
    body: string | undefined,
    timeoutMs: number,
  ): Promise<ProbeAnswer | null> {
    const { headers } = this.#options;
    try {
      const answer = await target.transport.request({
        method,
        path,
        headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
        ...(body !== undefined && { body }),
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(timeoutMs)]),
      });
      const text = await readBody(answer.body, maxAnswer, () => new Error("the answer has no end"));
      return { status: answer.statusCode, headers: answer.headers, body: parsed(text) };
    } catch {
      return null;
    }
  }
}

interface ProbeAnswer {
  readonly status: number;
  readonly headers: ReceivedHeaders;
  /** The parsed JSON; undefined: the body is not JSON, such as a stream. */
  readonly body: unknown;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bodyOf(model: string, members: RequestBody): RequestBody {
  return { model, max_tokens: 1, temperature: 0, ...members };
}

/** For the members that have several forms: the forms that are left without the refused one. */
function refusedForm(
  { tool_choice: choice, response_format: format }: RequestBody,
  profile: ServerProfile,
): ServerProfile | null {
  if (choice !== undefined) return learnRefusal(refusalOf("Invalid tool_choice:"), { tool_choice: choice }, profile);
  if (format === undefined) return null;
  return learnRefusal(refusalOf("'response_format.type' must be another"), { response_format: format }, profile);
}

function refusalOf(message: string): Parameters<typeof learnRefusal>[0] {
  return { status: 400, message, param: null, code: null };
}

/** Whether an answer's usage says how much of the prompt the server's cache had. */
function reportsCache({ usage, timings }: Readonly<Record<string, unknown>>): boolean {
  return readUsage(usage, new RepairLog(), timings)?.promptDetails?.["cached_tokens"] !== undefined;
}
