import type {
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  PromptEvent,
  SourceIdentity,
  TextDeltaEvent,
  TokenLogprob,
  UsageEvent,
} from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import type { StreamWriter } from "../port.ts";
import { memberText, allowedExtras } from "../extras.ts";
import { jsonText, jsonString } from "../json-text.ts";
import { doneText, errorEnd, keepAliveText } from "../sse-text.ts";
import { isMember, progressText, promptMembers } from "../prompt-report.ts";
import { estimatedUsage, timingsObject } from "../usage.ts";
import { completionLogprobs } from "./completion-logprobs.ts";
import { completionForms, completionFinishReason, textOffset } from "./form.ts";
import type { CompletionForm } from "./form.ts";
import { answerIdentity } from "../identity.ts";

interface ChoiceState {
  readonly index: number;
  /** Offset of the next token's text, in characters. */
  offset: number;
  /** Tokens whose text is not decided yet. They are sent with the next text. */
  heldLogprobs: TokenLogprob[];
  /** Text that waits until the end of its batch, in case the choice ends with it. */
  heldText: { readonly text: string; readonly logprobs: string } | null;
  finish: string | null;
  /** Ids of tokens, sent with the next chunk. */
  tokens: number[];
  /** Members for the next chunk, as `memberText`. */
  extras: string;
  /** The template of a text chunk: `textHead`, the JSON of the text, `textTail`; "" while a chunk needs more than that. */
  textHead: string;
  textTail: string;
}

/**
 * Writes a legacy completion as SSE chunks. Text never waits for the next batch.
 */
export class CompletionStreamWriter implements StreamWriter {
  readonly #context: ChoicesContext;
  readonly #form: CompletionForm;
  readonly #choices = new Map<number, ChoiceState>();
  #envelope: CompletionEnvelope | undefined;
  #usage: UsageEvent | undefined;
  /** Of all texts. */
  #characters = 0;
  /** By the index of the prompt. */
  readonly #prompts = new Map<number, PromptEvent>();
  /** Members for the next chunk, as `memberText`. */
  #extras = "";
  #ended = false;

  constructor(context: ChoicesContext) {
    this.#context = context;
    this.#form = completionForms[context.profile.name];
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    if (this.#form.lengthOnText) for (const state of this.#choices.values()) text += this.#heldText(state, null);
    return text;
  }

  /** Completions have no first chunk without text. */
  open(): string {
    return "";
  }

  keepAlive(): string {
    return keepAliveText;
  }

  #event(event: GenerationEvent): string {
    if (this.#ended) return "";
    switch (event.type) {
      case "start":
        this.#state(event.choice, event.source);
        return "";
      case "text-delta":
        return this.#text(this.#state(event.choice), event);
      case "finish":
        return this.#finish(this.#state(event.choice), event);
      case "usage":
        this.#usage = { ...this.#usage, ...event };
        return "";
      case "prompt":
        this.#prompts.set(event.prompt, event);
        return "";
      case "tokens":
        if (this.#context.requested.includeTokenIds) this.#state(event.choice).tokens.push(...event.tokens);
        return "";
      case "progress":
        if (!this.#context.requested.includeProgress) return "";
        this.#extras += progressText(event);
        return this.#chunk(this.#state(event.choice), '""', "null", null);
      case "extra":
        return this.#extra(event);
      case "end":
        return this.#end(event.end);
      default:
        // A completion cannot contain reasoning, refusals or calls.
        return "";
    }
  }

  #state(choice: number, source?: SourceIdentity): ChoiceState {
    const known = this.#choices.get(choice);
    if (known) return known;
    this.#envelope ??= new CompletionEnvelope(this.#context, this.#form, source);
    const state: ChoiceState = {
      index: choice,
      offset: textOffset(choice, this.#context.requested),
      heldLogprobs: [],
      heldText: null,
      finish: null,
      tokens: [],
      extras: this.#promptMembers(choice),
      textHead: "",
      textTail: "",
    };
    this.#choices.set(choice, state);
    return state;
  }

  /** Returns the requested members about the prompt of a choice, which are in the first chunk of the choice. */
  #promptMembers(choice: number): string {
    const { requested: asked } = this.#context;
    const prompt = this.#prompts.get(Math.floor(choice / (asked.textOffsets?.choicesPerPrompt ?? 1)));
    return prompt ? memberText(Object.entries(promptMembers(prompt, asked)).filter(isMember)) : "";
  }

  #text(state: ChoiceState, { text, logprobs }: TextDeltaEvent): string {
    if (state.finish !== null) return "";
    this.#characters += text.length;
    if (logprobs === undefined && state.heldLogprobs.length === 0) {
      if (text === "") return "";
      if (state.textHead !== "" && this.#extras === "") return state.textHead + jsonString(text) + state.textTail;
      return this.#textChunk(state, text, "null");
    }
    const held = state.heldLogprobs;
    for (const token of logprobs ?? []) held.push(token);
    if (text === "") return "";
    state.heldLogprobs = [];
    return this.#textChunk(state, text, this.#logprobs(state, held));
  }

  #textChunk(state: ChoiceState, text: string, logprobs: string): string {
    if (this.#form.lengthOnText) {
      const before = this.#heldText(state, null);
      state.heldText = { text, logprobs };
      return before;
    }
    const chunk = this.#chunk(state, JSON.stringify(text), logprobs, null);
    const { includeTokenIds, includeRunningUsage } = this.#context.requested;
    if (includeTokenIds || includeRunningUsage) return chunk;
    // From now on, text chunks differ only in their text. A line feed marks its place: JSON on one line contains none.
    const sample = this.#chunk(state, "\n", "null", null);
    const place = sample.indexOf("\n");
    state.textHead = sample.slice(0, place);
    state.textTail = sample.slice(place + 1);
    return chunk;
  }

  #heldText(state: ChoiceState, finish: string | null): string {
    if (state.heldText === null) return "";
    const { text, logprobs } = state.heldText;
    state.heldText = null;
    return this.#chunk(state, JSON.stringify(text), logprobs, finish);
  }

