import { accumulate } from "../generation/accumulate.ts";
import type { Generation } from "../generation/accumulate.ts";
import type { GenerationEnd } from "../generation/event.ts";
import { writeChatResponse } from "./chat/response-writer.ts";
import { ChatStreamReader } from "./chat/stream-reader.ts";
import { ChatStreamWriter } from "./chat/stream-writer.ts";
import { writeCompletionResponse } from "./completions/response-writer.ts";
import { CompletionsStreamReader } from "./completions/stream-reader.ts";
import { CompletionStreamWriter } from "./completions/stream-writer.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import { writeErrorBody } from "./error-body.ts";
import { answerId, toolCallId } from "./ids.ts";
import type { Profile } from "./profile.ts";
import type { ChoiceState } from "./tolerant/answer-choices.ts";
import type { AnswerReader } from "./tolerant/answer-reader.ts";
import { readResponseBody } from "./tolerant/read-response.ts";
import type { Repair } from "./tolerant/repairs.ts";

export interface RepairOptions {
  readonly profile: Profile;
  /** Which endpoint's answer it is; "auto": by what it holds. */
  readonly from: "chat" | "completions" | "auto";
  /** Uniform in [0, 1): for obfuscation and missing ids. */
  readonly random: () => number;
  /** Unix time in seconds, for answers that do not tell theirs. */
  readonly now: number;
}

export interface RepairedCapture {
  /** The exact answer: an event stream, or a JSON body where the capture was one. */
  readonly body: string;
  readonly repairs: readonly Repair[];
  readonly end: GenerationEnd;
}

/**
 * Reads a captured answer, however broken, and writes it anew: events in between, nothing copied. An answer of OpenAI's own keeps its
 * form (wire.md, "What `repair` keeps"); any other gets that of the profile. Pure.
 */
export function repairCapture(capture: string, options: RepairOptions): RepairedCapture {
  const { profile, from, random, now } = options;
  const isChat = from === "auto" ? !/"object"\s*:\s*"text_completion"/.test(capture) : from === "chat";
  const readerOptions = { newCallId: () => toolCallId(random), frameLimit: Number.POSITIVE_INFINITY };
  const reader = isChat ? new ChatStreamReader(readerOptions) : new CompletionsStreamReader(readerOptions);
  const isBody = /^\s*\{/.test(capture) && isJson(capture);
  const events = isBody ? readResponseBody(capture, reader) : [...reader.push(capture), ...reader.end()];
  const generation = accumulate(events);
  const context = contextOf(generation, reader, {
    isBody,
    prefix: isChat ? "chatcmpl-" : "cmpl-",
    profile,
    random,
    now,
  });
  const repairs = reader.repairs.list();
  const { end } = generation;
  if (!isBody) {
    const writer = isChat ? new ChatStreamWriter(context) : new CompletionStreamWriter(context);
    return { body: writer.write(events), repairs, end };
  }
  if ("failure" in end) return { body: writeErrorBody(end.failure, profile).body, repairs, end };
  const write = isChat ? writeChatResponse : writeCompletionResponse;
  return { body: write(generation, context), repairs, end };
}

function contextOf(
  generation: Generation,
  reader: AnswerReader<ChoiceState>,
  told: {
    readonly isBody: boolean;
    readonly prefix: "chatcmpl-" | "cmpl-";
    readonly profile: Profile;
    readonly random: () => number;
    readonly now: number;
  },
): ChoicesContext {
  const { identity, form, madeByOpenAi } = reader;
  const { profile, random } = told;
  const created = identity.created ?? told.now;
  const { choices } = generation;
  const forms = [...form.choices.values()];
  const hasReasoning = choices.some(({ reasoning }) => reasoning !== null);
  return {
    profile,
    asked: {
      stream: !told.isBody,
      includeUsage: form.usage || generation.usage !== undefined,
      ...(madeByOpenAi && profile.name === "exact" && { includeObfuscation: form.obfuscation }),
      logprobs:
        forms.some(({ emptyLogprobs }) => emptyLogprobs === true) ||
        choices.some(({ textLogprobs, refusalLogprobs }) => textLogprobs !== null || refusalLogprobs !== null),
      namedToolChoice: forms.some(({ stopWithCalls }) => stopWithCalls === true),
      legacyFunctions: choices.some(({ finish }) => finish?.reason === "function-call"),
      ...(hasReasoning && { includeReasoning: true }),
      includeTimings: false,
    },
    id: answerId(told.prefix, created, random),
    created,
    model: identity.model ?? "unknown",
    settings: {},
    random,
    ...(madeByOpenAi && { capture: form }),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
