import { accumulate, Accumulator } from "../../wire/core/accumulate.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import type { GenerationEvent, GenerationFailure } from "../../wire/core/events.ts";
import { WellFormedEvents } from "../../wire/core/well-formed.ts";
import { chatReader } from "../../wire/apis/chat/read.ts";
import { toolCallId } from "../../wire/apis/ids.ts";
import { toolUseId } from "../../wire/apis/messages/ids.ts";
import { MessageReader } from "../../wire/apis/messages/read.ts";
import { ResponseReader } from "../../wire/apis/responses/read.ts";
import { streamChunks } from "../../wire/apis/sse/stream-chunks.ts";
import type { AnswerReader } from "../../wire/apis/tolerant/answer-reader.ts";
import { failureOfText, readFailure } from "../../wire/apis/tolerant/read-failure.ts";
import { readResponseBody, parseTolerantly } from "../../wire/apis/tolerant/read-response.ts";
import { RepairLog } from "../../wire/apis/tolerant/repairs.ts";
import type { Repair } from "../../wire/apis/tolerant/repairs.ts";
import { random } from "../../wire/random/random.ts";

/*
 * One implementation for all APIs. Each exported function makes the reader of its API, so that a bundle contains only the readers that are
 * used.
 */

/**
 * A streamed answer: the `Response` of `fetch`, its body, any iterable of its bytes (cut anywhere) or texts (cut at characters) or parsed
 * events (what the SDKs iterate over), or the whole text.
 */
export type StreamSource =
  | string
  | Response
  | ReadableStream<Uint8Array | string>
  | AsyncIterable<Uint8Array | string | object>
  | Iterable<Uint8Array | string | object>;

/** Events, one by one or in batches, as they come or all there. */
export type EventSource =
  | Iterable<GenerationEvent | readonly GenerationEvent[]>
  | AsyncIterable<GenerationEvent | readonly GenerationEvent[]>;

export interface ReadAnswerOptions {
  /** Makes an id for a call that has none, or one that is taken; default: a random id in the API's form (`call_…`, `toolu_…`). */
  readonly newCallId?: () => string;
  /** Called at the end with the repairs that were made; not called for an exact answer. */
  readonly onRepairs?: (repairs: readonly Repair[]) => void;
}

export interface ReadChatOptions extends ReadAnswerOptions {
  /** The request was made with the legacy `functions`: a call ends with reason "function-call". */
  readonly legacyFunctions?: boolean;
}

/** Maximum length of an error's body that is read, in characters. */
const failureLimit = 256 * 1024;

/**
 * Reads a streamed chat answer of any server of OpenAI's dialect, however broken, into events; the last one is `end`. Nothing is thrown
 * for what is read: `end` reports an error (with its status where `source` is a Response), a stream that breaks off, or a `tool_calls`
 * without calls. Leaving the loop early cancels the source.
 *
 * @example
 * import { readChatStream } from "truewire";
 *
 * const stream = 'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\ndata: {"choices":[{"delta":{"content":"lo"},"finish_reason":"eos"}]}\n\n';
 * for await (const event of readChatStream(stream)) {
 *   if (event.type === "text-delta") console.log(event.text);
 *   if (event.type === "finish") console.log(event.reason);
 * }
 * // → Hel
 * // → lo
 * // → stop
 */
export function readChatStream(source: StreamSource, options: ReadChatOptions = {}): AsyncGenerator<GenerationEvent> {
  return readStream(chatAnswerReader(options), source, options, dataOf);
}

/**
 * Reads a chat answer that was not streamed: its JSON text, or what was parsed from it. A failure, of the server or of the text, is in
 * `end`; nothing is thrown.
 *
 * @example
 * import { readChatAnswer } from "truewire";
 *
 * const body = '{"choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}';
 * console.log(readChatAnswer(body).choices[0].text);
 * // → Hello
 * console.log(readChatAnswer('{"error":{"message":"Too many requests","type":"requests"}}').end.failure.status);
 * // → 429
 */
export function readChatAnswer(body: string | object, options: ReadChatOptions = {}): Generation {
  return readAnswer(chatAnswerReader(options), body, options);
}

/**
 * Reads a streamed answer of the Responses API, of any server, into events, as `readChatStream` reads one of chat completions.
 *
 * @example
 * import { readResponsesStream } from "truewire";
 *
 * const events = [
 *   { type: "response.output_text.delta", delta: "Hello" },
 *   { type: "response.completed", response: { output: [{ type: "message", content: [{ type: "output_text", text: "Hello!" }] }] } },
 * ];
 * for await (const event of readResponsesStream(events)) if (event.type === "text-delta") console.log(event.text);
 * // → Hello
 * // → !
 */
export function readResponsesStream(
  source: StreamSource,
  options: ReadAnswerOptions = {},
): AsyncGenerator<GenerationEvent> {
  return readStream(responsesAnswerReader(options), source, options, namedEvent);
}

/**
 * Reads a response of the Responses API that was not streamed: its JSON text, or what was parsed from it. A failure is in `end`; nothing
 * is thrown.
 *
 * @example
 * import { readResponsesAnswer } from "truewire";
 *
 * const call = { type: "function_call", call_id: "call_1", name: "add", arguments: '{"a":1}' };
 * const { choices } = readResponsesAnswer({ object: "response", status: "completed", output: [call] });
 * console.log(choices[0].toolCalls[0].name, choices[0].finish.reason);
 * // → add tool-calls
 */
