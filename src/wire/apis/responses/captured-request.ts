import type * as z from "zod";
import type { GenerationEvent } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { JsonObject } from "../../core/json.ts";
import { runSync } from "../../core/steps.ts";
import type { JsonValue } from "../json-text.ts";
import { checkMetadata } from "../request/check-schema.ts";
import { type DeclaredTools, readResponseTools, readToolChoice } from "./read-tools.ts";
import {
  asSent,
  createResponse,
  defaultEcho,
  promptCacheEcho,
  reasoningEcho,
  repeatedWhenSent,
  type ResponseEcho,
  type ResponseOptions,
  textEcho,
} from "./request-schema.ts";

/** Members that repeat the request, and that repair does not take over, since they depend on the server. */
const notRepeated: ReadonlySet<string> = new Set([
  "background",
  "previous_response_id",
  "prompt_cache_retention",
  "service_tier",
]);

/**
 * Returns what the request of a captured answer said about the form of the answer, as far as the answer shows it. A value that no request
 * may have, as some servers repeat it, does not count. The parameter table is not used: it is most of what a browser would load to repair
 * a capture.
 */
export function capturedRequest(response: JsonObject = {}, events: readonly GenerationEvent[]): ResponseOptions {
  const list = response["tools"];
  const read = (declared: readonly unknown[]): DeclaredTools =>
    runSync(readResponseTools(declared, { strict: false, forwards: true }));
  const tools = (Array.isArray(list) ? accepted(() => read(list)) : undefined) ?? read([]);
  const summarizes = events.some((event) => event.type === "reasoning-delta" && event.summary !== undefined);
  const logprobs = events.some((event) => event.type === "text-delta" && event.logprobs !== undefined);
  const { asyncTools, grouped, searches, clientTools } = tools;
  return {
    echo: echoOf(response, tools),
    summarizes,
    encryptsReasoning: false,
    logprobs,
    countsTokens: true,
    asyncTools,
    grouped,
    searches,
    clientTools,
  };
}

function echoOf(response: JsonObject, tools: DeclaredTools): ResponseEcho {
  const echo: { [name: string]: JsonValue } = {};
  for (const [name, shape] of Object.entries(createResponse.shape)) {
    const value = response[name] ?? undefined;
    if (value === undefined || name === "tools" || notRepeated.has(name)) continue;
    if (!(name in defaultEcho) && !repeatedWhenSent.has(name)) continue;
    const repeated = accepted(() => repeatedValue(name, value, shape, tools));
    if (repeated !== undefined) echo[name] = repeated;
  }
  return { ...defaultEcho, ...echo, tools: tools.echo };
}

/** Returns a value as the response repeats it, or `undefined` if no request may have it. Throws `FailureError` for the same reason. */
function repeatedValue(name: string, value: unknown, shape: z.ZodType, tools: DeclaredTools): JsonValue | undefined {
  if (!shape.safeParse(value).success) return undefined;
  switch (name) {
    case "metadata":
      checkMetadata(createResponse.shape.metadata.parse(value));
      return asSent(value);
    case "prompt_cache_options":
      return promptCacheEcho(createResponse.shape.prompt_cache_options.parse(value));
    case "reasoning":
      return reasoningEcho(createResponse.shape.reasoning.parse(value));
    case "text": {
      const options = createResponse.shape.text.parse(value);
      if (options.format?.type !== "json_schema") return textEcho(options);
      const { schema, strict } = options.format;
      return schema === undefined || schema === null ? undefined : textEcho(options, schema, strict ?? false);
    }
    case "tool_choice":
      readToolChoice(value, tools, false);
      return asSent(value);
    default:
      return asSent(value);
  }
}

/** Returns `undefined` where a request would be refused. */
function accepted<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FailureError) return undefined;
    throw error;
  }
}
