import { callState } from "../../wire/apis/gemini/signatures.ts";
import { exact } from "../../wire/apis/profile.ts";
import type { FinishReason, GenerationEvent, GenerationFailure, Usage } from "../../wire/core/events.ts";
import {
  type AnswerPart,
  answerOf,
  type Api,
  baseBody,
  type Fact,
  type Json,
  markerOf,
  portOf,
  type ScriptedAnswer,
  type ScriptedFailure,
  toolIn,
} from "./facts.ts";
import { reasoningMembers } from "./session-turns.ts";

/** The answers of the vendor: each shows one fact. Every text contains the marker of its request. */

const unicode = 'Ünïcödé 👩‍👩‍👧 नमस्ते \u2028 "quoted" \\ \t tab';

interface AnswerFact {
  readonly title: string;
  readonly isQuick?: boolean;
  readonly parts?: readonly AnswerPart[];
  readonly reason?: Exclude<FinishReason, "function-call">;
  readonly stop?: string;
  readonly usage?: Usage;
  /** What the request of each client API needs for such an answer. */
  readonly asks?: Partial<Readonly<Record<Api, Json>>>;
  /** The vendors that can answer so; default: all. */
  readonly of?: readonly Api[];
}

const weather = {
  id: "call_between0000000000001",
  name: "get_weather",
  arguments: '{"city":"Zürich","days":[1,2]}',
};

const answerFacts: Readonly<Record<string, AnswerFact>> = {
  text: { title: "text in Unicode", isQuick: true, parts: [{ text: unicode }] },
  "long-text": {
    title: "text of 60,000 characters",
    parts: [{ text: "A long sentence of the answer. ".repeat(2000) }],
  },
  call: { title: "call of a tool", isQuick: true, parts: [weather] },
  "empty-call": { title: "call without arguments", parts: [{ ...weather, arguments: "{}" }] },
  calls: {
    title: "two parallel calls",
    isQuick: true,
    parts: [weather, { ...weather, id: `${weather.id}b`, arguments: '{"city":"Bern"}' }],
  },
  "text-and-call": { title: "text, then a call", parts: [{ text: "Let me look." }, weather] },
  "signed-thinking": {
    title: "signed thinking, then a call",
    isQuick: true,
    of: ["messages"],
    asks: reasoningMembers,
    parts: [
      { reasoning: "The user wants the weather.", state: { kind: "signature", value: "c2lnbmF0dXJlLW9mLWJldHdlZW4=" } },
      weather,
    ],
  },
  "encrypted-reasoning": {
    title: "encrypted reasoning, then a call",
    isQuick: true,
    of: ["responses"],
    asks: { responses: { store: false, include: ["reasoning.encrypted_content"] } },
    parts: [{ reasoning: "", state: { kind: "encrypted", value: "ZW5jcnlwdGVkLW9mLWJldHdlZW4=" } }, weather],
  },
  "signed-call": {
    title: "signature of a call",
    isQuick: true,
    of: ["gemini"],
    parts: [{ ...weather, state: callState("c2lnbmF0dXJlLW9mLWNhbGw=") }],
  },
  length: { title: "end by the limit of tokens", isQuick: true, parts: [{ text: "Cut" }], reason: "length" },
  refused: {
    title: "end by a content filter",
    parts: [{ text: "I cannot" }],
    reason: "content-filter",
    of: ["chat", "messages"],
  },
  stop: { title: "end by a stop sequence", parts: [{ text: "Before" }], stop: "END", of: ["messages"] },
  "cached-usage": {
    title: "cached tokens in usage",
    isQuick: true,
    parts: [{ text: "Cached." }],
    usage: { promptTokens: 5000, completionTokens: 7, promptDetails: { cached_tokens: 4096 } },
  },
  "written-usage": {
    title: "tokens written to the cache in usage",
    of: ["messages"],
    parts: [{ text: "Written." }],
    usage: {
      promptTokens: 5000,
      completionTokens: 7,
      promptDetails: { cached_tokens: 1024, cache_write_tokens: 2048 },
    },
  },
  "reasoning-usage": {
    title: "reasoning tokens in usage",
    of: ["chat", "responses"],
    parts: [{ text: "Reasoned." }],
    usage: { promptTokens: 50, completionTokens: 700, completionDetails: { reasoning_tokens: 640 } },
  },
};

