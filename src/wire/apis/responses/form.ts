import { rustFloatText, jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { doneText } from "../sse-text.ts";
import { unbufferedStream } from "../profile.ts";
import type { ResponseEcho } from "./request-schema.ts";
import { passedMembers } from "./schema.ts";

/** Prints a float as JSON. */
export type NumberForm = (value: number) => string;

/** Prints as JavaScript does: profile `lean`. */
const plainNumber: NumberForm = (value) => JSON.stringify(value);

/** Prints as OpenAI's streams do, which Rust's serializer writes: `1.0`, `-1.9e-7`. */
export const streamNumber: NumberForm = rustFloatText;

/** Prints as OpenAI's whole bodies do, which Python writes: `1.0`, `-1.9e-07`. `value` must be finite. */
export const bodyNumber: NumberForm = (value) => {
  if (value === 0 || (Number.isInteger(value) && Math.abs(value) < 1e16)) return rustFloatText(value);
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e16) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
};

/** Prints JSON as Python's `json.dumps(value, indent=2)` does, and OpenAI its whole responses: in ASCII. */
export function pythonJson(value: JsonValue): string {
  return jsonText(value, 2).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The form of a response that a profile decides. Writers read it and do not branch on a profile. */
export interface ResponseForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** The text of a body that is not streamed. */
  readonly body: (value: JsonValue) => string;
  /** How floats are printed, in events and in a body. */
  readonly number: { readonly stream: NumberForm; readonly body: NumberForm };
  /** Deltas are obfuscated unless the client asked otherwise. */
  readonly obfuscates: boolean;
  /** The event that keeps a connection alive. Comments reset no timer of a client that counts events (Codex). */
  readonly keepAlive: "keepalive" | "response.in_progress";
  /** What follows the last event. */
  readonly endMark: string;
  /** Members that have a meaning at OpenAI only; undefined: left out. */
  readonly accessPrograms: null | undefined;
  /** The members of an upstream's response that are passed on. */
  readonly passes: ReadonlySet<string>;
  /** For requests with `image`. */
  readonly image: JsonValue | undefined;
  readonly billing: JsonValue | undefined;
  readonly moderation: null | undefined;
  readonly toolUsage: JsonValue | undefined;
  /** `prompt_cache_retention` where the request does not say. */
  readonly promptCacheRetention: string | null;
  /** `reasoning`, by what the request says, or the model that the requested one represents. */
  readonly reasoning: (echo: ResponseEcho["reasoning"]) => JsonValue;
}

export const responseForms: Readonly<Record<Profile["name"], ResponseForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    body: jsonText,
    number: { stream: plainNumber, body: plainNumber },
    obfuscates: false,
    // Strict clients do not know OpenAI's own event.
    keepAlive: "response.in_progress",
    // The Open Responses specification requires the mark; OpenAI never sends it.
    endMark: doneText,
    accessPrograms: undefined,
    passes: new Set(
      passedMembers
        .filter(({ schema }) => {
          const { profile, passes } = schema.meta() ?? {};
          return passes === "in both" || !String(profile).startsWith("exact");
        })
        .map(({ name }) => name),
    ),
    image: undefined,
    billing: undefined,
    moderation: undefined,
    toolUsage: undefined,
    promptCacheRetention: null,
    reasoning: ({ effort, summary }) => ({ effort, summary }),
  },
  // Recordings of 2026.
  exact: {
    streamHeaders: { "content-type": "text/event-stream; charset=utf-8" },
    body: pythonJson,
    number: { stream: streamNumber, body: bodyNumber },
    obfuscates: true,
    keepAlive: "keepalive",
    endMark: "",
    accessPrograms: null,
    passes: new Set(passedMembers.map(({ name }) => name)),
    image: { context_compression: "disabled" },
    billing: { payer: "developer" },
    moderation: null,
    // These tools are never used here. As recorded since 2026-07.
    toolUsage: {
      image_gen: {
        input_tokens: 0,
        input_tokens_details: { image_tokens: 0, text_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { image_tokens: 0, text_tokens: 0 },
        total_tokens: 0,
      },
      web_search: { num_requests: 0 },
    },
    promptCacheRetention: "in_memory",
    reasoning({ effort, context = "current_turn", summary: requested }) {
      const summary = requested === "auto" ? "detailed" : requested;
      return effort === null ? { context: null, effort, summary } : { context, effort, mode: "standard", summary };
    },
  },
};

/** Prints the body of an answer that is not streamed. */
export function responseBodyText(value: JsonValue, { name }: Profile): string {
  return responseForms[name].body(value);
}
