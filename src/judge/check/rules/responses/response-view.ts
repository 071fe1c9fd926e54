import { isObject } from "../../../../wire/core/json.ts";
import { atMember, atName } from "../place.ts";
import type { Exchange } from "../exchange.ts";
import type { Violation } from "../rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";
import { streamState } from "./stream-state.ts";

/** A response in its final state, streamed or not. */
export interface ResponseView {
  readonly exchange: Exchange;
  readonly response: Json;
  /** Its items that are objects. */
  readonly output: readonly Json[];
  /** Returns a violation at the first place of a member's name. */
  at(member: string, found: string): Violation;
}

/** Returns `undefined` for another API, and if no event ends the stream with a response. */
export function streamedResponse(view: StreamView): ResponseView | undefined {
  if (!["responses", "response-socket"].includes(view.exchange.endpoint)) return undefined;
  const last = streamState(view).lifecycle.findLast(({ type }) => /\.(completed|incomplete|failed)$/.test(type));
  const response = last?.value.response;
  if (!last || !isObject(response)) return undefined;
  return viewOf(view.exchange, response, (member, found) => atMember(last.chunk, member, found));
}

/** Returns `undefined` for another API, an error, and a body that is not a JSON object, which `body/json` reports. */
export function wholeResponse(view: BodyView): ResponseView | undefined {
  const { exchange, value } = view;
  if (exchange.endpoint !== "responses" || exchange.response.status !== 200 || !isObject(value)) return undefined;
  return viewOf(exchange, value, (member, found) => atName(view, member, found));
}

function viewOf(exchange: Exchange, response: Json, at: ResponseView["at"]): ResponseView {
  const output = Array.isArray(response.output) ? response.output.filter(isObject) : [];
  return { exchange, response, output, at };
}

/** The content parts of messages. */
export function spokenParts({ output }: ResponseView): readonly Json[] {
  return output.filter(({ type }) => type === "message").flatMap(contentParts);
}

export function contentParts({ content }: Json): readonly Json[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

/** Returns the text of all messages, without refusals. */
export function responseText(view: ResponseView): string {
  return spokenParts(view)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("");
}

/** Returns the calls that the client has to run. */
export function clientCalls({ output }: ResponseView): readonly Json[] {
  return output.filter(isCall);
}

export function isCall({ type }: Json): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

/**
 * True for a response of ChatGPT's backend, whose output is always empty: clients read the items of the stream. Source: recordings of
 * 2026-09-27.
 */
export function isAttributed({ usage }: Json): boolean {
  return isObject(usage) && "attribution" in usage;
}

/** True for a response that is neither cut, nor filtered, nor failed. */
export function isCompleted({ response }: ResponseView): boolean {
  return response.status === "completed";
}
