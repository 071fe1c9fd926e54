import type { EventSource } from "./read-stream.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import type { EndEvent, GenerationEvent } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import { WellFormedEvents } from "../../wire/core/well-formed.ts";
import { writeChatResponse } from "../../wire/apis/chat/write-body.ts";
import { ChatStreamWriter } from "../../wire/apis/chat/write-stream.ts";
import type { ChoicesContext, RequestedAnswer } from "../../wire/apis/choices-answer.ts";
import { internalError } from "../../wire/apis/failures.ts";
import { answerId } from "../../wire/apis/ids.ts";
import { messageId, messagesRequestId } from "../../wire/apis/messages/ids.ts";
import { writeMessageResponse } from "../../wire/apis/messages/write.ts";
import type { MessageContext } from "../../wire/apis/messages/write.ts";
import { MessageStreamWriter } from "../../wire/apis/messages/write-stream.ts";
import type { AnswerContext, AnswerSettings, StreamWriter } from "../../wire/apis/port.ts";
import { lean, profileNamed } from "../../wire/apis/profile.ts";
import { capturedRequest } from "../../wire/apis/responses/captured-request.ts";
import type { ResponseOptions } from "../../wire/apis/responses/request-schema.ts";
import { ResponseObject } from "../../wire/apis/responses/response-object.ts";
import { writeResponse } from "../../wire/apis/responses/response-writer.ts";
import { ResponseStreamWriter } from "../../wire/apis/responses/stream-writer.ts";
import { random as secureRandom } from "../../wire/random/random.ts";

/*
 * One implementation for all APIs. Each exported function makes the writer of its API, so that a bundle contains only the writers that are
 * used.
 */

/** The form of a written answer, and the members that the server adds. */
export interface WriteAnswerOptions extends AnswerSettings {
  /** The model id to show. */
  readonly model: string;
  /** Default `lean`; `exact`: the bytes of the vendor. `openai` is the older name of `exact`. */
  readonly wire?: "lean" | "exact" | "openai";
  /** Default: a new id in the vendor's form. An id that the events bring from their source wins where it has that form. */
  readonly id?: string;
  /** Unix time in seconds; default: now. */
  readonly created?: number;
  /** Uniform in [0, 1): for ids, obfuscation and padding; default: cryptographically secure numbers. */
  readonly random?: () => number;
}

/** The form of a chat answer: what its request asked for (all optional here), and what the server adds. */
export interface WriteChatOptions
  extends Partial<Omit<RequestedAnswer, "stream" | "textOffsets" | "logprobs">>, WriteAnswerOptions {
  /** Show the logprobs that the events have; default true. */
  readonly logprobs?: boolean;
}

export interface WriteResponsesOptions extends WriteAnswerOptions {
  /**
   * The body of the request. The response repeats its `instructions`, `tools`, `temperature` and similar members, and shows reasoning as a
   * summary if it asks for `reasoning.summary`.
   */
  readonly request?: Readonly<Record<string, unknown>>;
  /** Show the logprobs that the events have; default true. */
  readonly logprobs?: boolean;
}

export interface WriteMessagesOptions extends WriteAnswerOptions {
  /** Reasoning with its text ("shown", the default), as blocks with a signature only ("omitted"), or not at all ("hidden"). */
  readonly reasoning?: "shown" | "omitted" | "hidden";
  /** The id of the request, which an error in a stream contains; default: a new one. */
  readonly requestId?: string;
}

/** A chunk of a streamed chat answer. Source: the specification's CreateChatCompletionStreamResponse. */
export interface ChatChunk {
  readonly id: string;
  readonly object: "chat.completion.chunk";
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: Readonly<Record<string, unknown>>;
    readonly finish_reason: string | null;
    readonly [member: string]: unknown;
  }[];
  readonly [member: string]: unknown;
}

/** An event of a streamed response. Source: the specification's ResponseStreamEvent. */
export interface ResponsesEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [member: string]: unknown;
}

