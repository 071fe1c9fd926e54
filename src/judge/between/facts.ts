import type { GenerationEvent } from "../../wire/core/events.ts";
import type { CallState, ReasoningState } from "../../wire/core/turn-state.ts";
import type { ServedPort } from "../../wire/apis/port-state.ts";
import { ports } from "../../wire/apis/ports.ts";
import { type SourceApi, sourceApis } from "../../wire/apis/source-port.ts";

/** The APIs that a gateway is asked by, and that it asks its vendor by. */
export const apis = sourceApis;
export type Api = SourceApi;

export function portOf(api: Api): ServedPort {
  const port = ports.find(({ name }) => name === api);
  if (!port) throw new Error(`There is no API ${api}.`);
  return port;
}

/** What the paths of an API begin with, after the server's URL. */
export const roots: Readonly<Record<Api, string>> = {
  chat: "/v1",
  responses: "/v1",
  messages: "/v1",
  ollama: "",
  gemini: "/v1beta",
};

/** The member of a request that has its conversation. */
export const turnsOf: Readonly<Record<Api, string>> = {
  chat: "messages",
  responses: "input",
  messages: "messages",
  ollama: "messages",
  gemini: "contents",
};

export type Json = Readonly<Record<string, unknown>>;

/** The members that a fact adds to the base body, or a function of that body. */
export type Edit = Json | ((body: Json) => Json);

/** One request that contains one fact, and the vendor's answer to it. */
export interface Fact {
  /** Letters, digits and hyphens. The text of the request contains it, by which both sides are correlated. */
  readonly id: string;
  /** What is looked for, as a row of the matrix. */
  readonly title: string;
  readonly side: "request" | "answer" | "transport";
  readonly body: Json;
  readonly headers?: Readonly<Record<string, string>>;
  readonly stream: boolean;
  /** Default: a short text. */
  readonly answer?: ScriptedAnswer;
  /** The fact is part of the short run (`--quick`). */
  readonly isQuick?: boolean;
  /** Only a vendor of the client's own API has it. */
  readonly isOfVendor?: boolean;
  /** The request continues the prompt of this fact, so that the vendor's cache has all of that. */
  readonly continues?: string;
  /** Makes the request from the answer to that of `continues`, and from its body. undefined: the answer has nothing to go on with. */
  withAnswer?(answer: string, asked: Json): Json | undefined;
  /** The values that the vendor has given with earlier answers, and whether it demands them back with this request. */
  readonly returns?: readonly { readonly value: string; readonly isDemanded: boolean }[];
  /** What the client does while the answer arrives. */
  readonly client?: "leaves";
}

export interface ScriptedAnswer {
  readonly batches?: Iterable<readonly GenerationEvent[]>;
  /** An error before the answer, in the form of the API by which the vendor is asked. */
  readonly failure?: (api: Api) => ScriptedFailure;
  /** Milliseconds between batches. */
  readonly gapMs?: number;
  /** The connection breaks after this number of batches. */
  readonly cutAfter?: number;
  /** The answer does not end while its client is connected. */
  readonly endless?: boolean;
}

export interface ScriptedFailure {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Json;
}

/** The sentence by which a request is recognized at the vendor, and its answer at the client. */
export function markerOf(id: string): string {
  return `fact:${id}.`;
}

/** The id of the last marker in a text of either side; undefined: it has none. A session has those of its earlier turns, too. */
export function factIn(text: string): string | undefined {
  const at = text.lastIndexOf("fact:");
  return at === -1 ? undefined : /^fact:([a-z0-9-]{1,80})\./.exec(text.slice(at, at + 100))?.[1];
}