  #logprobs(state: ChoiceState, tokens: readonly TokenLogprob[]): string {
    if (!this.#context.requested.logprobs) return "null";
    const { value, nextOffset } = completionLogprobs(tokens, state.offset, this.#form.number);
    state.offset = nextOffset;
    return jsonText(value);
  }

  #finish(state: ChoiceState, { reason, stop }: FinishEvent): string {
    if (state.finish !== null) return "";
    const finish = completionFinishReason(reason);
    if (stop !== undefined && this.#context.requested.includeStopString)
      state.extras += memberText([["stop_str", stop]]);
    // Tokens without text must not be lost.
    const rest = state.heldLogprobs.length > 0 ? this.#logprobs(state, state.heldLogprobs) : "null";
    const isInTextChunk = finish === "length" && state.heldText !== null && rest === "null";
    const text = this.#heldText(state, isInTextChunk ? finish : null);
    state.finish = finish;
    return isInTextChunk ? text : text + this.#chunk(state, '""', rest, finish);
  }

  #extra(event: ExtraEvent): string {
    const members = memberText(allowedExtras(event, this.#context));
    if (members === "" || event.place === "delta") return "";
    if (event.place === "chunk" || event.choice === undefined) this.#extras += members;
    else {
      const state = this.#state(event.choice);
      state.extras += members;
      state.textHead = "";
    }
    return "";
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    if (end.kind === "client-gone") return "";
    let chunks = "";
    for (const state of this.#choices.values()) chunks += this.#heldText(state, null);
    return end.kind === "done" ? chunks + this.#closing() + doneText : chunks + errorEnd(end.failure);
  }

  #closing(): string {
    const envelope = (this.#envelope ??= new CompletionEnvelope(this.#context, this.#form, undefined));
    const { requested: asked } = this.#context;
    const counts = this.#usage?.usage ?? estimatedUsage(asked.estimatePrompt, this.#characters);
    const usage = counts && asked.includeUsage ? JSON.stringify(this.#form.usage(counts)) : "";
    let members = this.#extras;
    const timings = this.#usage?.timings;
    if (counts && timings && asked.includeTimings)
      members += `,"timings":${JSON.stringify(timingsObject(timings, counts))}`;
    return usage === "" && members === "" ? "" : envelope.closingChunk(usage, members);
  }

  #chunk(state: ChoiceState, text: string, logprobs: string, finish: string | null): string {
    const envelope = (this.#envelope ??= new CompletionEnvelope(this.#context, this.#form, undefined));
    const tokens = state.tokens.length > 0 ? `,"token_ids":[${state.tokens.join(",")}]` : "";
    const choice = envelope.choice(state.index, text, logprobs, finish, state.extras + tokens);
    const running = this.#context.requested.includeRunningUsage ? this.#usage : undefined;
    const usage = running ? `,"usage":${JSON.stringify(this.#form.usage(running.usage))}` : "";
    const extras = this.#extras + usage;
    state.extras = "";
    state.tokens = [];
    this.#extras = "";
    return envelope.chunk(choice, extras);
  }
}

/**
 * The members that every chunk of a stream repeats, prepared once. Their order is that of `completion` in schema.ts, but for `exact`'s
 * `model`.
 */
class CompletionEnvelope {
  readonly #modelAfter: boolean;
  readonly #start: string;
  readonly #model: string;
  readonly #usage: string;

  constructor(context: ChoicesContext, form: CompletionForm, source: SourceIdentity | undefined) {
    const { id, created, model, systemFingerprint } = answerIdentity(context, "cmpl-", source);
    const modelText = `"model":${JSON.stringify(model)}`;
    this.#modelAfter = form.modelAfterChoices;
    this.#model = modelText;
    const { includeUsage, includeRunningUsage } = context.requested;
    this.#usage = includeUsage && !includeRunningUsage ? ',"usage":null' : "";
    this.#start =
      `data: {"id":${JSON.stringify(id)},"object":"text_completion","created":${created},` +
      (form.modelAfterChoices ? "" : `${modelText},`) +
      (form.systemFingerprint ? `"system_fingerprint":${JSON.stringify(systemFingerprint)},` : "");
  }

  /** Writes one element of `choices`. `text` and `logprobs` are JSON; `extras` begins with a comma or is empty. */
  choice(index: number, text: string, logprobs: string, finish: string | null, extras: string): string {
    const reason = finish === null ? "null" : `"${finish}"`;
    return `{"text":${text},"index":${index},"logprobs":${logprobs},"finish_reason":${reason}${extras}}`;
  }

  /** Writes a chunk. `choices`: the elements of the array; `extras` begins with a comma or is empty. */
  chunk(choices: string, extras: string): string {
    const model = this.#modelAfter ? `,${this.#model}` : "";
    return `${this.#start}"choices":[${choices}]${model}${extras}${this.#usage}}\n\n`;
  }

  /** Writes the last chunk, which has no choices. `usage`: JSON, or "" for none. */
  closingChunk(usage: string, extras: string): string {
    const shown = usage === "" ? "" : `,"usage":${usage}`;
    if (!this.#modelAfter) return `${this.#start}"choices":[]${shown}${extras}}\n\n`;
    return `${this.#start}${this.#model}${shown},"choices":[]${extras}}\n\n`;
  }
}
