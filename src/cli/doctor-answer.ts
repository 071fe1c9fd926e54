import { failureOfText, readFailure } from "../apis/tolerant/read-failure.ts";
import type { ProbeResult } from "../check/probe/probe.ts";
import type { Exchange } from "../check/rules/exchange.ts";
import { isObject, nonEmpty } from "../core/json.ts";

/** What an answer says, read from a stream or a whole body. */
export interface ProbeAnswer {
  /** Why there is no answer. */
  readonly refusal?: string;
  readonly text: string;
  readonly called: boolean;
  readonly ended?: string;
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly milliseconds: number;
}

/** Reads the result of a chat probe. Members of other types than expected are left out. */
export function answerOf({ exchange, failure, milliseconds }: ProbeResult): ProbeAnswer {
  const none = { text: "", called: false, milliseconds };
  if (!exchange) return { ...none, refusal: failure ?? "no answer" };
  const { status, body, headers } = exchange.response;
  if (status !== 200) return { ...none, refusal: httpRefusal(exchange) };
  const isStream = /event-stream/.test(headers?.["content-type"] ?? "") || body.startsWith("data:");
  const objects = isStream
    ? body.split(/\r?\n|\r/).flatMap((line) => (line.startsWith("data:") ? [parsedOrNothing(line.slice(5))] : []))
    : [parsedOrNothing(body)];
  let text = "";
  let called = false;
  let hasChoice = false;
  let ended: string | undefined;
  let promptTokens: number | undefined;
  let cachedTokens: number | undefined;
  for (const object of objects.filter(isObject)) {
    const error = readFailure(object);
    if (error) return { ...none, refusal: short(error.message) };
    const [choice] = Array.isArray(object["choices"]) ? (object["choices"] as unknown[]) : [];
    if (isObject(choice)) {
      hasChoice = true;
      const message = choice["delta"] ?? choice["message"];
      if (isObject(message)) {
        text += nonEmpty(message["content"]) ?? "";
        called ||= Array.isArray(message["tool_calls"]) && message["tool_calls"].length > 0;
      }
      ended = nonEmpty(choice["finish_reason"]) ?? ended;
    }
    const usage = object["usage"];
    if (isObject(usage)) {
      const details = usage["prompt_tokens_details"];
      promptTokens = count(usage["prompt_tokens"]) ?? promptTokens;
      cachedTokens = count(isObject(details) ? details["cached_tokens"] : undefined) ?? cachedTokens;
    }
    // llama-server: tokens of the prompt that were in the cache.
    if (isObject(object["timings"])) cachedTokens ??= count(object["timings"]["cache_n"]);
  }
  if (!hasChoice) return { ...none, refusal: "its answer is no chat completion" };
  return {
    text,
    called,
    milliseconds,
    ...(ended !== undefined && { ended }),
    ...(promptTokens !== undefined && { promptTokens }),
    ...(cachedTokens !== undefined && { cachedTokens }),
  };
}

/** An answer's error message, in one line, and its status. */
export function httpRefusal({ response: { status, body } }: Exchange): string {
  const { message } = readFailure(parsedOrNothing(body), status) ?? failureOfText(body, status);
  return `${short(message)} (status ${status})`;
}

/** One line of a server's message. */
function short(message: string): string {
  const line = message.replace(/\s+/g, " ").trim();
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 ? value : undefined;
}

/** The value of a JSON text; undefined if it is not JSON. */
export function parsedOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
