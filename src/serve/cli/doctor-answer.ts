import { failureOfText, readFailure } from "../../wire/apis/tolerant/read-failure.ts";
import { readUsage } from "../../wire/apis/tolerant/read-usage.ts";
import { RepairLog } from "../../wire/apis/tolerant/repairs.ts";
import { requireFormat } from "../../text/formats/known.ts";
import { MarkerReader } from "../../text/formats/marker-reader.ts";
import { parseMessage } from "../../text/formats/parse-job.ts";
import type { ProbeResult } from "../../judge/check/probe/probe.ts";
import type { Exchange } from "../../judge/check/rules/exchange.ts";
import type { Usage } from "../../wire/core/events.ts";
import { isObject, nonEmpty } from "../../wire/core/json.ts";

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
  let usage: Usage | null = null;
  let timings: unknown;
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
    timings = object["timings"] ?? timings;
    usage = readUsage(object["usage"], new RepairLog(), timings) ?? usage;
  }
  if (!hasChoice) return { ...none, refusal: "its answer is no chat completion" };
  const cachedTokens = usage?.promptDetails?.["cached_tokens"];
  return {
    text,
    called,
    milliseconds,
    ...(ended !== undefined && { ended }),
    ...(usage && { promptTokens: usage.promptTokens }),
    ...(cachedTokens !== undefined && { cachedTokens }),
  };
}

/** The format in which `truewire serve` finds a call in the text: JSON without markers has to be named. */
export function formatOfCall(text: string): "auto" | "json" {
  const reader = new MarkerReader({ choice: 0, newCallId: () => "call" });
  const events = [...reader.push(text), ...reader.end()];
  const hasCall = events.some(({ type }) => type === "tool-call-start");
  return hasCall || parseMessage({ format: requireFormat("json"), text }).calls.length === 0 ? "auto" : "json";
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

/** The value of a JSON text; undefined if it is not JSON. */
export function parsedOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
