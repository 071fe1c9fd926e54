import type { GeneratedChoice, GeneratedPart, Generation } from "../../core/accumulate.ts";
import type {
  FinishReason,
  GenerationEvent,
  HostedCallStartEvent,
  PartEndEvent,
  TokenAlternative,
  TokenLogprob,
  Usage,
} from "../../core/events.ts";
import type { JsonObject } from "../../core/json.ts";
import { jsonString, type JsonValue } from "../json-text.ts";
import { logprobNumber } from "../logprobs.ts";
import { inWireOrder } from "../members.ts";
import type { AnswerContext, StreamWriter } from "../port.ts";
import { openSeal } from "../turn-seal.ts";
import { keepAliveText } from "../sse-text.ts";
import { errorObject } from "./errors.ts";
import { type GeminiForm, geminiForms } from "./form.ts";
import type { GeminiAnswer } from "./request.ts";
import { geminiResponse } from "./schema.ts";
import { PartWriter, type WrittenCall } from "./write-parts.ts";

/** The context of one answer. */
export interface GeminiContext extends AnswerContext {
  readonly answer: GeminiAnswer;
  readonly id: string;
}

/** Google's id of an answer: 22 or 23 characters of base 64 for URLs. */
export function responseId(random: () => number): string {
  const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return Array.from({ length: 22 }, () => characters[Math.floor(random() * 64)]).join("") + "A";
}

export function geminiContext(context: AnswerContext, answer: GeminiAnswer): GeminiContext {
  const id = responseId(context.random);
  context.onId?.(id);
  return { ...context, answer, id };
}

/** Writes the body of an answer that is not streamed. */
export function writeGeminiResponse(generation: Generation, context: GeminiContext): string {
  const { extras, usage, source } = generation;
  const candidates = generation.choices.map((choice) => wholeCandidate(choice, context));
  for (const { value, place, choice = 0, dialect } of extras)
    if (dialect === "gemini" && place === "choice" && candidates[choice]) Object.assign(candidates[choice], value);
  const native = extras.flatMap(({ value, place, dialect }) =>
    dialect === "gemini" && place === "chunk" ? [value] : [],
  );
  const members = Object.assign({}, ...native) as JsonObject;
  const form = geminiForms[context.profile.name];
  return form.whole(responseObject({ ...members, candidates }, usage, source?.model, context));
}

function wholeCandidate({ choice, parts, finish, textLogprobs }: GeneratedChoice, context: GeminiContext): JsonObject {
  const writer = new PartWriter(partContext(context));
  const written = parts.flatMap((part) => wholePart(part, writer));
  const rest = [...written, ...writer.end()];
  const last = rest.at(-1);
  const before = rest.at(-2);
  // The signature of a text is in the text's own part.
  if (last?.["text"] === "" && last["thoughtSignature"] !== undefined && isPlainText(before))
    rest.splice(-2, 2, { ...before, thoughtSignature: last["thoughtSignature"] });
  return candidateObject(
    rest,
    choice,
    { writer, reason: finish?.reason ?? "stop", logprobs: textLogprobs ?? [] },
    context,
  );
}

function isPlainText(part: JsonObject | undefined): part is JsonObject {
  return part !== undefined && typeof part["text"] === "string" && Object.keys(part).length === 1;
}

function wholePart(part: GeneratedPart, writer: PartWriter): JsonObject[] {
  switch (part.type) {
    case "text":
      for (const annotation of part.annotations) writer.annotation(annotation);
      return part.text === "" ? [] : [writer.text(part.text)];
    case "refusal":
      return part.refusal === "" ? [] : [writer.text(part.refusal)];
    case "reasoning": {
      const thought = writer.thought(part.text === "" ? part.summary.join("\n\n") : part.text);
      return [...(thought ? [thought] : []), ...writer.reasoningEnds(part)];
    }
    case "tool-call":
      return writer.call(part);
    case "hosted-call":
      return writer.hosted(part);
    case "hosted-result":
      return writer.hostedResult(part);
    case "item":
      return part.dialect === "gemini" ? [writer.native(part.value)] : [];
    case "hosted-functions":
    case "hosted-approval":
      return [];
  }
}

function partContext({ turnSeal = openSeal, answer }: GeminiContext): ConstructorParameters<typeof PartWriter>[0] {
  return { turnSeal, showsThoughts: answer.showsThoughts };
}

