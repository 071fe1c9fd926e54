import type { Annotation, TokenLogprob } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { JsonValue } from "../json-text.ts";
import type { CallKind } from "./call-kind.ts";
import { itemLogprobs } from "./response-logprobs.ts";
import type { ResponseFrame } from "./response-frame.ts";

/**
 * The items of a response. Their members stand by one rule: id, type, status, then the rest by the alphabet (all of 3,100 recorded items
 * since 2025-05).
 */

export type ItemStatus = "in_progress" | "completed" | "incomplete";

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
  { number }: ResponseFrame,
): JsonValue {
  const content = parts.map((part) =>
    part.type === "refusal" ? refusalPart(part.refusal) : textPart(part, itemLogprobs(part.logprobs, number)),
  );
  return { id, type: "message", status, content, phase, role: "assistant" };
}

/** `logprobs`: as JSON, which items round and content parts leave out. */
export function textPart(
  { text, annotations }: { readonly text: string; readonly annotations: readonly JsonValue[] },
  logprobs: JsonValue,
): JsonValue {
  return { type: "output_text", annotations, logprobs, text };
}

export function refusalPart(refusal: string): JsonValue {
  return { type: "refusal", refusal };
}

export interface CallItem {
  readonly id: string;
  readonly callId: string;
  readonly kind: CallKind;
  readonly name: string;
  readonly namespace?: string;
}

/** What a whole call has where nothing was written for it. */
export function emptyInput(kind: CallKind): string {
  return kind === "custom" ? "" : "{}";
}

export function callItem(call: CallItem, status: ItemStatus, text: string): JsonValue {
  const { id, callId, kind, name, namespace } = call;
  switch (kind) {
    case "custom":
      return { id, type: "custom_tool_call", status, call_id: callId, input: text, name, namespace };
    case "function":
      return { id, type: "function_call", status, arguments: text, call_id: callId, name, namespace };
    case "search":
      return { id, type: "tool_search_call", status, arguments: objectIn(text), call_id: callId, execution: "client" };
  }
}

/** The arguments of a search are no text; those that are no object are none. */
function objectIn(text: string): JsonValue {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? (value as JsonValue) : {};
  } catch {
    return {};
  }
}

export interface Thought {
  readonly texts: readonly string[];
  readonly summary: readonly string[];
  readonly signature?: string | undefined;
  readonly encrypted?: string | undefined;
}

/** A thought has no status at OpenAI. `thought` null: it only begins. */
export function reasoningItem(id: string, thought: Thought | null, frame: ResponseFrame): JsonValue {
  if (thought === null) return { id, type: "reasoning", content: [], summary: [] };
  const { texts, summary, signature, encrypted } = thought;
  const whole = {
    text: texts.join(""),
    ...(summary.length > 0 && { summary }),
    ...(signature !== undefined && { signature }),
    ...(encrypted !== undefined && { encrypted }),
  };
  return {
    id,
    type: "reasoning",
    content: (frame.summarizes ? [] : texts).map((text) => ({ type: "reasoning_text", text })),
    encrypted_content: frame.encryptedContent(id, whole),
    summary: (frame.summarizes ? [...texts, ...summary] : summary).map((text) => ({ type: "summary_text", text })),
  };
}

/** An annotation as Responses has it; null where it has no place for it. */
export function annotationObject({ native, url, title, start, end }: Annotation): JsonValue | null {
  // What a source of the same API said was read from JSON.
  if (native?.dialect === "responses") return native.value as JsonValue;
  if (url === undefined) return null;
  return { type: "url_citation", end_index: end ?? 0, start_index: start ?? 0, title: title ?? "", url };
}
