import { accumulate } from "../generation/accumulate.ts";
import type { Generation } from "../generation/accumulate.ts";
import type { GenerationEnd } from "../generation/event.ts";
import { chatEndpoint } from "./chat/endpoint.ts";
import { ChatStreamReader } from "./chat/stream-reader.ts";
import { completionsEndpoint } from "./completions/endpoint.ts";
import { CompletionsStreamReader } from "./completions/stream-reader.ts";
import type { AnswerContext } from "./endpoint.ts";
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
  const endpoint = isChat ? chatEndpoint : completionsEndpoint;
  const context = contextOf(generation, reader, {
    isBody,
    prefix: isChat ? "chatcmpl-" : "cmpl-",
    profile,
    random,
    now,
  });
  const repairs = reader.repairs.list();
  const { end } = generation;
  if (!isBody) return { body: endpoint.streamWriter(context).write(events), repairs, end };
  const body =
    "failure" in end ? writeErrorBody(end.failure, profile).body : endpoint.writeResponse(generation, context);
  return { body, repairs, end };
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
): AnswerContext {
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
      ...(madeByOpenAi && profile.name === "openai" && { includeObfuscation: form.obfuscation }),
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
