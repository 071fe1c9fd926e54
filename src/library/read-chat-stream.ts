import { accumulate, Accumulator } from "../core/accumulate.ts";
import type { Generation } from "../core/accumulate.ts";
import type { GenerationEvent, GenerationFailure } from "../core/events.ts";
import { chatReader } from "../apis/chat/read.ts";
import { toolCallId } from "../apis/ids.ts";
import { streamChunks } from "../apis/sse/stream-chunks.ts";
import { failureOfText, readFailure } from "../apis/tolerant/read-failure.ts";
import { readResponseBody, parseTolerantly } from "../apis/tolerant/read-response.ts";
import { RepairLog } from "../apis/tolerant/repairs.ts";
import type { Repair } from "../apis/tolerant/repairs.ts";
import type { EventSource } from "./call-progress.ts";

/**
 * A streamed chat answer: what `fetch` gave, its body, any iterable of its bytes (cut anywhere) or texts (cut at characters) or parsed
 * chunks (what OpenAI's SDK iterates over), or the whole text.
 */
export type ChatStreamSource =
  | string
  | Response
  | ReadableStream<Uint8Array | string>
  | AsyncIterable<Uint8Array | string | object>
  | Iterable<Uint8Array | string | object>;

export interface ReadChatOptions {
  /** Makes an id for a call that has none, or one that is taken; default: `call_` and 24 random characters. */
  readonly newCallId?: () => string;
  /** The request was made with the legacy `functions`: a call ends with reason "function-call". */
  readonly legacyFunctions?: boolean;
  /** Called at the end with the repairs that were made; not called for an exact answer. */
  readonly onRepairs?: (repairs: readonly Repair[]) => void;
}

/** Maximum length of an error's body that is read, in characters. */
const failureLimit = 256 * 1024;

/**
 * Reads a streamed chat answer of any server of OpenAI's dialect, however broken, into events; the last one is `end`. Nothing is thrown
 * for what is read: an error (with its status where `source` is a Response), a stream that breaks off, a `tool_calls` without calls are
 * told by `end`. Leaving the loop early cancels the source.
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
export async function* readChatStream(
  source: ChatStreamSource,
  options: ReadChatOptions = {},
): AsyncGenerator<GenerationEvent> {
  const reader = chatReader(readerOptions(options));
  try {
    if (source instanceof Response && !source.ok) {
      yield* reader.abandon({ kind: "upstream-error", failure: await failureOf(source) });
      return;
    }
    try {
      for await (const chunk of chunksOf(source)) {
        yield* reader.push(typeof chunk === "string" || chunk instanceof Uint8Array ? chunk : frameOf(chunk));
        if (reader.ended) return;
      }
      yield* reader.end();
    } catch (error) {
      yield* reader.end(error instanceof Error ? error : new Error(String(error)));
    }
  } finally {
    if (reader.repairs.total > 0) options.onRepairs?.(reader.repairs.list());
  }
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
  const reader = chatReader(readerOptions(options));
  const generation = accumulate(typeof body === "string" ? readResponseBody(body, reader) : reader.readBody(body));
  if (reader.repairs.total > 0) options.onRepairs?.(reader.repairs.list());
  return generation;
}

function readerOptions({ newCallId = () => toolCallId(Math.random), legacyFunctions }: ReadChatOptions): {
  readonly newCallId: () => string;
  readonly legacyFunctions?: boolean;
} {
  return { newCallId, ...(legacyFunctions !== undefined && { legacyFunctions }) };
}

/** A chunk that is parsed already goes the way of all others, so that it is read by the same rules. */
function frameOf(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

async function* chunksOf(source: ChatStreamSource): AsyncGenerator<Uint8Array | string | object> {
  if (typeof source === "string") yield source;
  else if (source instanceof Response) {
    if (source.body) yield* chunksOf(source.body);
  } else if (source instanceof ReadableStream && !(Symbol.asyncIterator in source)) yield* streamChunks(source);
  else yield* source;
}

async function failureOf(response: Response): Promise<GenerationFailure> {
  const { status } = response;
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of chunksOf(response)) {
      if (chunk instanceof Uint8Array) text += decoder.decode(chunk, { stream: true });
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