/** An event of a streamed message. Source: https://platform.claude.com/docs/en/build-with-claude/streaming. */
export interface MessagesEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/**
 * Writes events as the event stream of a chat answer, including `data: [DONE]`: each chunk contains what one event or batch of events shows.
 * It never throws: where `events` does, or stops without `end`, the stream reports an error and ends properly. Nothing runs ahead of its
 * reader.
 *
 * @example
 * import { writeChatStream } from "truewire";
 *
 * const events = [
 *   { type: "start", choice: 0 },
 *   { type: "text-delta", choice: 0, text: "Hello" },
 *   { type: "finish", choice: 0, reason: "stop" },
 *   { type: "end", end: { kind: "done" } },
 * ];
 * let text = "";
 * for await (const chunk of writeChatStream(events, { model: "m", id: "chatcmpl-1", created: 0 })) text += chunk;
 * console.log(text.split("\n\n")[1]);
 * // → data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"m","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}
 */
export function writeChatStream(events: EventSource, options: WriteChatOptions): AsyncGenerator<string> {
  return writtenText(events, new ChatStreamWriter(chatContext(options, true)));
}

/**
 * The same as parsed chunks, as OpenAI's SDK iterates over them. An end that is a failure throws `FailureError` after the chunks
 * before it.
 *
 * @example
 * import { readChatStream, writeChatChunks } from "truewire";
 *
 * const broken = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n';
 * for await (const chunk of writeChatChunks(readChatStream(broken), { model: "m" })) {
 *   console.log(JSON.stringify(chunk.choices[0].delta), chunk.choices[0].finish_reason);
 * }
 * // → {"role":"assistant"} null
 * // → {"content":"Hi"} null
 * // → {} stop
 */
export function writeChatChunks(events: EventSource, options: WriteChatOptions): AsyncGenerator<ChatChunk> {
  return writtenEvents<ChatChunk>(events, new ChatStreamWriter(chatContext(options, true)));
}

/**
 * Writes a whole generation as the JSON body of a chat answer without a stream. Throws `FailureError` for one that ended with a
 * failure: the answer to that is an error.
 *
 * @example
 * import { readChatAnswer, writeChatAnswer } from "truewire";
 *
 * const generation = readChatAnswer({ choices: [{ message: { content: "Hi" }, finish_reason: "eos" }] });
 * const answer = JSON.parse(writeChatAnswer(generation, { model: "m" }));
 * console.log(answer.object, answer.choices[0].finish_reason);
 * // → chat.completion stop
 */
export function writeChatAnswer(generation: Generation, options: WriteChatOptions): string {
  return writeChatResponse(succeeded(generation), chatContext(options, false));
}

/**
 * Writes events as the event stream of a response, from `response.created` to its last event. A response has one choice; events of other
 * choices are left out. It never throws: a failure becomes the events `error` and
 * `response.failed`.
 *
 * @example
 * import { readChatStream, writeResponsesStream } from "truewire";
 *
 * const chat = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
 * let text = "";
 * for await (const part of writeResponsesStream(readChatStream(chat), { model: "m" })) text += part;
 * console.log(text.match(/^event: .*$/gm).slice(3, 6).join("\n"));
 * // → event: response.content_part.added
 * // → event: response.output_text.delta
 * // → event: response.output_text.done
 */
export function writeResponsesStream(events: EventSource, options: WriteResponsesOptions): AsyncGenerator<string> {
  return writtenText(events, responseWriter(options));
}

/**
 * The same as parsed events, as OpenAI's SDK iterates over them. An end that is a failure throws `FailureError` after `response.failed`.
 *
 * @example
 * import { readChatStream, writeResponsesEvents } from "truewire";
 *
 * const chat = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
 * for await (const event of writeResponsesEvents(readChatStream(chat), { model: "m" })) {
 *   if (event.type === "response.completed") console.log(event.response.output[0].content[0].text, event.sequence_number);
 * }
 * // → Hi 8
 */
