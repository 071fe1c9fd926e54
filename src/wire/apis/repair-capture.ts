import { accumulate } from "../core/accumulate.ts";
import type { Generation } from "../core/accumulate.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../core/events.ts";
import { isObject, nonEmpty } from "../core/json.ts";
import { WellFormedEvents } from "../core/well-formed.ts";
import { writeChatResponse } from "./chat/write-body.ts";
import { chatReader } from "./chat/read.ts";
import { ChatStreamWriter } from "./chat/write-stream.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import { writeCompletionResponse } from "./completions/write-body.ts";
import { completionReader } from "./completions/read.ts";
import { CompletionStreamWriter } from "./completions/write-stream.ts";
import { writeErrorBody } from "./error-body.ts";
import { answerId, toolCallId } from "./ids.ts";
import { errorJson } from "./messages/error-object.ts";
import { messageId, messagesRequestId, toolUseId } from "./messages/ids.ts";
import { MessageReader } from "./messages/read.ts";
import { writeMessageResponse } from "./messages/write.ts";
import type { MessageContext } from "./messages/write.ts";
import { MessageStreamWriter } from "./messages/write-stream.ts";
import { apiOfCapture, capturedEvents, isBody as isBodyText, isOfOtherEndpoint } from "./ordered-capture.ts";
import type { CapturedApi } from "./ordered-capture.ts";
import type { Profile } from "./profile.ts";
import { capturedRequest } from "./responses/captured-request.ts";
import { responsesErrorFormat } from "./responses/errors.ts";
import { ResponseReader } from "./responses/read.ts";
import { ResponseObject } from "./responses/response-object.ts";
import { writeResponse } from "./responses/response-writer.ts";
import { ResponseStreamWriter } from "./responses/stream-writer.ts";
import type { EventReader } from "./source-port.ts";
import { bodyDemandsJson, JsonAnswer } from "./tolerant/json-answer.ts";
import { readResponseBody } from "./tolerant/read-response.ts";
import type { Repair } from "./tolerant/repairs.ts";

export interface RepairOptions {
  readonly profile: Profile;
  /** The API of the answer; "auto": detected from its content. */
  readonly from: CapturedApi | "auto";
  /** Uniform in [0, 1): for obfuscation, padding and missing ids. */
  readonly random: () => number;
  /** Unix time in seconds, for answers without a time. */
  readonly now: number;
  /** The body of the request, if known: answers that repeat parts of it keep their order. */
  readonly request?: unknown;
}

export interface RepairedCapture {
  /** The answer: an event stream, or a JSON body if the capture was one. */
  readonly body: string;
  readonly repairs: readonly Repair[];
  readonly end: GenerationEnd;
}

/**
 * Reads a captured answer, damaged in any way, and writes it again from its events, as `serve` writes the answer of an upstream. An answer
 * that was cut off or refused is written with its error. The body of an endpoint that generates nothing is returned unchanged. Pure.
 */
export function rewrittenCapture(capture: string, options: RepairOptions): RepairedCapture {
  if (isOfOtherEndpoint(capture)) return { body: capture, repairs: [], end: { kind: "done" } };
  const api = options.from === "auto" ? apiOfCapture(capture) : options.from;
  const isBody = isBodyText(capture);
  const reader = newReader(api, options);
  const received = isBody ? readResponseBody(capture, reader) : [...reader.push(capture), ...reader.end()];
  const events = onlyJson(received, reader, options, isBody);
  const repairs = reader.repairs.list();
  const generation = accumulate(new WellFormedEvents().read(events));
  const { end } = generation;
  if (isBody && "failure" in end) return { body: writeFailure(api, end.failure, options.profile), repairs, end };
  const read = { api, capture, isBody, events, generation, options };
  if (isBody) return { body: writersOf(read).body(), repairs, end };
  const writer = writersOf(read).stream();
  const texts = new WellFormedEvents();
  return { body: writer.write(texts.read(events)), repairs, end };
}

/** The events with only the JSON of the text, if the request demands JSON; the same list where nothing changes. */
function onlyJson(
  events: GenerationEvent[],
  { repairs }: EventReader,
  { request }: RepairOptions,
  isWhole: boolean,
): GenerationEvent[] {
  if (!bodyDemandsJson(request)) return events;
  const before = repairs.total;
  const changed = new JsonAnswer({ isWhole, note: (repair) => repairs.note(repair) }).transform(events);
  return repairs.total === before ? events : changed;
}

/** Whether a captured stream has a text that `onlyJson` changes. Takes no number from `random`, on which what is written depends. */
function hasOtherJson(api: CapturedApi, capture: string, options: RepairOptions): boolean {
  if (!bodyDemandsJson(options.request)) return false;
  const reader = newReader(api, { ...options, random: () => 0 });
  const events = [...reader.push(capture), ...reader.end()];
  return onlyJson(events, reader, options, false) !== events;
}

/**
 * Rewrites a captured stream as `rewrittenCapture` does, and returns what is sent for each of its parts: the text that replaces it, or "".
 * One more text is what follows the last part.
 *
 * @param parts The capture, split anywhere between two events.
 */
