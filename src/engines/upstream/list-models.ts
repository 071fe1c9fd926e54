import type { ModelInfo } from "../../core/engine.ts";
import { readModelList } from "../../apis/models/read-models.ts";
import type { SourcePort } from "../../apis/source-port.ts";
import type { NativeCapabilities } from "./native-capabilities.ts";
import type { Target } from "./target.ts";
import { isMisconfigured } from "./transport-failure.ts";

/** A server answers its model list from memory; one that takes longer has a problem. */
const patienceMs = 10_000;
const longestList = 16 * 1024 * 1024;

/** A model that a server lists. */
export interface UpstreamModel extends ModelInfo {
  /** The highest limit on the length of an answer that the server can take: its context, less one token of prompt. Absent: not known. */
  readonly highestLimit?: number;
}

/** A server answered, but not with its models. */
class ModelListError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Statuses that pass: of a server that is starting, or has too much to do. */
const passing: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Whether a server whose models could not be listed may answer later: it is down, starting or overloaded. One that refuses its list,
 * has none, or is not trusted is rather a mistake in the configuration.
 */
export function mayComeUp(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(mayComeUp);
  if (error instanceof ModelListError) return error.status >= 500 || passing.has(error.status);
  return !isMisconfigured(error);
}

/**
 * The models that a target lists; `native` is what was learned about them before. Rejects with an Error that says why it could not be read.
 */
export async function listModels(
  target: Target,
  headers: Readonly<Record<string, string>>,
  source: SourcePort,
  native: NativeCapabilities,
): Promise<UpstreamModel[]> {
  const { statusCode, body } = await target.transport.request({
    method: "GET",
    path: target.path(source.modelsPath ?? "/models"),
    headers,
    signal: AbortSignal.timeout(patienceMs),
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > longestList) throw new Error(`the model list of ${target.url} has no end`);
  }
  if (statusCode !== 200)
    throw new ModelListError(`${target.url}/models answered with status ${statusCode}`, statusCode);
  const models = readModelList(text);
  if (!models) throw new ModelListError(`${target.url}/models did not return a model list`, statusCode);
  await native.learn(models, target, headers);
  return models.map(({ id, created, ownedBy, contextLength, contextIsEnforced, sees }) => {
    const known = sees ?? native.sees(id);
    return {
      id,
      created,
      ownedBy: ownedBy ?? "upstream",
      endpoints: endpointsOf(source),
      ...(contextLength !== null && { contextLength }),
      ...(contextLength !== null && contextIsEnforced && { highestLimit: contextLength - 1 }),
      ...(known !== undefined && { sees: known }),
    };
  });
}

/** What models can be asked for in an API: all that OpenAI has, or conversations. */
export function endpointsOf({ name }: SourcePort): ModelInfo["endpoints"] {
  return name === "chat" ? ["chat", "completions", "embeddings"] : ["chat"];
}

/** Whether a target answers at all, even with an error. */
export async function answers(target: Target, headers: Readonly<Record<string, string>>): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(patienceMs);
    const { statusCode, body } = await target.transport.request({
      method: "GET",
      path: target.path("/models"),
      headers,
      signal,
    });
    await body.dump();
    return statusCode < 500;
  } catch {
    return false;
  }
}
