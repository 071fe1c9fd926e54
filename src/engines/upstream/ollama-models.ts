import { isObject, type JsonObject } from "../../wire/core/json.ts";
import type { ModelDefaults, ModelInfo } from "../../wire/core/engine.ts";
import type { GenerationFailure } from "../../wire/core/events.ts";
import { contextFor, type OllamaModelState } from "../../wire/apis/ollama/context.ts";
import { type ListedUpstreamModel, ModelListError } from "./list-models.ts";
import type { OllamaOptions } from "./options.ts";
import type { UpstreamTarget } from "./targets.ts";
import { readBody } from "./transport.ts";

/** Ollama answers from memory, except for a model that it has not described before. */
const timeoutMs = 5000;
/** `/api/ps` waits while a model is loaded, and requests for other models must not wait for that. Source: server/sched.go, `loadedModels`. */
const loadedTimeoutMs = 1000;
const maxLength = 16 * 1024 * 1024;
/** The number of models that are described in parallel. */
const concurrency = 8;
/** How long the list of loaded models is used. Another program may load a model with another context. */
const loadedMs = 5000;

/** A model as `/api/show` describes it. */
interface Description {
  /** Changes with the model. */
  readonly digest: unknown;
  readonly contextLength?: number;
  /** The context that the model's own parameters set. */
  readonly ownContext: number;
  readonly capabilities?: readonly unknown[];
  readonly defaults?: readonly ModelDefaults[];
  readonly isRemote: boolean;
}

/** What is known of one server. */
interface Server {
  /** Missing parts count as 0. Absent: not known yet. */
  version?: readonly number[];
  /** The context of each model: as loaded, or as requested, whichever is larger. */
  readonly contexts: Map<string, number>;
  /** The context of each model that was loaded when `/api/ps` was read last. */
  loaded: ReadonlyMap<string, number>;
  /** The largest context of a model for which there was memory, and until when (of `performance.now`) that holds. */
  readonly ceilings: Map<string, { readonly context: number; readonly until: number }>;
  /** The time (of `performance.now`) when `/api/ps` was read, and the reading. */
  readAt: number;
  reading?: Promise<void>;
}

/** The number of models of a server whose contexts are known. */
const maxModels = 10_000;
const never = Number.NEGATIVE_INFINITY;
/** How long a context that did not fit into the memory is not tried again. */
const ceilingMs = 10 * 60_000;
/** The smallest context that is tried in place of one that did not fit. */
const minCeiling = 2048;
/** What Ollama and its runners say when there is not enough memory. Source: ollama 0.33.0 llm/status.go, llm/llama_server.go. */
const outOfMemory =
  /out.of.(?:device.)?memory|outofmemory|requires more (?:system )?memory|(?:not enough|insufficient) memory|(?:failed|unable) to allocate|allocation failed|malloc failed/i;

/**
 * The models of Ollama servers: what they can do, and the context that each of them has. Ollama loads a model again for a request with
 * another `num_ctx`, so a context only grows (ollama 0.33.0 server/sched.go, `needsReload`).
 */
export class OllamaModels {
  readonly #options: OllamaOptions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #servers = new Map<UpstreamTarget, Server>();
  readonly #descriptions = new Map<string, Description>();

  constructor(options: OllamaOptions, headers: Readonly<Record<string, string>>) {
    this.#options = options;
    this.#headers = headers;
  }

