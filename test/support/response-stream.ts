import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { AnswerContext } from "../../src/wire/apis/port.ts";
import type { Profile } from "../../src/wire/apis/profile.ts";
import { readResponsesRequest } from "../../src/wire/apis/responses/request.ts";
import type { ResponseOptions } from "../../src/wire/apis/responses/request-schema.ts";
import { ResponseObject } from "../../src/wire/apis/responses/response-object.ts";
import { ResponseStreamWriter } from "../../src/wire/apis/responses/stream-writer.ts";

/** One event of a response's stream, as a client reads it. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [member: string]: unknown;
}

/** Fixed time and chance: ids are the same for all items. */
export function responseContext(profile: Profile): AnswerContext {
  return { profile, created: 1_800_000_000, now: () => 1_800_000_007, model: "tiny", settings: {}, random: () => 0 };
}

/** What a request with these members says about the form of its response. */
export function responseOptions(members: Readonly<Record<string, unknown>> = {}): ResponseOptions {
  return readResponsesRequest({ model: "tiny", input: "Hi", ...members }, "req_1").responseOptions;
}

export function responseWriter(
  profile: Profile,
  members: Readonly<Record<string, unknown>> = {},
  random: () => number = () => 0,
): ResponseStreamWriter {
  const context = { ...responseContext(profile), random };
  return new ResponseStreamWriter(new ResponseObject(context, responseOptions(members), "stream"));
}

/** The whole stream of these batches. */
export function writtenResponse(
  batches: readonly (readonly GenerationEvent[])[],
  profile: Profile,
  members: Readonly<Record<string, unknown>> = {},
): string {
  const writer = responseWriter(profile, members);
  return batches.map((events) => writer.write(events)).join("");
}

/** Reads a stream as the HTML standard says; fails where `event` is not the event's type, or anything else is there. */
export function responseEvents(stream: string): ResponseEvent[] {
  const frames = stream.split("\n\n");
  if (frames.pop() !== "") throw new Error("The stream does not end with a blank line.");
  if (frames.at(-1) === "data: [DONE]") frames.pop();
  return frames.map((frame) => {
    const [, name = "", data = ""] = /^event: ([a-z_.]+)\ndata: (\{[^\n]*\})$/.exec(frame) ?? [];
    if (name === "") throw new Error(`Not an event: ${JSON.stringify(frame)}`);
    const event: ResponseEvent = JSON.parse(data);
    if (event.type !== name) throw new Error(`An event ${name} says that it is ${event.type}.`);
    return event;
  });
}

export function typesOf(stream: string): string[] {
  return responseEvents(stream).map(({ type }) => type.replace(/^response\./, ""));
}
