import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** A chunk without choices that has a reason to be there: Azure's filter results, OpenAI's moderation. */
export function isAnnouncement(value: JsonObject): boolean {
  return value["prompt_filter_results"] !== undefined || value["moderation"] !== undefined;
}

/** Whether this is a whole answer and no chunk of one. `bodyObject`: the `object` of a whole answer of the endpoint. */
export function isWhole(value: unknown, bodyObject: string): boolean {
  if (!isObject(value)) return false;
  const first: unknown = Array.isArray(value["choices"]) ? value["choices"][0] : undefined;
  return (
    isObject(first) &&
    (isObject(first["message"]) || (bodyObject === "text_completion" && first["finish_reason"] !== null))
  );
}
