import type { FinishReason } from "../core/events.ts";
import { readFinishReason } from "../apis/tolerant/finish-reasons.ts";

/**
 * Why a model stopped, in the terms of agent frameworks: its turn is over, only this message is (it waits for the result of a call), it ran
 * out of tokens, or a filter cut it. "failed": the source itself broke off.
 */
export type StopReason = "end-of-turn" | "end-of-message" | "out-of-tokens" | "content-filter" | "failed";

/** One table for both directions: the stop reason, the finish reason of events, and OpenAI's word. */
const table = [
  ["end-of-turn", "stop", "stop"],
  ["end-of-message", "tool-calls", "tool_calls"],
  ["out-of-tokens", "length", "length"],
  ["content-filter", "content-filter", "content_filter"],
] as const satisfies readonly (readonly [StopReason, FinishReason, string])[];

/** Words of models for "this message is over, my turn is not"; on the wire they are a plain stop. */
const endOfMessage: ReadonlySet<string> = new Set(["eom", "eom_id", "<|eom_id|>"]);

/**
 * What a server's `finish_reason` means; null as long as it is null. Besides OpenAI's words it accepts those of other servers (`eos`,
 * `eom`, `max_tokens`, `tool_use`, …), in any case and with or without underscores. An unknown word means "end-of-turn", since the
 * source did end the answer. The legacy `function_call` is "end-of-message".
 *
 * @example
 * import { readStopReason } from "truewire";
 *
 * console.log(["stop", "eom", "length", "tool_calls", "because", null].map(readStopReason).join(", "));
 * // → end-of-turn, end-of-message, out-of-tokens, end-of-message, end-of-turn,
 */
export function readStopReason(word: string | null | undefined): StopReason | null {
  if (typeof word === "string" && endOfMessage.has(word.toLowerCase())) return "end-of-message";
  const read = readFinishReason(word);
  if (read === null) return null;
  const reason = read.reason === "function-call" ? "tool-calls" : read.reason;
  return table.find(([, finish]) => finish === reason)?.[0] ?? "failed";
}

/**
 * OpenAI's `finish_reason` for a stop reason. `hasCalls`: whether the message has tool calls, where that is known; then "tool_calls" is
 * said exactly if it has (a `tool_calls` without calls is an error). A failure has no word at OpenAI: null, and the
 * answer is an error instead.
 *
 * @example
 * import { writeStopReason } from "truewire";
 *
 * console.log(writeStopReason("end-of-message"), writeStopReason("end-of-turn", true), writeStopReason("out-of-tokens", true));
 * // → tool_calls tool_calls length
 */
export function writeStopReason(
  reason: StopReason,
  hasCalls?: boolean,
): "stop" | "tool_calls" | "length" | "content_filter" | null {
  const word = table.find(([stop]) => stop === reason)?.[2] ?? null;
  if (hasCalls === undefined || (word !== "stop" && word !== "tool_calls")) return word;
  return hasCalls ? "tool_calls" : "stop";
}
