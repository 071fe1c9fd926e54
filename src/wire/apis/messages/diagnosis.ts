import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { Steps } from "../../core/steps.ts";
import { cacheMissReasons, compareWith, fingerprint, storedFingerprint } from "../cache-diagnosis.ts";
import type { Comparison, Fingerprint, StoredFingerprint } from "../cache-diagnosis.ts";
import type { ReadOptions } from "../port.ts";
import type { InTurns, Keyspace } from "../port-state.ts";

/** Compares a request that has `diagnostics` with the previous one, and stores its fingerprint for the next one. */
export interface MessageDiagnosis {
  /** Called when the message's id is known. Returns `diagnostics` of the message. `promptTokens`: if the source has counted them. */
  begin(messageId: string, promptTokens: number | undefined): JsonObject | null;
  /** Resolves when the fingerprint is stored. */
  stored(): Promise<void>;
}

/** True for a request that is diagnosed here. An upstream of this API diagnoses its own messages. */
export function isDiagnosed(body: unknown, { forwards = false }: ReadOptions): boolean {
  return !forwards && isObject(body) && isObject(body["diagnostics"]);
}

/** Begins to read the fingerprint of the previous request. `body`: of a request for which `isDiagnosed`, after it was validated. */
export async function diagnose(
  body: JsonObject,
  request: GenerationRequest,
  keyspace: Keyspace,
  inTurns: InTurns,
): Promise<MessageDiagnosis> {
  const own = await inTurns(messageFingerprint(body, request));
  const previousId = isObject(body["diagnostics"]) ? body["diagnostics"]["previous_message_id"] : undefined;
  const compared =
    typeof previousId === "string"
      ? compareWith(storedAs(previousId, keyspace), own, cacheMissReasons.messages)
      : undefined;
  let storing: Promise<void> | undefined;
  return {
    begin(messageId, promptTokens) {
      storing ??= keyspace.set(keyOf(messageId), JSON.stringify(storedFingerprint(own)));
      storing.catch(() => {});
      return diagnosticsOf(compared?.(promptTokens) ?? null);
    },
    stored: () => storing ?? Promise.resolve(),
  };
}

function* messageFingerprint(body: JsonObject, { model, prompt }: GenerationRequest): Steps<Fingerprint> {
  const { speed, tool_choice, thinking, output_config, output_format, tools } = body;
  if (prompt.kind !== "chat") throw new TypeError("A Messages request has a conversation.");
  return yield* fingerprint({
    settings: {
      model: [model, speed ?? "standard"],
      others: [tool_choice ?? null, thinking ?? null, output_config ?? null, output_format ?? null],
    },
    // Clients move `cache_control` with each request.
    tools: Array.isArray(tools) && tools.length > 0 ? tools.map(withoutCacheControl) : undefined,
    prompt,
  });
}

function withoutCacheControl(tool: JsonObject): JsonObject {
  const { cache_control: _, ...rest } = tool;
  return rest;
}

async function storedAs(id: string, keyspace: Keyspace): Promise<StoredFingerprint | undefined> {
  const text = await keyspace.get(keyOf(id));
  return text === undefined ? undefined : (JSON.parse(text) as StoredFingerprint);
}

function keyOf(messageId: string): string {
  return `fingerprint ${messageId}`;
}

function diagnosticsOf(comparison: Comparison<string>): JsonObject | null {
  if (comparison === null) return null;
  if (comparison === "pending") return { cache_miss_reason: null };
  if (comparison === "not-found") return { cache_miss_reason: { type: "previous_message_not_found" } };
  if (comparison === "unavailable") return { cache_miss_reason: { type: "unavailable" } };
  const { reason, missedTokens } = comparison;
  return { cache_miss_reason: { type: reason, cache_missed_input_tokens: missedTokens } };
}