/** A choice while it is streamed. */
interface OpenChoice {
  readonly writer: PartWriter;
  /** Open reasoning. */
  reasoning: { readonly chunks: string[]; readonly summary: string[][]; readonly id: string | undefined } | undefined;
  call: (Omit<WrittenCall, "arguments"> & { readonly chunks: string[] }) | undefined;
  hosted: (HostedCallStartEvent & { readonly chunks: string[] }) | undefined;
  /** Parts with calls, until the answer ends or goes on: a client runs no call of an answer that fails. */
  held: JsonObject[];
  logprobs: TokenLogprob[];
  readonly native: Record<string, unknown>;
  finish: FinishReason | undefined;
}

/**
 * Writes an answer as chunks, in events or as the items of a list. Each chunk is a whole `GenerateContentResponse` with the parts that are
 * new. Calls are written whole, with the end of the answer.
 */
export class GeminiStreamWriter implements StreamWriter {
  readonly #context: GeminiContext;
  readonly #form: GeminiForm;
  readonly #choices = new Map<number, OpenChoice>();
  #usage: Usage | undefined;
  readonly #native: Record<string, unknown> = {};
  #model: string | undefined;
  /** The usual event with a text of the first choice: what is before the text, and after it. */
  #textEvent: { readonly head: string; readonly tail: string } | undefined;
  #isOpen = false;
  #hasItems = false;
  #ended = false;

  constructor(context: GeminiContext) {
    this.#context = context;
    this.#form = geminiForms[context.profile.name];
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    return text;
  }

