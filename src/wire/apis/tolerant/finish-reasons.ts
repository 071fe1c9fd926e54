import type { FinishReason } from "../../core/events.ts";

/**
 * The meanings of `finish_reason` and `stop_reason` values of all servers; "failed": the source aborted the generation. Compared in lower
 * case without `_`, `-` and spaces. Sources: OpenAI's specification; the
 * dialects of Anthropic, Gemini, Mistral, Cohere, Hugging Face TGI, vLLM, SGLang and Ollama.
 */
const meanings: Readonly<Record<string, FinishReason | "failed">> = {
  stop: "stop",
  eos: "stop",
  eostoken: "stop",
  eot: "stop",
  eom: "stop",
  endturn: "stop",
  endofturn: "stop",
  stopsequence: "stop",
  stopped: "stop",
  end: "stop",
  complete: "stop",
  completed: "stop",
  done: "stop",
  length: "length",
  maxtokens: "length",
  maxoutputtokens: "length",
  modellength: "length",
  maxlength: "length",
  outoftokens: "length",
  toolcalls: "tool-calls",
  toolcall: "tool-calls",
  tooluse: "tool-calls",
  functioncall: "function-call",
  contentfilter: "content-filter",
  contentfiltered: "content-filter",
  safety: "content-filter",
  recitation: "content-filter",
  blocklist: "content-filter",
  prohibitedcontent: "content-filter",
  spii: "content-filter",
  language: "content-filter",
  imagesafety: "content-filter",
  refusal: "content-filter",
  error: "failed",
  abort: "failed",
  aborted: "failed",
  cancelled: "failed",
  canceled: "failed",
};

const exact = new Set(["stop", "length", "tool_calls", "content_filter", "function_call"]);

/** null: no reason yet (null, "", absent). An unknown value means "stop": the source has ended the choice. */
export function readFinishReason(
  raw: unknown,
): { readonly reason: FinishReason | "failed"; readonly exact: boolean } | null {
  if (typeof raw !== "string" || raw === "") return null;
  const word = raw.toLowerCase().replace(/[_\s-]/g, "");
  if (word === "null" || word === "none") return null;
  return { reason: meanings[word] ?? "stop", exact: exact.has(raw) };
}

interface FinishFacts {
  /** The source's reason. */
  readonly received: FinishReason;
  /** The number of calls. */
  readonly calls: number;
  readonly sawLegacyCall: boolean;
  /** The choice has a text, which is an answer without a call. */
  readonly hasText: boolean;
  /** Calls may still be parsed from the text. */
  readonly callsInText: boolean;
  /** The client used legacy `functions`; undefined: unknown. */
  readonly legacyFunctions: boolean | undefined;
  readonly isOpenAi: boolean;
}

/**
 * The correct finish reason: "tool-calls" (or its legacy form) instead of "stop" if and only if there are calls; "length" and
 * "content-filter" are kept. Where calls were announced and did not come, a text is the whole answer: some servers announce calls whenever
 * a request has tools. null: there is neither a call nor a text, which is an error of the source.
 */
export function trueFinishReason(facts: FinishFacts): FinishReason | null {
  const { received, calls, hasText, callsInText, sawLegacyCall, legacyFunctions, isOpenAi } = facts;
  const announced = received === "tool-calls" || received === "function-call";
  if (announced && calls === 0 && !callsInText) return hasText ? "stop" : null;
  if (!announced && (calls === 0 || received !== "stop")) return received;
  const isLegacy = legacyFunctions ?? (isOpenAi && (received === "function-call" || sawLegacyCall));
  return isLegacy ? "function-call" : "tool-calls";
}
