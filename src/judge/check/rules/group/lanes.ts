import { steerErrorCodes } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { shown } from "../place.ts";
import type { Json } from "../view.ts";
import { type GroupVerdict, notShown, verdictOn } from "./group-rule.ts";

const ends: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

/** True for an event that ends a response, or refuses a request. */
export function isEndMessage({ type }: Json): boolean {
  return ends.has(type);
}

/** True for messages of a server that knows lanes. One that refuses every `stream_id` may repeat it in the error. */
export function hasLanes(messages: readonly Json[]): boolean {
  return messages.some((message) => message.stream_id !== undefined && !refusesLanes(message));
}

function refusesLanes({ type, error }: Json): boolean {
  return type === "error" && isObject(error) && error["param"] === "stream_id";
}

/**
 * `messages`: those that answer one request on each of `lanes`; undefined is the lane without an id. `isDemanded`: lanes are not optional.
 */
export function judgeLanes(
  messages: readonly Json[],
  lanes: readonly (string | undefined)[],
  isDemanded: boolean,
): GroupVerdict {
  if (!hasLanes(messages)) {
    const error = messages.find(({ type }) => type === "error");
    const found = error ? `refused: ${shown(codeOf(error))}` : "no event has a stream_id";
    return isDemanded ? verdictOn("socket/lanes", found) : notShown(`no lanes are offered by WebSocket (${found})`);
  }
  return verdictOn("socket/lanes", laneMistake(messages, lanes));
}

function laneMistake(messages: readonly Json[], lanes: readonly (string | undefined)[]): string | undefined {
  const foreign = messages.find(({ stream_id: lane }) => !lanes.includes(lane as string | undefined));
  if (foreign) return `${shown(foreign.type)} with the stream_id ${shown(foreign.stream_id)}`;
  for (const lane of lanes) {
    const own = messages.filter(({ stream_id: id }) => id === lane);
    const at = own.findIndex(({ sequence_number: number }, index) => number !== index);
    if (!own.some(isEndMessage)) return `the lane ${shown(lane)} does not end`;
    if (own[at] && own[at].type !== "error")
      return `the number ${shown(own[at].sequence_number)} in place of ${at} in the lane ${shown(lane)}`;
  }
  return undefined;
}

/** `messages`: those that answer 17 requests on different lanes at the same time. */
export function judgeLaneQueue(messages: readonly Json[]): GroupVerdict {
  const error = messages.find(({ type }) => type === "error");
  const count = messages.filter(isEndMessage).length;
  const found = error
    ? `refused: ${shown(codeOf(error))}`
    : count < 17
      ? `${count} of 17 requests are answered`
      : undefined;
  return verdictOn("socket/lane-queue", found);
}

/** `messages`: those that answer a request on `lane`, which is the 33rd. */
export function judgeLaneLimit(messages: readonly Json[], lane: string): GroupVerdict {
  return verdictOn("socket/lane-limit", refusalMistake(messages, "websocket_stream_limit_reached", lane));
}

/** `messages`: those that answer a request with an empty stream_id. */
export function judgeLaneId(messages: readonly Json[]): GroupVerdict {
  return verdictOn("socket/lane-id", refusalMistake(messages, "invalid_stream_id", undefined));
}

function refusalMistake(messages: readonly Json[], code: string, lane: string | undefined): string | undefined {
  const [first] = messages;
  if (!first) return "there is no answer";
  if (first.type !== "error") return `it is answered with ${shown(first.type)}`;
  if (codeOf(first) !== code) return `the code ${shown(codeOf(first))}`;
  return first.stream_id === lane ? undefined : `the stream_id ${shown(first.stream_id)}`;
}

/** `messages`: all that follows a request whose response `id` is steered while it is generated. `isDemanded`: steering is not optional. */
export function judgeSteer(messages: readonly Json[], id: unknown, isDemanded: boolean): GroupVerdict {
  const answer = messages.find(({ type }) => type === "response.steer.accepted" || type === "response.steer.failed");
  if (!answer) {
    const error = messages.find(({ type }) => type === "error");
    const found = error ? `refused: ${shown(codeOf(error))}` : "there is no answer";
    return isDemanded ? verdictOn("socket/steer", found) : notShown(`steering is not offered by WebSocket (${found})`);
  }
  if (answer.type === "response.steer.failed") {
    const code = codeOf(answer);
    return verdictOn(
      "socket/steer",
      steerErrorCodes.some((known) => known === code) ? undefined : `the code ${shown(code)}`,
    );
  }
  const isSettled = messages.some(
    ({ type, response }) =>
      type === "response.steer.pending" ||
      type === "response.steer.failed" ||
      (type === "response.created" && isObject(response) && response["previous_response_id"] === id),
  );
  return verdictOn("socket/steer", isSettled ? undefined : "it is accepted, and nothing follows");
}

function codeOf({ error }: Json): unknown {
  return isObject(error) ? (error["code"] ?? error["message"]) : error;
}