export function writeResponsesEvents(
  events: EventSource,
  options: WriteResponsesOptions,
): AsyncGenerator<ResponsesEvent> {
  return writtenEvents<ResponsesEvent>(events, responseWriter(options));
}

/**
 * Writes a whole generation as the JSON body of a response without a stream. Throws `FailureError` for one that ended with a failure.
 *
 * @example
 * import { readMessagesAnswer, writeResponsesAnswer } from "truewire";
 *
 * const generation = readMessagesAnswer({ content: [{ type: "text", text: "Hi" }], stop_reason: "end_turn" });
 * const response = JSON.parse(writeResponsesAnswer(generation, { model: "m", request: { instructions: "Be brief." } }));
 * console.log(response.output[0].content[0].text, response.instructions);
 * // → Hi Be brief.
 */
export function writeResponsesAnswer(generation: Generation, options: WriteResponsesOptions): string {
  return writeResponse(succeeded(generation), ...responseForm(options));
}

/**
 * Writes events as the event stream of a message of Anthropic's Messages API, from `message_start` to `message_stop`. A message has one
 * choice; events of other choices are left out. It never throws: a failure becomes the event `error`.
 *
 * @example
 * import { readChatStream, writeMessagesStream } from "truewire";
 *
 * const chat = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
 * let text = "";
 * for await (const part of writeMessagesStream(readChatStream(chat), { model: "m" })) text += part;
 * console.log(text.match(/^data: .*text_delta.*$/m)[0]);
 * // → data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}
 */
export function writeMessagesStream(events: EventSource, options: WriteMessagesOptions): AsyncGenerator<string> {
  return writtenText(events, new MessageStreamWriter(messageContext(options)));
}

/**
 * The same as parsed events, as Anthropic's SDK iterates over them: without pings. An end that is a failure throws `FailureError` after
 * the events before it.
 *
 * @example
 * import { readChatStream, writeMessagesEvents } from "truewire";
 *
 * const chat = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n';
 * for await (const event of writeMessagesEvents(readChatStream(chat), { model: "m" })) {
 *   if (event.type === "message_delta") console.log(event.delta.stop_reason);
 * }
 * // → max_tokens
 */
export function writeMessagesEvents(events: EventSource, options: WriteMessagesOptions): AsyncGenerator<MessagesEvent> {
  return writtenEvents<MessagesEvent>(events, new MessageStreamWriter(messageContext(options)));
}

/**
 * Writes a whole generation as the JSON body of a message without a stream. Throws `FailureError` for one that ended with a failure.
 *
 * @example
 * import { readChatAnswer, writeMessagesAnswer } from "truewire";
 *
 * const generation = readChatAnswer({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
 * const message = JSON.parse(writeMessagesAnswer(generation, { model: "m" }));
 * console.log(message.content, message.stop_reason);
 * // → [ { type: 'text', text: 'Hi' } ] end_turn
 */
export function writeMessagesAnswer(generation: Generation, options: WriteMessagesOptions): string {
  return writeMessageResponse(succeeded(generation), messageContext(options));
}

function succeeded(generation: Generation): Generation {
  if ("failure" in generation.end) throw new FailureError(generation.end.failure);
  return generation;
}

async function* writtenText(events: EventSource, writer: StreamWriter): AsyncGenerator<string> {
  for await (const batch of endedBatches(events)) {
    const text = writer.write(batch);
    if (text !== "") yield text;
  }
}