  /** Returns the models that a server lists. Rejects with an Error that says why the list could not be read. */
  async list(target: UpstreamTarget): Promise<ListedUpstreamModel[]> {
    const answer = await this.#ask(target, "/api/tags");
    const models = isObject(answer) && Array.isArray(answer["models"]) ? answer["models"].filter(isObject) : undefined;
    if (!models) throw new ModelListError(`${target.url}/api/tags did not return a model list`, 200);
    const named = models.flatMap((model) => {
      const name = model["name"] ?? model["model"];
      return typeof name === "string" && name !== "" ? [{ name, model }] : [];
    });
    for (let at = 0; at < named.length; at += concurrency)
      await Promise.all(
        named.slice(at, at + concurrency).map(({ name, model }) => this.#describe(name, target, model["digest"])),
      );
    await this.#readLoaded(target, this.#serverOf(target));
    return named.map(({ name, model }) => this.#listed(name, model, target));
  }

  /** Reads what `stateOf` needs: the version of the server, its loaded models, and the model's description. Never rejects. */
  async prepare(model: string, target: UpstreamTarget): Promise<void> {
    const description = this.#descriptions.has(model) ? undefined : this.#describe(model, target, undefined);
    await Promise.all([this.#fresh(target), description]);
  }

  /** What is known of a model at a server. */
  stateOf(model: string, target: UpstreamTarget): OllamaModelState {
    const { minContext: firstContext, maxContext = Number.POSITIVE_INFINITY, keepAlive } = this.#options;
    const server = this.#servers.get(target);
    const known = this.#descriptions.get(model);
    const ceiling = server?.ceilings.get(fullName(model));
    const limit = Math.min(
      known?.contextLength ?? Number.POSITIVE_INFINITY,
      maxContext,
      ceiling && performance.now() < ceiling.until ? ceiling.context : Number.POSITIVE_INFINITY,
    );
    const reasons = known?.capabilities?.includes("thinking");
    const sees = known?.capabilities?.includes("vision");
    return {
      ...(limit !== Number.POSITIVE_INFINITY && { maxContext: limit }),
      firstContext,
      minContext: Math.max(known?.ownContext ?? 0, server?.contexts.get(fullName(model)) ?? 0),
      reasons,
      sees,
      isRemote: known?.isRemote === true,
      cutsPrompts: server?.version !== undefined && isOlder(server.version, [0, 12, 4]),
      thinksMax: server?.version !== undefined && !isOlder(server.version, [0, 21, 3]),
      keepAlive,
    };
  }

  /** A request with this body is sent. */
  sent(model: string, target: UpstreamTarget, { options }: JsonObject): void {
    const context = isObject(options) ? options["num_ctx"] : undefined;
    if (typeof context === "number") this.#grow(model, target, context);
  }

  /**
   * Changes the context of a model after a failure: a larger one if the prompt was longer than the context, a smaller one if there was no
   * memory for it. Returns whether a further attempt may succeed.
   */
  failed({ kind, tokens, status, message }: GenerationFailure, model: string, target: UpstreamTarget): boolean {
    if (status >= 500) return this.#notLoaded(message, model, target);
    if (kind !== "context-overflow") return false;
    const state = this.stateOf(model, target);
    const { minContext, maxContext = 0 } = state;
    const needed = tokens && tokens.most >= minContext ? tokens.asked + 1 : minContext + 1;
    if (needed > maxContext) return false;
    this.#grow(model, target, contextFor(needed, state));
    return true;
  }

  /** The model may not be loaded: its context is read again. */
  #notLoaded(message: string, model: string, target: UpstreamTarget): boolean {
    const server = this.#serverOf(target);
    const name = fullName(model);
    const sent = server.contexts.get(name) ?? 0;
    server.contexts.delete(name);
    server.readAt = never;
    const context = Math.floor(sent / 2);
    if (!outOfMemory.test(message) || context < minCeiling) return false;
    server.ceilings.set(name, { context, until: performance.now() + ceilingMs });
    return true;
  }

  #grow(model: string, target: UpstreamTarget, context: number): void {
    const { contexts } = this.#serverOf(target);
    const name = fullName(model);
    if (contexts.size >= maxModels && !contexts.has(name)) return;
    if (context > (contexts.get(name) ?? 0)) contexts.set(name, context);
  }

  #serverOf(target: UpstreamTarget): Server {
    let server = this.#servers.get(target);
    if (!server)
      this.#servers.set(
        target,
        (server = { contexts: new Map(), loaded: new Map(), ceilings: new Map(), readAt: never }),
      );
    return server;
  }

  #fresh(target: UpstreamTarget): Promise<void> | undefined {
    const server = this.#serverOf(target);
    const now = performance.now();
    if (now - server.readAt < loadedMs) return server.reading;
    server.readAt = now;
    return (server.reading = this.#read(target, server));
  }