/** Errors in the neutral form, by their statuses, and how long a client is to wait. Anthropic has a status of its own for too much work. */
const failures: Readonly<Record<number, Pick<GenerationFailure, "kind" | "code" | "sourceType">>> = {
  400: { kind: "context-overflow", code: "context_length_exceeded" },
  401: { kind: "authentication", code: "invalid_api_key" },
  404: { kind: "not-found", code: "model_not_found" },
  429: { kind: "rate-limited", code: "rate_limit_exceeded", sourceType: "requests" },
  500: { kind: "internal" },
  503: { kind: "unavailable" },
  529: { kind: "overloaded" },
};

function errorOf(api: Api, status: number): ScriptedFailure {
  const known = failures[status] ?? { kind: "internal" };
  const failure = { code: null, ...known, status, message: `The vendor refuses with status ${status}.`, param: null };
  const written = portOf(api).errorFormat.writeFailure(failure, exact, "req_between", () => undefined);
  const wait = status === 429 || status > 500;
  return {
    status: written.status,
    headers: { ...(wait && { "retry-after": "2" }) },
    body: JSON.parse(written.body) as Json,
  };
}

/** The requests whose answers are looked at. `client`: the API of the requests; `vendor`: that of the answers. */
export function answerFactsOf(client: Api, vendor: Api, model: string): Fact[] {
  const of = (id: string, title: string, stream: boolean, answer: ScriptedAnswer, more: Partial<Fact> = {}): Fact => {
    const form = `${id}-${stream ? "stream" : "whole"}`;
    const named = `${title} (${stream ? "stream" : "whole"})`;
    const body = withTool(client, baseBody(client, model, form, stream));
    return { id: form, title: named, side: "answer", stream, body, answer, ...more };
  };
  const facts: Fact[] = [];
  for (const stream of [true, false]) {
    for (const [id, { title, parts = [], reason, stop, usage, of: vendors, asks, isQuick = false }] of Object.entries(
      answerFacts,
    )) {
      if (vendors && !vendors.includes(vendor)) continue;
      const name = `${id}-${stream ? "stream" : "whole"}`;
      const batches = answerOf(marked(parts, name), {
        ...(reason !== undefined && { reason }),
        ...(stop !== undefined && { stop }),
        ...(usage && { usage }),
      });
      const fact = of(id, title, stream, { batches }, { isQuick });
      facts.push({ ...fact, body: { ...fact.body, ...asks?.[client] } });
    }
    for (const status of [400, 401, 404, 429, 500, vendor === "messages" ? 529 : 503]) {
      const more = { isQuick: status === 429 && stream };
      const failure = (api: Api): ScriptedFailure => errorOf(api, status);
      facts.push(of(`error-${status}`, `error ${status}`, stream, { failure }, more));
    }
    const text = (name: string): GenerationEvent[][] =>
      answerOf(marked([{ text: "One two three four five six seven." }], name));
    const cut = { batches: text(`cut-${stream ? "stream" : "whole"}`), cutAfter: 3 };
    facts.push(of("cut", "connection that breaks", stream, cut, { side: "transport", isQuick: true }));
    const endless = { batches: text(`leaves-${stream ? "stream" : "whole"}`), endless: true };
    facts.push(
      of("leaves", "client that leaves", stream, endless, { side: "transport", client: "leaves", isQuick: true }),
    );
  }
  const slow = { batches: answerOf(marked([{ text: "One two three four five six." }], "slow-stream")), gapMs: 150 };
  facts.push(of("slow", "slow answer, chunk by chunk", true, slow, { side: "transport", isQuick: true }));
  return facts;
}

/** The parts with the marker: in the first text, or else in the arguments of the calls that have any. */
function marked(parts: readonly AnswerPart[], id: string): AnswerPart[] {
  const at = parts.findIndex((part) => "text" in part);
  const mark = markerOf(id);
  return parts.map((part, index) => {
    if (index === at && "text" in part) return { text: `${mark} ${part.text}` };
    if (at !== -1 || !("arguments" in part) || part.arguments === "{}") return part;
    return { ...part, arguments: JSON.stringify({ ...(JSON.parse(part.arguments) as Json), mark }) };
  });
}

/** The tool that answers call. */
function withTool(api: Api, body: Json): Json {
  const parameters = {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "array", items: { type: "integer" } } },
  };
  return { ...body, tools: [toolIn(api, { name: weather.name, description: "The weather of a city", parameters })] };
}
