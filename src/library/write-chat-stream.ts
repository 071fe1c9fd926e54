import type { EventSource } from "./call-progress.ts";
import type { Generation } from "../core/accumulate.ts";
import type { EndEvent, GenerationEvent } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import { writeChatResponse } from "../apis/chat/write-body.ts";
import { ChatStreamWriter } from "../apis/chat/write-stream.ts";
import type { ChoicesContext, RequestedAnswer } from "../apis/choices-answer.ts";
import type { AnswerSettings } from "../apis/port.ts";
import { internalError } from "../apis/failures.ts";
import { answerId } from "../apis/ids.ts";
import { lean, profileNamed } from "../apis/profile.ts";

/** How a written answer looks: what its request asked for (all optional here), and what the server adds. */
export interface WriteChatOptions
  extends Partial<Omit<RequestedAnswer, "stream" | "textOffsets" | "logprobs">>, AnswerSettings {
  /** The model id to show. */
  readonly model: string;
  /** Default `lean`; `exact`: the bytes of api.openai.com. `openai` is the older name of `exact`. */
  readonly wire?: "lean" | "exact" | "openai";
  /** Default: a new `chatcmpl-` id. An id that the events bring from their source wins where it is one of OpenAI's form. */
  readonly id?: string;
  /** Unix time in seconds; default: now. */
  readonly created?: number;
  /** Show the logprobs that the events have; default true. */
  readonly logprobs?: boolean;
  /** Uniform in [0, 1): for ids and obfuscation; default `Math.random`. */
  readonly random?: () => number;
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
export async function* writeChatStream(events: EventSource, options: WriteChatOptions): AsyncGenerator<string> {
  const writer = new ChatStreamWriter(contextOf(options, true));
  for await (const batch of endedBatches(events)) {
    const text = writer.write(batch);
    if (text !== "") yield text;
  }
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
export async function* writeChatChunks(events: EventSource, options: WriteChatOptions): AsyncGenerator<ChatChunk> {
  const writer = new ChatStreamWriter(contextOf(options, true));
  for await (const batch of endedBatches(events)) {
    const last = batch.at(-1);
    const failed = last?.type === "end" && "failure" in last.end ? last.end.failure : undefined;
    // JSON has no bare line feed, so an empty line is always the end of an event.
    for (const frame of writer.write(batch).split("\n\n")) {
      if (!frame.startsWith("data: {") || frame.startsWith('data: {"error":')) continue;
      yield JSON.parse(frame.slice("data: ".length)) as ChatChunk;
    }
    if (failed) throw new FailureError(failed);
  }
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
  if ("failure" in generation.end) throw new FailureError(generation.end.failure);
  return writeChatResponse(generation, contextOf(options, false));
}

function contextOf(options: WriteChatOptions, stream: boolean): ChoicesContext {
  const { model, wire = "lean", random = Math.random, created = Math.floor(Date.now() / 1000) } = options;
  const { systemFingerprint, serviceTier, logprobsKey, reasoningFields, passExtra, includeReasoning } = options;
  return {
    profile: profileNamed(wire) ?? lean,
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
    id: options.id ?? answerId("chatcmpl-", created, random),
    created,
    model,
    settings: {
      ...(systemFingerprint !== undefined && { systemFingerprint }),
      ...(serviceTier !== undefined && { serviceTier }),
      ...(logprobsKey !== undefined && { logprobsKey }),
      ...(reasoningFields && { reasoningFields }),
      ...(passExtra !== undefined && { passExtra }),
    },
    random,
  };
}

/** Batches, of which the last one ends with `end` even if the source throws or stops. */
async function* endedBatches(events: EventSource): AsyncGenerator<readonly GenerationEvent[]> {
  try {
    for await (const item of events) {
      const batch = "type" in item ? [item] : item;
      yield batch;
      if (batch.at(-1)?.type === "end") return;
    }
  } catch (cause) {
    const { failure } = cause instanceof FailureError ? cause : internalError(cause);
    yield [{ type: "end", end: { kind: "engine-error", failure } }];
    return;
  }
  yield [noEnd];
}

const noEnd: EndEvent = {
  type: "end",
  end: {
    kind: "truncated",
    failure: { message: "The source stopped before it had finished.", status: 502, kind: "bad-answer" },
  },
};