export function readResponsesAnswer(body: string | object, options: ReadAnswerOptions = {}): Generation {
  return readAnswer(responsesAnswerReader(options), body, options);
}

/**
 * Reads a streamed answer of Anthropic's Messages API, of any server, into events, as `readChatStream` reads one of chat completions.
 *
 * @example
 * import { accumulateStream, readMessagesStream } from "truewire";
 *
 * const events = [
 *   { type: "message_start", message: { id: "msg_1", model: "m", content: [], usage: { input_tokens: 3, output_tokens: 0 } } },
 *   { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
 *   { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
 * ];
 * const { choices, usage } = await accumulateStream(readMessagesStream(events));
 * console.log(choices[0].text, choices[0].finish.reason, usage.promptTokens);
 * // → Hello stop 3
 */
export function readMessagesStream(
  source: StreamSource,
  options: ReadAnswerOptions = {},
): AsyncGenerator<GenerationEvent> {
  return readStream(messagesAnswerReader(options), source, options, namedEvent);
}

/**
 * Reads a message of Anthropic's Messages API that was not streamed: its JSON text, or what was parsed from it. A failure is in `end`;
 * nothing is thrown.
 *
 * @example
 * import { readMessagesAnswer } from "truewire";
 *
 * const { choices } = readMessagesAnswer({ content: [{ type: "text", text: "Hello" }], stop_reason: "max_tokens" });
 * console.log(choices[0].text, choices[0].finish.reason);
 * // → Hello length
 */
export function readMessagesAnswer(body: string | object, options: ReadAnswerOptions = {}): Generation {
  return readAnswer(messagesAnswerReader(options), body, options);
}

function chatAnswerReader({ newCallId = () => toolCallId(random), legacyFunctions }: ReadChatOptions): AnswerReader {
  return chatReader({ newCallId, ...(legacyFunctions !== undefined && { legacyFunctions }) });
}

function responsesAnswerReader({ newCallId = () => toolCallId(random) }: ReadAnswerOptions): AnswerReader {
  return new ResponseReader({ newCallId });
}

function messagesAnswerReader({ newCallId = () => toolUseId(random) }: ReadAnswerOptions): AnswerReader {
  return new MessageReader({ newCallId });
}

async function* readStream(
  reader: AnswerReader,
  source: StreamSource,
  { onRepairs }: ReadAnswerOptions,
  frameOf: (event: object) => string,
): AsyncGenerator<GenerationEvent> {
  const texts = new WellFormedEvents();
  try {
    if (source instanceof Response && !source.ok) {
      yield* texts.read(reader.abandon({ kind: "upstream-error", failure: await failureOf(source) }));
      return;
    }
    try {
      for await (const chunk of chunksOf(source)) {
        const input = typeof chunk === "string" || chunk instanceof Uint8Array ? chunk : frameOf(chunk);
        yield* texts.read(reader.push(input));
        if (reader.ended) return;
      }
      yield* texts.read(reader.end());
    } catch (error) {
      yield* texts.read(reader.end(error instanceof Error ? error : new Error(String(error))));
    }
  } finally {
    if (reader.repairs.total > 0) onRepairs?.(reader.repairs.list());
  }
}

function readAnswer(reader: AnswerReader, body: string | object, { onRepairs }: ReadAnswerOptions): Generation {
  const events = typeof body === "string" ? readResponseBody(body, reader) : reader.readBody(body);
  const generation = accumulate(new WellFormedEvents().read(events));
  if (reader.repairs.total > 0) onRepairs?.(reader.repairs.list());
  return generation;
}

/** Returns the text of an event that is parsed already, so that it is read by the same rules as all others. */
function dataOf(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** The same for APIs whose events have names. */
function namedEvent(event: object): string {
  const { type } = event as { readonly type?: unknown };
  return (typeof type === "string" && /^[\w.]+$/.test(type) ? `event: ${type}\n` : "") + dataOf(event);
}

async function* chunksOf(source: StreamSource): AsyncGenerator<Uint8Array | string | object> {
  if (typeof source === "string") yield source;
  else if (source instanceof Response) yield* chunksOf(source.body ?? []);
  else if (source instanceof ReadableStream && !(Symbol.asyncIterator in source)) yield* streamChunks(source);
  else yield* source;
}

async function failureOf(response: Response): Promise<GenerationFailure> {
  const { status } = response;
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of chunksOf(response) as AsyncGenerator<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > failureLimit) break;
    }
  } catch {
    // The status is what matters: the part of the body that was read is used.
  }
  return readFailure(parseTolerantly(text, new RepairLog()), status) ?? failureOfText(text, status);
}

/**
 * Collects a stream of events into the whole generation: `accumulate` for events that are still to come. Rejects only if `events` throws.
 *
 * @example
 * import { accumulateStream, readChatStream } from "truewire";
 *
 * const stream = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
 * const { choices, end } = await accumulateStream(readChatStream(stream));
 * console.log(choices[0].text, end.kind);
 * // → Hi done
 */
export async function accumulateStream(events: EventSource): Promise<Generation> {
  const accumulator = new Accumulator();
  for await (const item of events) accumulator.add("type" in item ? [item] : item);
  return accumulator.result();
}
