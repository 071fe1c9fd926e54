import type { GenerationEvent } from "../../generation/event.ts";
import { FailureError } from "../../generation/failure.ts";
import type { JsonObject } from "../../generation/json.ts";
import { readResponsesRequest } from "./read-request.ts";
import type { AskedResponse } from "./response-echo.ts";

/** Members of a response that repeat a parameter of its request under the same name. */
const repeated = [
  "instructions",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "parallel_tool_calls",
  "prompt_cache_key",
  "reasoning",
  "safety_identifier",
  "store",
  "temperature",
  "text",
  "tools",
  "tool_choice",
  "top_logprobs",
  "top_p",
  "truncation",
  "user",
];

/** What the request of a captured answer asked, as far as the answer repeats it and shows it. */
export function capturedRequest(response: JsonObject | undefined, events: readonly GenerationEvent[]): AskedResponse {
  const body: Record<string, unknown> = { model: "unknown", input: "" };
  for (const name of repeated) {
    const value = response?.[name];
    if (value !== undefined && isTaken({ ...body, [name]: value })) body[name] = value;
  }
  const { asked } = readResponsesRequest(body, "");
  const summarizes = events.some((event) => event.type === "reasoning-delta" && event.summary !== undefined);
  const logprobs = events.some((event) => event.type === "text-delta" && event.logprobs !== undefined);
  return { ...asked, summarizes, logprobs };
}

/** Whether a request with this body can be read: other servers repeat values that no client may send. */
function isTaken(body: Readonly<Record<string, unknown>>): boolean {
  try {
    readResponsesRequest(body, "");
    return true;
  } catch (error) {
    if (error instanceof FailureError) return false;
    throw error;
  }
}
