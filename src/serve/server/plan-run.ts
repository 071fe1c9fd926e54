import type { PreparesOnly, ReadRequest } from "../../wire/apis/port.ts";
import { canAnswer } from "../../wire/core/engine.ts";
import type { GenerationRequest, QueueTier } from "../../wire/core/request.ts";
import type { ClientKey } from "../../wire/core/client-key.ts";
import type { Client } from "./keys/key-ring.ts";
import type { ServedModel } from "./model-directory.ts";

/** How the answer of a request is generated and sent: everything that is decided before the engine is asked. */
export interface RunPlan {
  /** For the engine: with its name of the model, the tier, and the owner if clients have keys. */
  readonly request: GenerationRequest;
  readonly sender: "background" | "stream" | "whole";
  /** Whether the engine is asked. If not, the answer is empty. */
  readonly asksModel: boolean;
  /** Present: the request only prepares for the next one, so what is generated is not sent. */
  readonly preparesOnly: PreparesOnly | undefined;
  /** A server of the same API receives the client's own request: it truncates prompts, and runs its own tools. */
  readonly isForwarded: boolean;
  /** An answer that repeats itself is ended. */
  readonly detectsLoops: boolean;
  /** The model runs several requests of a connection, and can be steered. */
  readonly hasLanes: boolean;
}

export interface PlannedRequest {
  /** The port's name. */
  readonly api: string;
  readonly read: Pick<ReadRequest, "preparesOnly" | "generatesNothing">;
  /** As the client asked for it, once its prompt is edited. */
  readonly request: GenerationRequest;
  readonly model: ServedModel;
  /** Absent if no key is required. */
  readonly client: Client | undefined;
  readonly clientKey?: ClientKey | undefined;
  readonly inBackground: boolean;
  /** Hosted tools of the request run here, although the model's server speaks the client's API. */
  readonly runsHostedTools?: boolean;
}

/** Decides how a request is answered. Pure. */
export function planRun(planned: PlannedRequest): RunPlan {
  const { api, read, request, model, client, clientKey, inBackground, runsHostedTools = false } = planned;
  const { engine, forwards, guardsLoops } = model.from;
  const { preparesOnly, generatesNothing } = read;
  const isForwarded = !runsHostedTools && forwards?.includes(api) === true;
  return {
    request: requestFor(model, inBackground ? { ...request, stream: true } : request, client, clientKey),
    sender: inBackground ? "background" : request.stream ? "stream" : "whole",
    asksModel: generatesNothing !== true && prewarms(model, preparesOnly),
    preparesOnly,
    isForwarded,
    // Of several choices, one cannot be ended alone.
    detectsLoops: guardsLoops === true && (request.n ?? 1) === 1,
    // A steered response is ended early: only a local model reports its usage then, and only a server of the same API gets the request as it is.
    hasLanes: forwards?.includes("responses") === true || canAnswer(engine, "usage"),
  };
}

function requestFor(
  { engineModel }: ServedModel,
  request: GenerationRequest,
  client: Client | undefined,
  clientKey: ClientKey | undefined,
): GenerationRequest {
  const tier = tierOf(request.passthrough?.body["service_tier"], client);
  if (!client && tier === "default" && request.model === engineModel) return request;
  return {
    ...request,
    model: engineModel,
    ...(client && { owner: client.owner }),
    ...(clientKey && { clientKey }),
    ...(tier !== "default" && { tier }),
  };
}

const highTiers: ReadonlySet<unknown> = new Set(["priority", "fast", "ultrafast"]);

/**
 * The tier of a request in queues. A `service_tier` of `auto`, or none, is the key's tier. No other may be higher than the key's; without
 * keys any is granted. `standard_only` is Anthropic's name of `default`.
 */
function tierOf(requested: unknown, client: Client | undefined): QueueTier {
  const highest = client ? (client.tier ?? "default") : "priority";
  if (requested === undefined || requested === null || requested === "auto") return client ? highest : "default";
  if (requested === "flex" || highest === "flex") return "flex";
  return highTiers.has(requested) ? highest : "default";
}

/** Whether the engine is asked: it puts the prompt of a request that only prepares into its cache, or the request generates. */
function prewarms({ info }: ServedModel, preparesOnly: PreparesOnly | undefined): boolean {
  return (
    preparesOnly === undefined || info.prewarms === "local" || (info.prewarms !== undefined && preparesOnly === "cache")
  );
}
