import { accumulate } from "../core/accumulate.ts";
import type { Generation } from "../core/accumulate.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { CaptureForm, RepairedCapture, RepairOptions } from "./capture-form.ts";
import { writeChatCapture, writeChatCaptureBody } from "./chat/write-capture.ts";
import { writeChatResponse } from "./chat/write-body.ts";
import { ChatStreamReader } from "./chat/read.ts";
import { ChatStreamWriter } from "./chat/write-stream.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import { writeCompletionCapture } from "./completions/write-capture.ts";
import { writeCompletionResponse } from "./completions/write-body.ts";
import { CompletionsStreamReader } from "./completions/read.ts";
import { CompletionStreamWriter } from "./completions/write-stream.ts";
import { writeErrorBody } from "./error-body.ts";
import { answerId, toolCallId } from "./ids.ts";
import type { StreamWriter } from "./port.ts";
import type { ChoiceState } from "./tolerant/answer-choices.ts";
import type { ChoicesReader, ChoicesReaderOptions } from "./tolerant/choices-reader.ts";
import { ChunkOrder } from "./tolerant/chunk-order.ts";
import { readResponseBody } from "./tolerant/read-response.ts";

/** An API whose answers are made of choices, as `repair` reads and writes it. */
interface ChoicesApi {
  readonly prefix: "chatcmpl-" | "cmpl-";
  reader(options: ChoicesReaderOptions): ChoicesReader<ChoiceState>;
  /** For an answer of another server. */
  writer(context: ChoicesContext): StreamWriter;
  writeBody(generation: Generation, context: ChoicesContext): string;
  /** For an answer of OpenAI's own, whose form is kept. */
  writeCapture(batches: readonly GenerationEvent[][], context: ChoicesContext, form: CaptureForm): string;
  writeCaptureBody(generation: Generation, context: ChoicesContext, form: CaptureForm): string;
}

export const chatCaptures: ChoicesApi = {
  prefix: "chatcmpl-",
  reader: (options) => new ChatStreamReader(options),
  writer: (context) => new ChatStreamWriter(context),
  writeBody: (generation, context) => writeChatResponse(generation, context),
  writeCapture: writeChatCapture,
  writeCaptureBody: writeChatCaptureBody,
};

export const completionCaptures: ChoicesApi = {
  prefix: "cmpl-",
  reader: (options) => new CompletionsStreamReader(options),
  writer: (context) => new CompletionStreamWriter(context),
  writeBody: (generation, context) => writeCompletionResponse(generation, context),
  writeCapture: writeCompletionCapture,
  writeCaptureBody: (generation, context) => writeCompletionResponse(generation, context),
};

/**
 * Repairs a captured answer of chat or completions; see `repairCapture`. An answer of OpenAI's own keeps its form, any other gets the
 * profile's.
 */
export function repairChoices(api: ChoicesApi, capture: string, options: RepairOptions): RepairedCapture {
  const { profile, random } = options;
  const order = new ChunkOrder();
  const reader = api.reader({ newCallId: () => toolCallId(random), frameLimit: Number.POSITIVE_INFINITY, order });
  const isBody = /^\s*\{/.test(capture) && isJson(capture);
  const events = isBody ? readResponseBody(capture, reader) : [...reader.push(capture), ...reader.end()];
  const generation = accumulate(events);
  const context = contextOf(api, generation, reader, { ...options, isBody });
  const repairs = reader.repairs.list();
  const { form, madeByOpenAi } = reader;
  const { end } = generation;
  if (isBody && "failure" in end) return { body: writeErrorBody(end.failure, profile).body, repairs, end };
  if (isBody) {
    const body = madeByOpenAi ? api.writeCaptureBody(generation, context, form) : api.writeBody(generation, context);
    return { body, repairs, end };
  }
  const batches = order.batches(events);
  if (madeByOpenAi) return { body: api.writeCapture(batches, context, form), repairs, end };
  const writer = api.writer(context);
  return { body: batches.map((batch) => writer.write(batch)).join(""), repairs, end };
}

/** The options of the answer's request, inferred from the answer. */
function contextOf(
  { prefix }: ChoicesApi,
  { choices, usage }: Generation,
  { identity, form, madeByOpenAi }: ChoicesReader<ChoiceState>,
  { profile, random, now, isBody }: RepairOptions & { readonly isBody: boolean },
): ChoicesContext {
  const created = identity.created ?? now;
  const forms = [...form.choices.values()];
  const hasReasoning = choices.some(({ reasoning }) => reasoning !== null);
  return {
    profile,
    requested: {
      stream: !isBody,
      includeUsage: form.usage || usage !== undefined,
      logprobs:
        forms.some(({ emptyLogprobs }) => emptyLogprobs === true) ||
        choices.some(({ textLogprobs, refusalLogprobs }) => textLogprobs !== null || refusalLogprobs !== null),
      namedToolChoice: forms.some(({ stopWithCalls }) => stopWithCalls === true),
      legacyFunctions: choices.some(({ finish }) => finish?.reason === "function-call"),
      ...(hasReasoning && { includeReasoning: true }),
      includeTimings: false,
    },
    id: answerId(prefix, created, random),
    created,
    model: identity.model ?? "unknown",
    settings: madeByOpenAi ? { passExtra: true } : {},
    random,
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
