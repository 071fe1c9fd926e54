import type { TurnState } from "../../core/turn-state.ts";
import type { Annotation, TokenAlternative, TokenLogprob, Usage } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import { JsonText, jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { NumberForm } from "./form.ts";
import type { SealedReasoning } from "../turn-seal.ts";
import { clientCall, clientTools, type ClientToolKind } from "./client-tools.ts";
import { idPrefixes } from "./ids.ts";
import type { ItemStatus } from "./schema.ts";

/*
 * The items of a response, their parts and their usage as JSON values. Members are in the order of the schemas (`schema.ts`);
 * `stream-writer.property.test.ts` compares every event with its schema.
 */

/** `search`: a search for tools that the client makes. */
export type CallKind = "function" | "custom" | "search" | ClientToolKind;

/** The name under which a model calls the client's search for tools. The request does not name it. */
export const toolSearch = "tool_search";

/** What the id of a call's item begins with. */
export function callPrefix(kind: CallKind): ItemPrefix {
  switch (kind) {
    case "function":
      return idPrefixes.function_call;
    case "custom":
      return idPrefixes.custom_tool_call;
    case "search":
      return idPrefixes.tool_search_call;
    default:
      return idPrefixes[clientTools[kind].item];
  }
}

export type ItemPrefix = (typeof idPrefixes)[keyof typeof idPrefixes];

/** A content part of a message. */
export type MessagePart =
  | {
      readonly type: "text";
      readonly text: string;
      readonly annotations: readonly JsonValue[];
      readonly logprobs: readonly TokenLogprob[];
    }
  | { readonly type: "refusal"; readonly refusal: string };

export function messageItem(
  { id, phase }: { readonly id: string; readonly phase: string | undefined },
  status: ItemStatus,
  parts: readonly MessagePart[],
  number: NumberForm,
): JsonValue {
  const content = parts.map((part) =>
    part.type === "refusal"
      ? refusalPart(part.refusal)
      : textPart(part.text, part.annotations, itemLogprobs(part.logprobs, number)),
  );
  return { id, type: "message", status, content, phase, role: "assistant" };
}

/** `logprobs`: rounded in items, left out of content parts. */
export function textPart(text: string, annotations: readonly JsonValue[] = [], logprobs: JsonValue = []): JsonValue {
  return { type: "output_text", annotations, logprobs, text };
}

export function refusalPart(refusal: string): JsonValue {
  return { type: "refusal", refusal };
}

export function reasoningPart(text: string): JsonValue {
  return { type: "reasoning_text", text };
}

export function summaryPart(text: string): JsonValue {
  return { type: "summary_text", text };
}

export interface CallItem {
  readonly id: string;
  readonly callId: string;
  readonly kind: CallKind;
  readonly name: string;
  readonly namespace?: string;
  /** The model does not wait for its output. */
  readonly isAsync: boolean;
}

/** The input of a whole call for which the model wrote none. */
export function emptyInput(kind: CallKind): string {
  return kind === "custom" ? "" : "{}";
}

export function callItem(call: CallItem, status: ItemStatus, text: string): JsonValue {
  const { id, callId, kind, name, namespace } = call;
  const runs = call.isAsync || undefined;
  switch (kind) {
    case "custom":
      return { id, type: "custom_tool_call", status, async: runs, call_id: callId, input: text, name, namespace };
    case "function":
      return { id, type: "function_call", status, arguments: text, async: runs, call_id: callId, name, namespace };
    case "search":
      return { id, type: "tool_search_call", status, arguments: objectIn(text), call_id: callId, execution: "client" };
    default: {
      const { type, members } = clientCall(kind, callId, text);
      // A patch has no status of its own for a call that was cut.
      return {
        id,
        type,
        status: type === "apply_patch_call" && status === "incomplete" ? "completed" : status,
        ...members,
      };
    }
  }
}

/** Returns the object that `text` is the JSON of, or an empty one. The arguments of a search are not a string. */
function objectIn(text: string): JsonValue {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? (value as JsonValue) : {};
  } catch {
    return {};
  }
}

export interface ReasoningContent {
  readonly texts: readonly string[];
  readonly summary: readonly string[];
  readonly state?: TurnState | undefined;
  /** The call that `state` belongs to. */
  readonly callId?: string;
}

/** How a response shows reasoning. */
interface ReasoningForm {
  readonly summarizes: boolean;
  encryptedContent(id: string, reasoning: SealedReasoning): string | undefined;
}