/** A body with the marker in the user's text. */
export function baseBody(api: Api, model: string, id: string, stream: boolean): Json {
  const text = `${markerOf(id)} Answer in one sentence.`;
  const instructions = "You are a careful assistant.";
  const common = { model, ...(stream && { stream }) };
  switch (api) {
    case "chat":
    case "ollama":
      return {
        ...common,
        // A stream is Ollama's default.
        ...(api === "ollama" && { stream }),
        messages: [
          { role: "system", content: instructions },
          { role: "user", content: text },
        ],
      };
    case "responses":
      return { ...common, instructions, input: [{ role: "user", content: [{ type: "input_text", text }] }] };
    case "messages":
      return { ...common, max_tokens: 1000, system: instructions, messages: [{ role: "user", content: text }] };
    case "gemini":
      // The model and the stream are in the path.
      return {
        systemInstruction: { parts: [{ text: instructions }] },
        contents: [{ role: "user", parts: [{ text }] }],
      };
  }
}

/** A function that the model may call, in the form of an API. */
export function toolIn(
  api: Api,
  { parameters, ...tool }: { name: string; description?: string; parameters: Json },
): Json {
  switch (api) {
    case "chat":
    case "ollama":
      return { type: "function", function: { ...tool, parameters } };
    case "responses":
      return { type: "function", ...tool, parameters, strict: false };
    case "messages":
      return { ...tool, input_schema: parameters };
    case "gemini":
      return { functionDeclarations: [{ ...tool, parametersJsonSchema: parameters }] };
  }
}

/** The events of an answer with these parts, for choice 0. */
export function answerOf(parts: readonly AnswerPart[], end: Partial<AnswerEnd> = {}): GenerationEvent[][] {
  const choice = 0;
  let index = 0;
  const batches: GenerationEvent[][] = parts.length === 0 ? [[]] : [];
  for (const part of parts) {
    if ("reasoning" in part) {
      batches.push([{ type: "part-start", choice, kind: "reasoning" }]);
      const { summary } = part;
      for (const text of chunksOf(part.reasoning, end.least))
        batches.push([{ type: "reasoning-delta", choice, text, ...(summary !== undefined && { summary }) }]);
      batches.push([{ type: "part-end", choice, ...(part.state && { state: part.state }) }]);
    } else if ("text" in part) {
      for (const text of chunksOf(part.text, end.least)) batches.push([{ type: "text-delta", choice, text }]);
      if (part.state) batches.push([{ type: "part-end", choice, state: part.state }]);
    } else {
      const { id, name, arguments: json, state, kind } = part;
      batches.push([
        { type: "tool-call-start", choice, index, id, name, ...(kind && { kind }), ...(state && { state }) },
      ]);
      for (const chunk of chunksOf(json, end.least))
        batches.push([{ type: "tool-call-delta", choice, index, arguments: chunk }]);
      batches.push([{ type: "tool-call-end", choice, index: index++, status: "succeeded" }]);
    }
  }
  const { reason = index > 0 ? "tool-calls" : "stop", stop, usage = standardUsage } = end;
  // The vendor has counted the prompt before it answers.
  batches[0]?.unshift({ type: "usage", usage: { ...usage, completionTokens: 1 } }, { type: "start", choice });
  batches.push([
    { type: "finish", choice, reason, ...(stop !== undefined && { stop }) },
    { type: "usage", usage },
    { type: "end", end: { kind: "done" } },
  ]);
  return batches;
}

export type AnswerPart =
  | { readonly text: string; readonly state?: ReasoningState }
  | { readonly reasoning: string; readonly summary?: number; readonly state?: ReasoningState }
  | {
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
      readonly kind?: "custom";
      readonly state?: CallState;
    };

interface AnswerEnd {
  readonly reason: "stop" | "length" | "tool-calls" | "content-filter";
  readonly stop: string;
  readonly usage: Extract<GenerationEvent, { type: "usage" }>["usage"];
  /** The least number of characters of a chunk. */
  readonly least: number;
}

const standardUsage = { promptTokens: 1234, completionTokens: 56 };

/** Texts arrive in chunks of some characters, and no chunk splits one, or a marker. */
function chunksOf(text: string, least = 1): string[] {
  const characters = text.match(/fact:[a-z0-9-]{1,80}\.|./gsu) ?? [];
  const size = Math.max(least, Math.ceil(characters.length / 6));
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(""),
  );
}

/** undefined: the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
