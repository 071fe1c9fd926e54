import { isObject } from "../../../../wire/core/json.ts";
import { apiOfEndpoint, type Exchange } from "../exchange.ts";
import { isStream } from "../exchange.ts";
import { callsIn, isUncut, streamedMessage, messageText, wholeMessage } from "../messages/message-view.ts";
import { shown } from "../place.ts";
import { responseContent } from "../responses/response-content.ts";
import type { Finding } from "../rule.ts";
import { deltaContent } from "../stream/stream-rule.ts";
import { streamedCalls } from "../stream/tools.ts";
import { bodyView, streamView } from "../view.ts";
import { type GroupVerdict } from "./group-rule.ts";

/**
 * Compares two whole answers to a request with its streamed answer. If the two whole answers differ, the model is not deterministic, and
 * the rules are not shown.
 */
export function judgeSame(plain: Exchange, again: Exchange, streamed: Exchange): GroupVerdict {
  const [first, second, third] = [summaryOf(plain), summaryOf(again), summaryOf(streamed)];
  const none = { findings: [], shown: [] };
  if (!first || !second || !third || JSON.stringify(first) !== JSON.stringify(second)) return none;
  const findings: Finding[] = [];
  for (const member of ["text", "calls", "finish"] as const) {
    if (first[member] === third[member]) continue;
    const found = `${shown(third[member])} streamed, ${shown(first[member])} not`;
    findings.push({ rule: `same/${member}`, start: 0, end: 0, found });
  }
  return { findings, shown: ["same/text", "same/calls", "same/finish"] };
}

/** What two answers to the same request must have in common. */
export interface AnswerSummary {
  readonly text: string;
  /** Names and arguments of the calls, as JSON. */
  readonly calls: string;
  readonly finish: string;
}

/** Returns the outcome of an answer of any API, streamed or whole, or `undefined` if it is not an answer. */
export function summaryOf(exchange: Exchange): AnswerSummary | undefined {
  if (exchange.response.status !== 200) return undefined;
  if (apiOfEndpoint[exchange.endpoint] === "responses") return responseContent(exchange);
  if (exchange.endpoint === "messages") return messageOutcome(exchange);
  return isStream(exchange) ? streamOutcome(exchange) : bodyOutcome(exchange);
}

function streamOutcome(exchange: Exchange): AnswerSummary {
  const view = streamView(exchange);
  const track = view.choices.get(0) ?? [];
  const calls = streamedCalls(view).filter((call) => call.choice === 0);
  return {
    text: deltaContent(track),
    calls: JSON.stringify(calls.map((call) => [call.name, call.arguments])),
    finish: String(track.find(({ choice }) => typeof choice.finish_reason === "string")?.choice.finish_reason),
  };
}

function bodyOutcome(exchange: Exchange): AnswerSummary | undefined {
  const { value } = bodyView(exchange);
  const choice: unknown = isObject(value) && Array.isArray(value.choices) ? value.choices[0] : undefined;
  if (!isObject(choice) || !isObject(choice.message)) return undefined;
  const { content, tool_calls: calls } = choice.message;
  const list = Array.isArray(calls) ? calls.filter(isObject) : [];
  return {
    text: typeof content === "string" ? content : "",
    calls: JSON.stringify(
      list.map((call) => (isObject(call.function) ? [call.function.name, call.function.arguments] : [])),
    ),
    finish: String(choice.finish_reason),
  };
}

function messageOutcome(exchange: Exchange): AnswerSummary | undefined {
  const view = isStream(exchange) ? streamedMessage(streamView(exchange)) : wholeMessage(bodyView(exchange));
  if (!view) return undefined;
  // The input of a call that was cut has different forms in a stream and in a body.
  const calls = callsIn(view).map(({ value }) => (isUncut(view) ? [value.name, value.input] : [value.name]));
  return { text: messageText(view), calls: JSON.stringify(calls), finish: String(view.message.stop_reason) };
}