/** Returns a reasoning item, which has no status at OpenAI. */
export function reasoningItem(id: string, reasoning: ReasoningContent, form: ReasoningForm): JsonValue {
  const { texts, summary, state, callId } = reasoning;
  const whole = {
    // Not empty unless it is the state of a call: an empty value is a damaged one.
    ...(callId === undefined && { text: texts.join("") }),
    ...(summary.length > 0 && { summary }),
    ...(state && { state }),
    ...(callId !== undefined && { callId }),
  };
  return {
    id,
    type: "reasoning",
    content: (form.summarizes ? [] : texts).map(reasoningPart),
    encrypted_content: form.encryptedContent(id, whole),
    summary: (form.summarizes ? [...texts, ...summary] : summary).map(summaryPart),
  };
}

/** Returns an annotation as Responses has it, or null if Responses has no such annotation. */
export function annotationObject({ native, url, title, start, end }: Annotation): JsonValue | null {
  // An annotation from a source of the same API was read from JSON.
  if (native?.dialect === "responses") return native.value as JsonValue;
  if (url === undefined) return null;
  return { type: "url_citation", end_index: end ?? 0, start_index: start ?? 0, title: title ?? "", url };
}

/** JSON has no infinity: impossible tokens get OpenAI's -9999 (specification, `logprob`). */
const lowest = -9999;

function numberText(logprob: number | null, number: NumberForm): string {
  return logprob === null ? "null" : number(Math.max(logprob, lowest));
}

function alternativeText({ token, logprob, bytes }: TokenAlternative, number: NumberForm): string {
  return `"bytes":${bytes ? `[${bytes.join(",")}]` : "[]"},"logprob":${numberText(logprob, number)},"token":${JSON.stringify(token)}`;
}

/** Returns the `logprobs` of an event as JSON, not rounded. */
export function logprobsText(tokens: readonly TokenLogprob[], number: NumberForm): string {
  let text = "";
  for (const token of tokens) {
    let top = "";
    for (const other of token.top) top += `${top && ","}{${alternativeText(other, number)}}`;
    text += `${text && ","}{${alternativeText(token, number)},"top_logprobs":[${top}]}`;
  }
  return `[${text}]`;
}

/** Returns the `logprobs` of a whole item, rounded to six decimals as OpenAI does there (recordings of 2026-04 and 2026-05). */
function itemLogprobs(tokens: readonly TokenLogprob[], number: NumberForm): JsonValue {
  const alternative = ({ token, logprob, bytes }: TokenAlternative) => ({
    bytes: bytes ?? [],
    logprob: new JsonText(numberText(logprob === null ? null : Number(logprob.toFixed(6)), number)),
    token,
  });
  return tokens.map((token) => ({ ...alternative(token), top_logprobs: token.top.map(alternative) }));
}

/** The number of characters that the model has generated, in the texts, calls and reasoning of an output. */
export function outputCharacters(output: readonly JsonValue[]): number {
  let sum = 0;
  // Items of a stream are JSON texts.
  JSON.parse(jsonText(output), (name, value: unknown) => {
    if (typeof value === "string" && generatedMembers.has(name)) sum += value.length;
    return value;
  });
  return sum;
}

const generatedMembers: ReadonlySet<string> = new Set(["text", "refusal", "arguments", "input"]);

/**
 * Returns the `usage` of a response that has ended. Unknown counts are 0: every response that has ended has its usage (642 of 642
 * recordings; the specification has no null), and AI SDK 5 (@ai-sdk/openai 2) refuses a body without it, and does not read how a stream
 * without it ended.
 */
export function usageObject(usage: Usage = { promptTokens: 0, completionTokens: 0 }): JsonValue {
  const { promptTokens, completionTokens, totalTokens, promptDetails = {}, completionDetails = {} } = usage;
  const { ttl_12h_tokens, ttl_30m_tokens } = usage.cacheWriteDetails ?? {};
  const byTtl =
    ttl_12h_tokens !== undefined && ttl_30m_tokens !== undefined ? { ttl_12h_tokens, ttl_30m_tokens } : undefined;
  const { cache_write_tokens: written = 0, cached_tokens: cached = 0 } = promptDetails;
  return {
    input_tokens: promptTokens,
    input_tokens_details: {
      cache_write_tokens: written,
      cache_write_tokens_details: byTtl,
      cached_tokens: cached,
    },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: completionDetails["reasoning_tokens"] ?? 0 },
    total_tokens: totalTokens ?? promptTokens + completionTokens,
  };
}
