import type { JsonValue } from "../json-text.ts";

/**
 * What a response says of its request: every member, those that the client left out with OpenAI's defaults. Source: 920 recorded
 * responses with their requests.
 */
export interface ResponseEcho {
  readonly background: boolean;
  readonly instructions: JsonValue;
  readonly maxOutputTokens: number | null;
  readonly maxToolCalls: number | null;
  readonly metadata: JsonValue;
  readonly parallelToolCalls: boolean;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly previousResponseId: string | null;
  readonly promptCacheKey: string | null;
  readonly promptCacheRetention: string | null;
  readonly reasoning: { readonly effort: string | null; readonly summary: string | null };
  readonly safetyIdentifier: string | null;
  /** As asked; null: not asked. */
  readonly serviceTier: string | null;
  readonly store: boolean;
  readonly temperature: number;
  readonly textFormat: JsonValue;
  readonly verbosity: string;
  readonly toolChoice: JsonValue;
  readonly tools: readonly JsonValue[];
  readonly topLogprobs: number;
  readonly topP: number;
  readonly truncation: string;
  readonly user: string | null;
}

/** What the request says about the form of its answer. */
export interface AskedResponse {
  readonly echo: ResponseEcho;
  /** Thoughts are shown as their summary, not as they are. */
  readonly summarizes: boolean;
  /** Thoughts come sealed, too, for clients that give them back. */
  readonly sealsThoughts: boolean;
  readonly logprobs: boolean;
  /** undefined: the profile's default. */
  readonly includeObfuscation?: boolean;
  /** Tools that belong to a group, by the one name under which a model knows them. */
  readonly grouped: ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
  /** A call of `toolSearch` is the client's search for tools, an item of its own. */
  readonly searches: boolean;
}

/** What a response says of a request that leaves all of it out. */
export const echoOfNothing: ResponseEcho = {
  background: false,
  instructions: null,
  maxOutputTokens: null,
  maxToolCalls: null,
  metadata: {},
  parallelToolCalls: true,
  frequencyPenalty: 0,
  presencePenalty: 0,
  previousResponseId: null,
  promptCacheKey: null,
  promptCacheRetention: null,
  reasoning: { effort: null, summary: null },
  safetyIdentifier: null,
  serviceTier: null,
  store: true,
  temperature: 1,
  textFormat: { type: "text" },
  verbosity: "medium",
  toolChoice: "auto",
  tools: [],
  topLogprobs: 0,
  topP: 1,
  truncation: "disabled",
  user: null,
};
