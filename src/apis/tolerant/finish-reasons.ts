import type { FinishReason } from "../../core/events.ts";

/**
 * What servers write as `finish_reason` → what it means. One table for both directions of the wire; "failed" is a generation that
 * the source itself broke off. Compared in lower case, with `_`, `-` and spaces taken out. Sources: OpenAI's specification; the
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
  refusal: "content-filter",
  error: "failed",
  abort: "failed",
  aborted: "failed",
  cancelled: "failed",
  canceled: "failed",
};

const exact = new Set(["stop", "length", "tool_calls", "content_filter", "function_call"]);

/** null: no reason yet (null, "", absent). An unknown word counts as "stop": the source did end the choice. */
export function readFinishReason(
  raw: unknown,
): { readonly reason: FinishReason | "failed"; readonly exact: boolean } | null {
  if (typeof raw !== "string" || raw === "") return null;
  const word = raw.toLowerCase().replace(/[_\s-]/g, "");
  if (word === "null" || word === "none") return null;
  return { reason: meanings[word] ?? "stop", exact: exact.has(raw) };
}

interface FinishFacts {
  /** What the source said. */
  readonly said: FinishReason;
  /** How many calls there are. */
  readonly calls: number;
  readonly sawLegacyCall: boolean;
  /** Calls may still be found in the text. */
  readonly callsInText: boolean;
  /** The client asked with legacy `functions`; undefined: not known. */
  readonly legacyFunctions: boolean | undefined;
  readonly isOpenAi: boolean;
}

/**
 * The reason that is true of what came: "tool-calls" (or its legacy form) instead of "stop" exactly when there are calls; "length" and
 * "content-filter" win. null: calls were announced and none came, which is the source's error.
 */
export function trueFinishReason(facts: FinishFacts): FinishReason | null {
  const { said, calls, callsInText, sawLegacyCall, legacyFunctions, isOpenAi } = facts;
  const saidCalls = said === "tool-calls" || said === "function-call";
  if (saidCalls && calls === 0 && !callsInText) return null;
  if (!saidCalls && (calls === 0 || said !== "stop")) return said;
  const isLegacy = legacyFunctions ?? (isOpenAi && (said === "function-call" || sawLegacyCall));
  return isLegacy ? "function-call" : "tool-calls";
}