  open(): string {
    if (this.#isOpen || this.#ended || this.#context.answer.isSse) return "";
    this.#isOpen = true;
    return "[";
  }

  /** In a list, white space between the items. */
  keepAlive(): string {
    if (this.#ended) return "";
    return this.#context.answer.isSse ? keepAliveText : "\n";
  }

  #event(event: GenerationEvent): string {
    if (this.#ended) return "";
    switch (event.type) {
      case "usage":
        this.#usage = event.usage;
        this.#textEvent = undefined;
        return "";
      case "start":
        this.#model ??= event.source?.model;
        this.#choice(event.choice);
        return "";
      case "text-delta":
      case "refusal-delta":
        return this.#text(event.choice, event.text, event.logprobs ?? []);
      case "reasoning-delta":
        return this.#reasoning(event.choice, event.text, event.summary);
      case "part-start":
        return this.#partStart(event.choice, event.kind, event.id);
      case "part-end":
        return this.#partEnd(event);
      case "annotation":
        this.#choice(event.choice).writer.annotation(event.annotation);
        return "";
      case "tool-call-start": {
        const { id, name, kind, state } = event;
        const text = this.#reasoningEnds(event.choice);
        this.#choice(event.choice).call = { id, name, kind, state, chunks: [] };
        return text;
      }
      case "tool-call-delta":
        this.#choice(event.choice).call?.chunks.push(event.arguments);
        return "";
      case "tool-call-end": {
        const choice = this.#choice(event.choice);
        const { call } = choice;
        choice.call = undefined;
        if (!call) return "";
        const { state = event.state } = call;
        const parts = choice.writer.call({ ...call, state, arguments: event.raw ?? call.chunks.join("") });
        for (const part of parts) choice.held.push(part);
        return "";
      }
      case "hosted-call-start":
        this.#choice(event.choice).hosted = { ...event, chunks: [] };
        return this.#reasoningEnds(event.choice);
      case "hosted-call-delta":
        this.#choice(event.choice).hosted?.chunks.push(event.arguments);
        return "";
      case "hosted-call-end": {
        const choice = this.#choice(event.choice);
        const { hosted } = choice;
        return hosted
          ? this.#parts(event.choice, choice.writer.hosted({ ...hosted, arguments: hosted.chunks.join("") }))
          : "";
      }
      case "hosted-result":
        return this.#parts(event.choice, this.#choice(event.choice).writer.hostedResult(event));
      case "extra": {
        if (event.dialect !== "gemini") return "";
        const choice = this.#choice(event.choice ?? 0);
        if (event.place === "item") return this.#parts(event.choice ?? 0, [choice.writer.native(event.value)]);
        Object.assign(event.place === "choice" ? choice.native : this.#native, event.value);
        return "";
      }
      case "finish": {
        const text = this.#reasoningEnds(event.choice);
        this.#choice(event.choice).finish ??= event.reason;
        return text;
      }
      case "end": {
        const text =
          event.end.kind === "done"
            ? this.#last()
            : event.end.kind === "client-gone"
              ? ""
              : this.#item(this.#json(errorObject(event.end.failure, this.#context.profile)));
        this.#ended = true;
        return this.#context.answer.isSse ? text : `${text}${this.open()}]`;
      }
      default:
        return "";
    }
  }

  #choice(number: number): OpenChoice {
    let choice = this.#choices.get(number);
    if (!choice) {
      choice = {
        writer: new PartWriter(partContext(this.#context)),
        reasoning: undefined,
        call: undefined,
        hosted: undefined,
        held: [],
        logprobs: [],
        native: {},
        finish: undefined,
      };
      this.#choices.set(number, choice);
    }
    return choice;
  }

  #text(number: number, text: string, logprobs: readonly TokenLogprob[]): string {
    const before = this.#reasoningEnds(number);
    const choice = this.#choice(number);
    for (const token of logprobs) choice.logprobs.push(token);
    if (text === "") return before;
    const part = choice.writer.text(text);
    const isPlain = choice.held.length === 0 && part["thoughtSignature"] === undefined && choice.logprobs.length === 0;
    return before + (isPlain ? this.#textChunk(number, text) : this.#parts(number, [part]));
  }

  /** The usual chunk, from prepared text. A test compares it with `#parts`. */
  #textChunk(number: number, text: string): string {
    if (!this.#context.answer.isSse || number > 0) return this.#parts(number, [{ text }]);
    if (!this.#textEvent) {
      const empty = this.#parts(number, [{ text: "" }]);
      const at = empty.indexOf('""');
      this.#textEvent = { head: empty.slice(0, at), tail: empty.slice(at + 2) };
    }
    return this.#textEvent.head + jsonString(text) + this.#textEvent.tail;
  }

  #reasoning(number: number, text: string, summary: number | undefined): string {
    const choice = this.#choice(number);
    const open = (choice.reasoning ??= { chunks: [], summary: [], id: undefined });
    let isNew = false;
    if (summary === undefined) open.chunks.push(text);
    else {
      isNew = open.summary.length > 0 && open.summary[summary] === undefined;
      (open.summary[summary] ??= []).push(text);
    }
    // If a source sends both, its reasoning is shown.
    if (summary !== undefined && open.chunks.length > 0) return "";
    const part = choice.writer.thought(isNew ? `\n\n${text}` : text);
    return part ? this.#parts(number, [part]) : "";
  }

  #partStart(number: number, kind: "text" | "reasoning" | "refusal", id: string | undefined): string {
    const text = this.#reasoningEnds(number);
    if (kind === "reasoning") this.#choice(number).reasoning = { chunks: [], summary: [], id };
    return text;
  }

  #partEnd({ choice, state }: PartEndEvent): string {
    return this.#reasoningEnds(choice, state);
  }

  #reasoningEnds(number: number, state?: PartEndEvent["state"]): string {
    const choice = this.#choice(number);
    const { reasoning } = choice;
    choice.reasoning = undefined;
    if (!reasoning || !state) return "";
    const { chunks, id } = reasoning;
    const summary = reasoning.summary.filter((one) => one !== undefined).map((texts) => texts.join(""));
    const parts = choice.writer.reasoningEnds({ text: chunks.join(""), summary, id, state });
    return parts.length > 0 ? this.#parts(number, parts) : "";
  }

  /** A chunk with parts of a choice, after those that were held. */
  #parts(number: number, parts: readonly JsonObject[]): string {
    const choice = this.#choice(number);
    if (parts.length === 0) return "";
    const written = [...choice.held, ...parts];
    choice.held = [];
    const logprobs = choice.logprobs;
    choice.logprobs = [];
    return this.#chunk({ candidates: [candidateObject(written, number, { logprobs }, this.#context)] });
  }

  /** The last chunk, which has the end of each choice, and the usage. */
  #last(): string {
    const numbers = [...this.#choices.keys()].sort((a, b) => a - b);
    const candidates = numbers.map((number) => {
      const { held, writer, finish = "stop", logprobs, native } = this.#choice(number);
      const rest = [...held, ...writer.end()];
      const parts = rest.length > 0 ? rest : [{ text: "" }];
      return { ...candidateObject(parts, number, { writer, reason: finish, logprobs }, this.#context), ...native };
    });
    return this.#chunk({ ...this.#native, candidates });
  }

  #chunk(members: JsonObject): string {
    return this.#item(this.#json(responseObject(members, this.#usage, this.#model, this.#context)));
  }

  #json(value: JsonValue): string {
    return this.#context.answer.isSse ? this.#form.event(value) : this.#form.whole(value);
  }

  #item(json: string): string {
    if (this.#context.answer.isSse) return `data: ${json}${this.#form.eventEnd}`;
    const before = this.open() || (this.#hasItems ? this.#form.comma : "");
    this.#hasItems = true;
    return before + json;
  }
}

