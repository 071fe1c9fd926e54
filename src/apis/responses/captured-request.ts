import { atOnce } from "../../core/steps.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { JsonValue } from "../json-text.ts";
import { checkMetadata } from "../request/check-metadata.ts";
import { readToolChoice } from "./read-tool-choice.ts";
import { asSent, readTools } from "./read-tools.ts";
import type { ReadTools } from "./read-tools.ts";
import { echoOfNothing } from "./response-echo.ts";
import type { AskedResponse, ResponseEcho } from "./response-echo.ts";

/**
 * What the request of a captured answer asked, as far as the answer repeats it and shows it. What no client may send, as other servers
 * repeat it, was not asked: the same values pass as in a request, but no reader of requests is needed, which would be most of what a
 * browser loads to repair a capture.
 */
export function capturedRequest(response: JsonObject = {}, events: readonly GenerationEvent[]): AskedResponse {
  const list = response["tools"];
  const read = (declared: readonly unknown[]): ReadTools => atOnce(readTools(declared, false));
  const tools = (Array.isArray(list) ? taken(() => read(list)) : undefined) ?? read([]);
  const summarizes = events.some((event) => event.type === "reasoning-delta" && event.summary !== undefined);
  const logprobs = events.some((event) => event.type === "text-delta" && event.logprobs !== undefined);
  const { grouped, searches } = tools;
  return { echo: echoOf(response, tools), summarizes, sealsThoughts: false, logprobs, grouped, searches };
}

function echoOf(response: JsonObject, tools: ReadTools): ResponseEcho {
  const {
    instructions,
    metadata,
    parallel_tool_calls: parallelToolCalls,
    prompt_cache_key: promptCacheKey,
    safety_identifier: safetyIdentifier,
    store,
    tool_choice: choice,
    user,
  } = response;
  const repeated: { readonly [Member in keyof ResponseEcho]?: ResponseEcho[Member] | undefined } = {
    instructions: textOf(instructions),
    maxOutputTokens: numberIn(response["max_output_tokens"], 1, Number.MAX_SAFE_INTEGER, true),
    maxToolCalls: numberIn(response["max_tool_calls"], 1, Number.MAX_SAFE_INTEGER, true),
    metadata: isObject(metadata) ? taken(() => (checkMetadata(metadata), asSent(metadata))) : undefined,
    parallelToolCalls: typeof parallelToolCalls === "boolean" ? parallelToolCalls : undefined,
    promptCacheKey: textOf(promptCacheKey),
    reasoning: reasoningOf(response["reasoning"]),
    safetyIdentifier: (textOf(safetyIdentifier)?.length ?? Infinity) > 64 ? undefined : textOf(safetyIdentifier),
    store: typeof store === "boolean" ? store : undefined,
    temperature: numberIn(response["temperature"], 0, 2),
    ...textMembers(response["text"]),
    toolChoice:
      choice === undefined || choice === null
        ? undefined
        : taken(() => (readToolChoice(choice, tools, false), asSent(choice))),
    topLogprobs: numberIn(response["top_logprobs"], 0, 20, true),
    topP: numberIn(response["top_p"], 0, 1),
    truncation: wordIn(response["truncation"], ["auto", "disabled"]),
    user: textOf(user),
  };
  const known = Object.entries(repeated).filter(([, value]) => value !== undefined);
  return { ...echoOfNothing, tools: tools.echo, ...(Object.fromEntries(known) as Partial<ResponseEcho>) };
}

/** undefined: no request may have it. */
function taken<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FailureError) return undefined;
    throw error;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberIn(value: unknown, least: number, most: number, isWhole = false): number | undefined {
  if (typeof value !== "number" || !(value >= least && value <= most)) return undefined;
  return isWhole && !Number.isInteger(value) ? undefined : value;
}

function wordIn(value: unknown, words: readonly string[]): string | undefined {
  return words.find((word) => word === value);
}

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const summaries = ["auto", "concise", "detailed"];

function reasoningOf(value: unknown): ResponseEcho["reasoning"] | undefined {
  if (!isObject(value)) return undefined;
  const members = [
    [value["effort"], efforts],
    [value["summary"], summaries],
    [value["generate_summary"], summaries],
  ] as const;
  if (!members.every(([member, words]) => isBlank(member) || wordIn(member, words) !== undefined)) return undefined;
  const [effort, summary, older] = members.map(([member, words]) => wordIn(member, words));
  return { effort: effort ?? null, summary: summary ?? older ?? null };
}

const verbosities = ["low", "medium", "high"];

/** What `text` says; nothing of it where a part of it may not be sent. */
function textMembers(value: unknown): { readonly textFormat?: JsonValue; readonly verbosity?: string } {
  if (!isObject(value)) return {};
  const { format, verbosity: asked } = value;
  const verbosity = wordIn(asked, verbosities);
  const textFormat = isBlank(format) ? null : formatOf(format);
  if (textFormat === undefined || (!isBlank(asked) && verbosity === undefined)) return {};
  return { ...(textFormat !== null && { textFormat }), ...(verbosity !== undefined && { verbosity }) };
}

function formatOf(value: unknown): JsonValue | undefined {
  if (!isObject(value)) return undefined;
  const { type, name, description, schema, strict } = value;
  if (type === "text" || type === "json_object") return { type };
  const isRight =
    type === "json_schema" &&
    [name, description].every((text) => isBlank(text) || typeof text === "string") &&
    (isObject(schema) || typeof schema === "boolean") &&
    (isBlank(strict) || typeof strict === "boolean");
  if (!isRight) return undefined;
  return {
    type,
    description: textOf(description) ?? null,
    name: textOf(name) ?? "response",
    schema: asSent(schema),
    strict: strict === true,
  };
}

/** A null is the same as no value. */
function isBlank(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
