import { isObject } from "../../../core/json.ts";
import type { Steps } from "../../../core/steps.ts";
import { cacheMissReasons, compareWith, fingerprint, storedFingerprint } from "../../cache-diagnosis.ts";
import type { Comparison, Fingerprint, StoredFingerprint } from "../../cache-diagnosis.ts";
import type { InTurns, Keyspaces } from "../../port-state.ts";
import type { ReadResponsesRequest } from "../request.ts";
import type { CacheDiagnostics } from "../schema.ts";
import { findResponse } from "./stored-response.ts";

/** What `prompt_cache_diagnostics` needs of a request. */
export interface ResponseDiagnosis {
  /** Stored with the response, for later requests that name it. */
  readonly fingerprint: StoredFingerprint;
  /** Present if the request names a response to compare with. `promptTokens`: if they are counted. */
  readonly compare: ((promptTokens: number | undefined) => CacheDiagnostics) | undefined;
}

/**
 * Computes the fingerprint of a request, and begins to read that of the response in `prompt_cache_options.comparison_response_id`. Returns
 * undefined for a request that needs neither. `body`: of a request that was read.
 */
export async function diagnosisOf(
  body: unknown,
  read: ReadResponsesRequest,
  keyspaces: Keyspaces,
  inTurns: InTurns,
): Promise<ResponseDiagnosis | undefined> {
  const { prompt_cache_options: options, input } = body as {
    readonly prompt_cache_options?: unknown;
    readonly input?: unknown;
  };
  const id = isObject(options) ? options["comparison_response_id"] : undefined;
  const { store, background } = read.responseOptions.echo;
  if (typeof id !== "string" && !store && !background && !keyspaces.ofConnection) return undefined;
  const own = await inTurns(responseFingerprint(input, read));
  const fingerprintOf = async (named: string) => (await findResponse(keyspaces, named))?.stored.fingerprint;
  const compared = typeof id === "string" ? compareWith(fingerprintOf(id), own, cacheMissReasons.responses) : undefined;
  return {
    fingerprint: storedFingerprint(own),
    compare: compared && ((promptTokens) => diagnosticsOf(compared(promptTokens))),
  };
}

function* responseFingerprint(input: unknown, { request, responseOptions }: ReadResponsesRequest): Steps<Fingerprint> {
  const { model, prompt } = request;
  const { reasoning, service_tier: tier, text, tools, prompt_cache_key: cacheKey } = responseOptions.echo;
  if (prompt.kind !== "chat") throw new TypeError("A Responses request has a conversation.");
  const { format, verbosity } = isObject(text) ? text : {};
  return yield* fingerprint({
    settings: {
      model,
      tier: tier === "auto" || tier === "default" ? undefined : tier,
      cacheKey,
      format,
      effort: reasoning.effort,
      verbosity,
      compaction: compactionsIn(input),
    },
    tools: Array.isArray(tools) && tools.length > 0 ? tools : undefined,
    prompt,
  });
}

/** Returns the items that replace earlier parts of a conversation, or undefined without any. */
function compactionsIn(input: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(input)) return undefined;
  const compactions = input.filter((item: unknown) => isObject(item) && compactionTypes.has(item["type"]));
  return compactions.length > 0 ? compactions : undefined;
}

const compactionTypes: ReadonlySet<unknown> = new Set(["compaction", "compaction_summary", "context_compaction"]);

function diagnosticsOf(comparison: Comparison<NonNullable<CacheDiagnostics["reason"]>>): CacheDiagnostics {
  if (comparison === null) return { type: "cache_hit" };
  if (comparison === "not-found") return { type: "comparison_response_not_found" };
  if (comparison === "pending" || comparison === "unavailable") return { type: "unavailable" };
  const { reason, missedTokens, reusableTokens } = comparison;
  return {
    type: "cache_miss",
    cache_missed_tokens: missedTokens,
    comparison_reusable_tokens: reusableTokens,
    reason,
  };
}