  async #read(target: UpstreamTarget, server: Server): Promise<void> {
    const [version] = await Promise.all([
      server.version ?? this.#ask(target, "/api/version").then(versionOf, () => undefined),
      this.#readLoaded(target, server),
    ]);
    if (version) server.version = version;
  }

  async #readLoaded(target: UpstreamTarget, server: Server): Promise<void> {
    const loaded = await this.#ask(target, "/api/ps", undefined, loadedTimeoutMs).catch(() => undefined);
    const contexts = new Map<string, number>();
    for (const model of isObject(loaded) && Array.isArray(loaded["models"]) ? loaded["models"].filter(isObject) : []) {
      const { name, context_length: context } = model;
      if (typeof name !== "string" || !isLength(context)) continue;
      this.#grow(name, target, context);
      contexts.set(fullName(name), context);
    }
    server.loaded = contexts;
  }

  async #describe(model: string, target: UpstreamTarget, digest: unknown): Promise<void> {
    const known = this.#descriptions.get(model);
    if (known && known.digest === digest) return;
    const shown = await this.#ask(target, "/api/show", { model }).catch(() => undefined);
    if (!isObject(shown)) return;
    const { model_info: info, parameters, capabilities, remote_host: host } = shown;
    const contextLength = isObject(info)
      ? Object.entries(info).find(([name, value]) => name.endsWith(".context_length") && isLength(value))?.[1]
      : undefined;
    const [, own = "0"] = /^num_ctx\s+(\d{1,9})\s*$/m.exec(typeof parameters === "string" ? parameters : "") ?? [];
    this.#descriptions.set(model, {
      digest,
      ...(isLength(contextLength) && { contextLength }),
      ownContext: Number(own),
      ...(Array.isArray(capabilities) && { capabilities }),
      ...(typeof parameters === "string" && defaultsIn(parameters)),
      isRemote: typeof host === "string" && host !== "",
    });
  }

  #listed(id: string, { modified_at: modified }: JsonObject, target: UpstreamTarget): ListedUpstreamModel {
    const { contextLength: largest, capabilities, defaults } = this.#descriptions.get(id) ?? {};
    const { maxContext = Number.POSITIVE_INFINITY } = this.#options;
    // Ollama loads a model with a context of 4096 tokens by default, and clients plan with what they read here.
    const contextLength = this.#servers.get(target)?.loaded.get(fullName(id)) ?? largest;
    const created = typeof modified === "string" ? Math.floor(Date.parse(modified) / 1000) : 0;
    return {
      id,
      created: created > 0 ? created : 0,
      ownedBy: "library",
      endpoints: endpointsOf(capabilities),
      ...(contextLength !== undefined && { contextLength: Math.min(contextLength, maxContext) }),
      ...(capabilities && {
        takesImages: capabilities.includes("vision"),
        ...(capabilities.includes("audio") && { takesAudio: true }),
        callsTools: capabilities.includes("tools"),
        reasons: capabilities.includes("thinking"),
        fillsInMiddle: capabilities.includes("insert"),
      }),
      defaults,
    };
  }

  async #ask(target: UpstreamTarget, path: string, body?: object, limitMs = timeoutMs): Promise<unknown> {
    const answer = await target.transport.request({
      method: body ? "POST" : "GET",
      path: target.path(path),
      headers: { ...this.#headers, accept: "application/json", ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(limitMs),
    });
    const text = await readBody(
      answer.body,
      maxLength,
      () => new Error(`the answer of ${target.url}${path} has no end`),
    );
    const { statusCode: status } = answer;
    if (status !== 200) throw new ModelListError(`${target.url}${path} answered with status ${status}`, status);
    return JSON.parse(text) as unknown;
  }
}

/** Ollama's names of parameters that differ from those of chat requests. */
const chatNames: Readonly<Record<string, string>> = { num_predict: "max_completion_tokens" };
const ownParameters: ReadonlySet<string> = new Set(
  "temperature top_p top_k min_p repeat_penalty repeat_last_n presence_penalty frequency_penalty seed num_predict".split(
    " ",
  ),
);

/**
 * The defaults that a model's own parameters set, a line each: `temperature   0.6`. Negative limits mean none. Source: ollama 0.33.0
 * server/images.go, `GetModelInfo`; api/types.go, `Options`.
 */
function defaultsIn(parameters: string): Pick<Description, "defaults"> {
  const found: Record<string, number> = {};
  for (const [, name = "", text] of parameters.matchAll(/^(\w{1,40})[ \t]+(-?[\d.]{1,20})[ \t\r]*$/gm)) {
    const value = Number(text);
    if (!ownParameters.has(name) || Number.isNaN(value) || (value < 0 && name === "num_predict")) continue;
    found[chatNames[name] ?? name] = value;
  }
  return Object.keys(found).length > 0 ? { defaults: [{ origin: "server", parameters: found }] } : {};
}

/** A name without a tag means the tag `latest`. Source: types/model/name.go. */
function fullName(model: string): string {
  return /:[^/]*$/.test(model) ? model : `${model}:latest`;
}

/** A model that only embeds has no other endpoint. Older servers do not list capabilities. */
function endpointsOf(capabilities: readonly unknown[] | undefined): ModelInfo["endpoints"] {
  if (capabilities?.includes("embedding") === true && !capabilities.includes("completion")) return ["embeddings"];
  return ["chat", "completions", "embeddings"];
}

function isLength(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

/** undefined: unknown, as of a build of one's own ("0.0.0"). */
function versionOf(answer: unknown): readonly number[] | undefined {
  const version = isObject(answer) ? answer["version"] : undefined;
  if (typeof version !== "string" || version.startsWith("0.0.0")) return undefined;
  return version.split(/[.-]/, 3).map((part) => Number(part) || 0);
}

function isOlder(version: readonly number[], than: readonly number[]): boolean {
  for (const [at, part] of than.entries()) {
    const own = version[at] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}