interface CandidateEnd {
  /** With `reason`: the choice ends. */
  readonly writer?: PartWriter;
  readonly reason?: FinishReason;
  readonly logprobs: readonly TokenLogprob[];
}

/** A candidate, its members in any order. */
function candidateObject(
  parts: readonly JsonObject[],
  index: number,
  { writer, reason, logprobs }: CandidateEnd,
  { answer }: GeminiContext,
): JsonObject {
  const known = answer.topLogprobs === undefined ? [] : logprobs.filter(({ logprob }) => logprob !== null);
  const sum = known.reduce((total, { logprob }) => total + (logprob ?? 0), 0);
  return {
    content: { parts, role: "model" },
    ...(reason && { finishReason: writer?.malformed === undefined ? finishReason(reason) : "MALFORMED_FUNCTION_CALL" }),
    index,
    ...(reason && writer?.malformed !== undefined && { finishMessage: writer.malformed }),
    ...(reason && writer?.malformed === undefined && writer?.hasCalls && { finishMessage: callsMessage }),
    ...(reason && writer?.metadata),
    ...(known.length > 0 && { avgLogprobs: sum / known.length, logprobsResult: logprobsResult(known, answer) }),
  };
}

/** Source: the recordings of calls. */
const callsMessage = "Model generated function call(s).";

/** Source: https://ai.google.dev/api/generate-content#FinishReason. A call ends an answer like any other part. */
function finishReason(reason: FinishReason): string {
  if (reason === "length") return "MAX_TOKENS";
  return reason === "content-filter" ? "SAFETY" : "STOP";
}

function logprobsResult(tokens: readonly TokenLogprob[], { topLogprobs = 0 }: GeminiAnswer): JsonObject {
  const object = ({ token, logprob }: Pick<TokenAlternative, "token" | "logprob">) => ({
    token,
    logProbability: logprobNumber(logprob, JSON.stringify),
  });
  return {
    ...(topLogprobs > 0 && {
      topCandidates: tokens.map(({ top }) => ({ candidates: top.slice(0, topLogprobs).map(object) })),
    }),
    chosenCandidates: tokens.map(object),
  };
}

/** An answer, its members in the order of the wire. */
function responseObject(
  members: JsonObject,
  usage: Usage | undefined,
  sourceModel: string | undefined,
  context: GeminiContext,
): JsonValue {
  const { profile, model, id } = context;
  const isDated = profile.resolvesModels && sourceModel?.startsWith(model) === true;
  return inWireOrder(geminiResponse, {
    ...members,
    ...(usage && { usageMetadata: usageObject(usage, context) }),
    modelVersion: isDated ? sourceModel : model,
    responseId: id,
  }) as JsonValue;
}

/** The tokens of thoughts are not among those of the candidates. Source: https://ai.google.dev/api/generate-content#UsageMetadata. */
function usageObject(usage: Usage, { answer, profile }: GeminiContext): JsonObject {
  const { promptTokens, completionTokens, promptDetails, completionDetails } = usage;
  const thoughts = Math.min(completionTokens, completionDetails?.["reasoning_tokens"] ?? 0);
  const cached = promptDetails?.["cached_tokens"] ?? 0;
  const { detailedUsage } = geminiForms[profile.name];
  const asText = (tokens: number) => [{ modality: "TEXT", tokenCount: tokens }];
  const isDetailed = detailedUsage && answer.isTextPrompt;
  return {
    promptTokenCount: promptTokens,
    ...(completionTokens > thoughts && { candidatesTokenCount: completionTokens - thoughts }),
    totalTokenCount: usage.totalTokens ?? promptTokens + completionTokens,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(isDetailed && promptTokens > 0 && { promptTokensDetails: asText(promptTokens) }),
    ...(isDetailed && cached > 0 && { cacheTokensDetails: asText(cached) }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(detailedUsage && { serviceTier: "standard" }),
  };
}
