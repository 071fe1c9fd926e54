import { isObject } from "../../../core/json.ts";
import { atName } from "../body/body-place.ts";
import type { Exchange } from "../exchange.ts";
import { atMember } from "../place.ts";
import type { Offence } from "../rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";
import { storyOf } from "./stream-story.ts";

/** A response as it ended, streamed or not. */
export interface ResponseView {
  readonly exchange: Exchange;
  readonly response: Json;
  /** Its items that are objects. */
  readonly output: readonly Json[];
  /** An offence at the place where a member's name first stands. */
  at(member: string, found: string): Offence;
}

/** undefined: another API's, or no event ends the stream with a response. */
export function streamedResponse(view: StreamView): ResponseView | undefined {
  if (!["responses", "response-socket"].includes(view.exchange.endpoint)) return undefined;
  const last = storyOf(view).lifecycle.findLast(({ type }) => /\.(completed|incomplete|failed)$/.test(type));
  const response = last?.value.response;
  if (!last || !isObject(response)) return undefined;
  return viewOf(view.exchange, response, (member, found) => atMember(last.chunk, member, found));
}

/** undefined: another API's, no answer, or one that is no JSON object, which `body/json` reports. */
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
  return output.filter(({ type }) => type === "message").flatMap(contentOf);
}

export function contentOf({ content }: Json): readonly Json[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

/** The text of all messages; refusals are none. */
export function textOf(view: ResponseView): string {
  return spokenParts(view)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("");
}

/** Calls that the client has to run. */
export function callsOf({ output }: ResponseView): readonly Json[] {
  return output.filter(isCall);
}

export function isCall({ type }: Json): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

/** Neither cut, nor filtered, nor failed. */
export function isWhole({ response }: ResponseView): boolean {
  return response.status === "completed";
}