/** The parsed events of the text, without errors and pings. Throws `FailureError` at the end if the generation failed. */
async function* writtenEvents<Event>(events: EventSource, writer: StreamWriter): AsyncGenerator<Event> {
  for await (const batch of endedBatches(events)) {
    const last = batch.at(-1);
    const failed = last?.type === "end" && "failure" in last.end ? last.end.failure : undefined;
    // JSON has no bare line feed, so an empty line is always the end of an event.
    for (const frame of writer.write(batch).split("\n\n")) {
      const [, json] = /^(?:event: .*\n)?data: (\{(?!"error":|"type": ?"(?:error|ping)").*)$/.exec(frame) ?? [];
      if (json !== undefined) yield JSON.parse(json) as Event;
    }
    if (failed) throw new FailureError(failed);
  }
}

function answerContext(options: WriteAnswerOptions): AnswerContext {
  const { model, wire = "lean", random = secureRandom, created = Math.floor(Date.now() / 1000) } = options;
  const { systemFingerprint, serviceTier, logprobsKey, reasoningFields, passExtra } = options;
  return {
    profile: profileNamed(wire) ?? lean,
    created,
    model,
    settings: { systemFingerprint, serviceTier, logprobsKey, reasoningFields, passExtra },
    random,
  };
}

function chatContext(options: WriteChatOptions, stream: boolean): ChoicesContext {
  const context = answerContext(options);
  const { includeReasoning } = options;
  return {
    ...context,
    requested: {
      stream,
      includeUsage: options.includeUsage === true,
      ...(options.includeObfuscation !== undefined && { includeObfuscation: options.includeObfuscation }),
      logprobs: options.logprobs !== false,
      namedToolChoice: options.namedToolChoice === true,
      legacyFunctions: options.legacyFunctions === true,
      ...(includeReasoning !== undefined && { includeReasoning }),
      includeTimings: options.includeTimings === true,
      ...(options.includeStopString !== undefined && { includeStopString: options.includeStopString }),
    },
    id: options.id ?? answerId("chatcmpl-", context.created, context.random),
  };
}

/** The context of a response, and what its request says about its form. */
function responseForm(
  options: WriteResponsesOptions,
): readonly [AnswerContext & { readonly id?: string }, ResponseOptions] {
  const { request = {}, logprobs = true, id } = options;
  const { include, stream_options: streamOptions } = request;
  const obfuscates = isObject(streamOptions) ? streamOptions["include_obfuscation"] : undefined;
  const asked = capturedRequest(request, []);
  const now = (): number => Math.floor(Date.now() / 1000);
  return [
    { ...answerContext(options), ...(id !== undefined && { id }), ...(options.created === undefined && { now }) },
    {
      ...asked,
      summarizes: asked.echo.reasoning.summary !== null,
      encryptsReasoning: Array.isArray(include) && include.includes("reasoning.encrypted_content"),
      ...(typeof obfuscates === "boolean" && { includeObfuscation: obfuscates }),
      logprobs,
    },
  ];
}

function responseWriter(options: WriteResponsesOptions): ResponseStreamWriter {
  return new ResponseStreamWriter(new ResponseObject(...responseForm(options), "stream"));
}

function messageContext(options: WriteMessagesOptions): MessageContext {
  const { reasoning = "shown", requestId: id } = options;
  const context = answerContext(options);
  const { created, random } = context;
  return {
    ...context,
    id: options.id ?? messageId(created, random),
    options: { requestId: id ?? messagesRequestId(created * 1000, random), reasoning },
  };
}

/** Batches, of which the last one ends with `end` even if the source throws or stops. */
async function* endedBatches(events: EventSource): AsyncGenerator<readonly GenerationEvent[]> {
  const texts = new WellFormedEvents();
  try {
    for await (const item of events) {
      const batch = texts.read("type" in item ? [item] : item);
      yield batch;
      if (batch.at(-1)?.type === "end") return;
    }
  } catch (cause) {
    const { failure } = cause instanceof FailureError ? cause : internalError(cause);
    yield texts.read([{ type: "end", end: { kind: "engine-error", failure } }]);
    return;
  }
  yield texts.read([noEnd]);
}

const noEnd: EndEvent = {
  type: "end",
  end: {
    kind: "truncated",
    failure: { message: "The source stopped before it had finished.", status: 502, kind: "bad-answer" },
  },
};
