import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { doneText } from "../sse-text.ts";
import { unbufferedStream } from "../stream-headers.ts";
import { bodyNumber, plainNumber, streamNumber } from "./number-form.ts";
import type { NumberForm } from "./number-form.ts";
import { pythonJson } from "./python-json.ts";

/** What a response looks like, apart from what it says and what the client asked for. Writers read it and know no profile. */
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
  /** Members that only OpenAI means anything by; undefined: left out. */
  readonly billing: JsonValue | undefined;
  readonly moderation: null | undefined;
  readonly toolUsage: JsonValue | undefined;
  /** `prompt_cache_retention` where the request does not say. */
  readonly promptCacheRetention: string | null;
  /** `reasoning`, by what was asked for. */
  readonly reasoning: (effort: string | null, summary: string | null) => JsonValue;
  /** Events that were captured of OpenAI are written again as they were, with what they alone say. */
  readonly copiesCaptures: boolean;
}

export const responseForms: Readonly<Record<Profile["name"], ResponseForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    body: jsonText,
    number: { stream: plainNumber, body: plainNumber },
    obfuscates: false,
    // OpenAI's own event is one that strict clients do not know.
    keepAlive: "response.in_progress",
    // The Open Responses specification demands the mark, OpenAI never sends it.
    endMark: doneText,
    billing: undefined,
    moderation: undefined,
    toolUsage: undefined,
    promptCacheRetention: null,
    reasoning: (effort, summary) => ({ effort, summary }),
    copiesCaptures: false,
  },
  // Recordings of 2026.
  exact: {
    streamHeaders: { "content-type": "text/event-stream; charset=utf-8" },
    body: pythonJson,
    number: { stream: streamNumber, body: bodyNumber },
    obfuscates: true,
    keepAlive: "keepalive",
    endMark: "",
    billing: { payer: "developer" },
    moderation: null,
    // Nothing of it is ever used here. As recorded since 2026-07.
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
    reasoning(effort, asked) {
      const summary = asked === "auto" ? "detailed" : asked;
      return effort === null
        ? { context: null, effort, summary }
        : { context: "current_turn", effort, mode: "standard", summary };
    },
    copiesCaptures: true,
  },
};
