import type { ModelInfo } from "../../wire/core/engine.ts";
import { isObject } from "../../wire/core/json.ts";
import { readModelList } from "../../wire/apis/models/models.ts";
import type { ListedModel } from "../../wire/apis/models/models.ts";
import type { SourcePort } from "../../wire/apis/source-port.ts";
import type { UpstreamTarget } from "./targets.ts";
import { readBody } from "./transport.ts";
import { isMisconfigured } from "./transport-failure.ts";

/** A server answers its model list from memory: one that takes longer has a problem. */
const listTimeoutMs = 10_000;
const maxListLength = 16 * 1024 * 1024;
/** A request for a model list waits for these. */
const nativeTimeoutMs = 3000;
const maxNativeLength = 1024 * 1024;
/** Ollama is asked about at most this many models. */
const maxShownModels = 100;

/** A model that a server lists. */
export interface ListedUpstreamModel extends ModelInfo {
  /** The highest limit on the length of an answer that the server takes: its context, less one token of prompt. Absent: not known. */
  readonly highestLimit?: number;
}

/** A server answered without a list of models. */
export class ModelListError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Temporary statuses: the server is starting or overloaded. */
const temporaryStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Whether a server whose models could not be listed may answer later: it is down, starting or overloaded. A server that refuses the
 * list, has none or is not trusted is rather a mistake in the configuration.
 */
export function mayComeUp(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(mayComeUp);
  if (error instanceof ModelListError) return error.status >= 500 || temporaryStatuses.has(error.status);
  return !isMisconfigured(error);
}

/**
 * Returns the models that a target lists. `native` supplies capabilities that the list does not contain. Rejects with an Error that
 * says why the list could not be read.
 */
export async function listUpstreamModels(
  target: UpstreamTarget,
  headers: Readonly<Record<string, string>>,
  source: SourcePort,
  native: NativeCapabilities,
): Promise<ListedUpstreamModel[]> {
  const { statusCode, body } = await target.transport.request({
    method: "GET",
    path: target.path(source.modelsPath ?? "/models"),
    headers,
    signal: AbortSignal.timeout(listTimeoutMs),
  });
  const text = await readBody(body, maxListLength, () => new Error(`the model list of ${target.url} has no end`));
  if (statusCode !== 200) {
    const hint = statusCode === 404 && !/\/v\d/.test(target.url) ? `; is its API at ${target.url}/v1?` : "";
    throw new ModelListError(`${target.url}/models answered with status ${statusCode}${hint}`, statusCode);
  }
  const models = readModelList(text);
  if (!models) throw new ModelListError(`${target.url}/models did not return a model list`, statusCode);
  await native.learn(models, target, headers);
  return models.map(
    ({ id, created, ownedBy, shutdownDate, contextLength, contextIsEnforced, sees, hears, defaults }) => {
      const known = sees ?? native.sees(id);
      return {
        id,
        created,
        ownedBy: ownedBy ?? "upstream",
        ...(shutdownDate !== undefined && { shutdownDate }),
        endpoints: upstreamEndpoints(source),
        ...(source.prewarms === true && { prewarms: "upstream" as const }),
        ...(contextLength !== null && { contextLength }),
        ...(contextLength !== null && contextIsEnforced && { highestLimit: contextLength - 1 }),
        ...(known !== undefined && { takesImages: known }),
        ...(hears !== null && { takesAudio: hears }),
        ...(defaults && { defaults }),
      };
    },
  );
}

/** The endpoints that models of an upstream have, by its API: all of OpenAI's and Ollama's, those that Gemini's has, or conversations only. */
export function upstreamEndpoints({ name }: SourcePort): ModelInfo["endpoints"] {
  if (name === "gemini") return ["chat", "embeddings"];
  return name === "chat" || name === "ollama" ? ["chat", "completions", "embeddings"] : ["chat"];
}

/** Whether a target answers with a status below 500. */
export async function probe(
  target: UpstreamTarget,
  headers: Readonly<Record<string, string>>,
  { modelsPath = "/models" }: SourcePort,
): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(listTimeoutMs);
    const { statusCode, body } = await target.transport.request({
      method: "GET",
      path: target.path(modelsPath),
      headers,
      signal,
    });
    await body.dump();
    return statusCode < 500;
  } catch {
    return false;
  }
}

/**
 * Capabilities of models that the OpenAI list of their server does not contain and its native API does: LM Studio's list (`type`: "vlm"
 * or "llm"), and Ollama's description of each model (`capabilities`). The server is recognized by the owner in its list. Each model is
 * looked up once.
 */
export class NativeCapabilities {
  readonly #sees = new Map<string, boolean>();
  readonly #reasoning = new Set<string>();
  readonly #requested = new Set<string>();

  /** Whether a model takes images; undefined: not known. */
  sees(id: string): boolean | undefined {
    return this.#sees.get(id);
  }

  /** Whether a model is known to reason. */
  reasons(id: string): boolean {
    return this.#reasoning.has(id);
  }

  /** Looks up the models that are not known yet. Never rejects: without an answer their capabilities stay unknown. */
  async learn(
    models: readonly ListedModel[],
    target: UpstreamTarget,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const unknown = models.filter(({ id, sees }) => sees === null && !this.#requested.has(id));
    for (const { id } of unknown) this.#requested.add(id);
    const signal = AbortSignal.timeout(nativeTimeoutMs);
    try {
      if (unknown.some(({ ownedBy }) => ownedBy === "organization_owner")) {
        for (const { id, sees } of readModelList(await askNative(target, headers, signal, "/api/v0/models")) ?? [])
          if (sees !== null) this.#sees.set(id, sees);
      }
      for (const { id, ownedBy } of unknown.slice(0, maxShownModels)) {
        if (ownedBy !== "library") continue;
        const shown: unknown = JSON.parse(await askNative(target, headers, signal, "/api/show", { model: id }));
        if (!isObject(shown) || !Array.isArray(shown["capabilities"])) continue;
        this.#sees.set(id, shown["capabilities"].includes("vision"));
        if (shown["capabilities"].includes("thinking")) this.#reasoning.add(id);
      }
    } catch {
      // An older version, or another server with these owners.
    }
  }
}

async function askNative(
  target: UpstreamTarget,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  path: string,
  body?: object,
): Promise<string> {
  const answer = await target.transport.request({
    method: body === undefined ? "GET" : "POST",
    path: target.rootPath(path),
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal,
  });
  const text = await readBody(answer.body, maxNativeLength, () => new Error("the answer has no end"));
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
  return text;
}