export function rewrittenParts(parts: readonly string[], options: RepairOptions): string[] {
  const capture = parts.join("");
  const api = options.from === "auto" ? apiOfCapture(capture) : options.from;
  const reader = newReader(api, options);
  const isChanged = hasOtherJson(api, capture, options);
  const answer = isChanged ? new JsonAnswer({ isWhole: false, note: () => {} }) : undefined;
  const events: GenerationEvent[] = [];
  const add = (more: GenerationEvent[]): void => void events.push(...(answer ? answer.transform(more) : more));
  const ends = parts.map((part) => {
    add(reader.push(part));
    return events.length;
  });
  add(reader.end());
  const generation = accumulate(new WellFormedEvents().read(events));
  const read = { api, capture, isBody: false, events, generation, options };
  const writer = writersOf(read).stream();
  const texts = new WellFormedEvents();
  const sent = [...ends, events.length].map((end, at) =>
    writer.write(texts.read(events.slice(ends[at - 1] ?? 0, end))),
  );
  return besideTheirEvents(parts, sent);
}

/** Moves texts that the reader held back to the part whose event has the same type. */
function besideTheirEvents(parts: readonly string[], sent: readonly string[]): string[] {
  const types = parts.map(typeIn);
  const moved = sent.map(() => "");
  let next = 0;
  for (const [at, text] of sent.entries()) {
    for (const event of text.split(/(?<=\n\n)/)) {
      if (!event.endsWith("\n\n")) continue;
      const type = typeIn(event);
      const own = type === undefined ? -1 : types.findIndex((one, part) => part >= next && part <= at && one === type);
      moved[own === -1 ? at : own] += event;
      next = own === -1 ? at : own + 1;
    }
  }
  return moved;
}

/** The type of the event in a text; of a chunk, whether it ends a choice. undefined: it stays where it is. */
function typeIn(text: string): string | undefined {
  const [event] = capturedEvents(text);
  if (typeof event?.["type"] === "string") return event["type"];
  const choices = Array.isArray(event?.["choices"]) ? event["choices"] : [];
  return choices.some((choice) => isObject(choice) && nonEmpty(choice["finish_reason"]) !== undefined)
    ? "finish"
    : undefined;
}

function newReader(api: CapturedApi, { random }: RepairOptions): EventReader {
  const newCallId = (): string => (api === "messages" ? toolUseId(random) : toolCallId(random));
  const options = { newCallId, frameLimit: Number.POSITIVE_INFINITY };
  switch (api) {
    case "chat":
      return chatReader(options);
    case "completions":
      return completionReader(options);
    case "responses":
      return new ResponseReader(options);
    case "messages":
      return new MessageReader(options);
  }
}

function writeFailure(api: CapturedApi, failure: GenerationFailure, profile: Profile): string {
  if (api === "messages") return errorJson(failure, null);
  return api === "responses"
    ? responsesErrorFormat.writeFailure(failure, profile, "").body
    : writeErrorBody(failure, profile).body;
}

/** A capture that was read. */
interface ReadCapture {
  readonly api: CapturedApi;
  readonly capture: string;
  readonly isBody: boolean;
  readonly events: readonly GenerationEvent[];
  readonly generation: Generation;
  readonly options: RepairOptions;
}

/** Writes a capture again. */
interface CaptureWriters {
  body(): string;
  stream(): { write(events: readonly GenerationEvent[]): string };
}

function writersOf(read: ReadCapture): CaptureWriters {
  if (read.api === "responses") return responseWriters(read);
  return read.api === "messages" ? messageWriters(read) : choicesWriters(read);
}

function choicesWriters({ api, isBody, generation, options }: ReadCapture): CaptureWriters {
  const { profile, random, now } = options;
  const { choices, usage, source = {} } = generation;
  const created = source.created ?? now;
  const context: ChoicesContext = {
    profile,
    // As far as the answer shows what was requested.
    requested: {
      stream: !isBody,
      includeUsage: usage !== undefined,
      logprobs: choices.some(({ textLogprobs, refusalLogprobs }) => textLogprobs !== null || refusalLogprobs !== null),
      namedToolChoice: false,
      legacyFunctions: choices.some(({ finish }) => finish?.reason === "function-call"),
      ...(choices.some(({ reasoning }) => reasoning !== null) && { includeReasoning: true }),
      includeTimings: false,
    },
    id: answerId(api === "chat" ? "chatcmpl-" : "cmpl-", created, random),
    created,
    model: source.model ?? "unknown",
    settings: {},
    random,
  };
  return {
    body: () => (api === "chat" ? writeChatResponse : writeCompletionResponse)(generation, context),
    stream: () => (api === "chat" ? new ChatStreamWriter(context) : new CompletionStreamWriter(context)),
  };
}

function responseWriters({ capture, isBody, events, generation, options }: ReadCapture): CaptureWriters {
  const { profile, random, now } = options;
  const shown = capturedEvents(capture).map((event) => (isBody ? event : event?.["response"]));
  const response = shown.findLast(isObject) ?? {};
  const { created_at: created, completed_at: completed } = response;
  const time = typeof created === "number" ? Math.floor(created) : now;
  const context = {
    profile,
    random,
    created: time,
    now: () => (typeof completed === "number" ? completed : time),
    model: nonEmpty(response["model"]) ?? "unknown",
    settings: {},
  };
  const request = capturedRequest(response, events);
  return {
    body: () => writeResponse(generation, context, request),
    stream: () => new ResponseStreamWriter(new ResponseObject(context, request, "stream")),
  };
}

function messageWriters({ generation, options }: ReadCapture): CaptureWriters {
  const { profile, random, now } = options;
  const context: MessageContext = {
    profile,
    random,
    created: now,
    id: messageId(now, random),
    model: generation.source?.model ?? "unknown",
    settings: {},
    options: { requestId: messagesRequestId(now * 1000, random), reasoning: "shown" },
  };
  return {
    body: () => writeMessageResponse(generation, context),
    stream: () => new MessageStreamWriter(context),
  };
}
