import type {
  ChoiceEvent,
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  PromptProgressEvent,
  RefusalDeltaEvent,
  SourceIdentity,
  StartEvent,
  TextDeltaEvent,
  TokenLogprob,
  ToolCallDeltaEvent,
  ToolCallStartEvent,
  UsageEvent,
} from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import type { StreamWriter } from "../port.ts";
import { memberText, passedMembers } from "../extras.ts";
import { jsonString } from "../json-string.ts";
import { chatLogprobsText } from "../logprobs.ts";
import { doneText, errorEnd, keepAliveText } from "../sse-text.ts";
import { isMember, progressText, promptMembers } from "../prompt-report.ts";
import { chatUsage, timingsObject } from "../usage.ts";
import { chatForms, finishReason, reasoningFields, showsLogprobsKey } from "./form.ts";
import type { ChatChoiceForm, ChatForm, Opening, FirstMembers } from "./form.ts";
import { answerIdentity, shownTier } from "../identity.ts";
import { obfuscate } from "../obfuscation.ts";

/** What the stream remembers of a choice. */
interface ChoiceState {
  readonly index: number;
  readonly form: ChatChoiceForm;
  announced: StartEvent["announced"];
  /** The first delta is still to come. It may wait for what the choice begins with, in order to show it. */
  roleOwed: boolean;
  finished: boolean;
  /** Of the last call that began; undefined before the first. */
  callKind: "function" | "custom" | undefined;
  /** Tokens whose text is not decided yet; they go out with the next text. */
  heldLogprobs: readonly TokenLogprob[];
  /** Ids of tokens that go out with the next chunk behind the first. */
  tokens: number[];
  /** Members for the next chunk, as `memberText`. */
  extras: string;
  /** How the chunks of this choice's text, and of the call that is open, are written; null while they need more than that. */
  textFrame: Frame | null;
  callFrame: Frame | null;
}

/** A chunk but for one string: `before`, the string's JSON, `after`. */
interface Frame {
  readonly before: string;
  readonly after: string;
}

/**
 * Writes a chat answer as SSE chunks: a small state machine per choice over prepared text. Every delta has one field, none is empty,
 * the finish reason stands alone at the end of its choice, and usage is the last chunk. Deltas after a choice's finish, and events
 * after the end, write nothing. `form`: the profile's.
 */
export class ChatStreamWriter implements StreamWriter {
  readonly #context: ChoicesContext;
  readonly #form: ChatForm;
  readonly #reasoningFields: readonly string[];
  readonly #choices = new Map<number, ChoiceState>();
  #envelope: ChatEnvelope | undefined;
  #usage: UsageEvent | undefined;
  /** Members for the next chunk, as `memberText`. */
  #extras = "";
  /** What came after the usage and stands behind it. */
  readonly #afterUsage: ExtraEvent[] = [];
  #ended = false;

  constructor(context: ChoicesContext, form: ChatForm = chatForms[context.profile.name]) {
    this.#context = context;
    this.#form = form;
    this.#reasoningFields = reasoningFields(form, context);
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    return text;
  }

  open(): string {
    return this.#choices.size > 0 || this.#ended ? "" : this.#role(this.#opened(0, undefined), "text");
  }

  keepAlive(): string {
    return keepAliveText;
  }

  #event(event: GenerationEvent): string {
    if (this.#ended) return "";
    switch (event.type) {
      case "start":
        return this.#start(event);
      case "usage":
        this.#usage = { ...this.#usage, ...event };
        return "";
      case "prompt":
        this.#extras += memberText(Object.entries(promptMembers(event, this.#context.asked)).filter(isMember));
        return "";
      case "progress":
        return this.#progress(event);
      case "extra":
        return this.#extra(event);
      case "end":
        return this.#end(event.end);
    }
    const state = this.#choices.get(event.choice) ?? this.#opened(event.choice, undefined);
    return state.finished ? "" : this.#choiceEvent(state, event);
  }

  #choiceEvent(state: ChoiceState, event: Exclude<ChoiceEvent, { type: "start" }>): string {
    switch (event.type) {
      case "text-delta":
        return this.#text(state, event);
      case "reasoning-delta":
        return this.#reasoning(state, event.text);
      case "refusal-delta":
        return this.#refusal(state, event);
      case "tool-call-start":
        return this.#callStart(state, event);
      case "tool-call-delta":
        return this.#callDelta(state, event);
      case "tokens":
        if (this.#context.asked.includeTokenIds) state.tokens.push(...event.tokens);
        return "";
      case "part-start":
      case "part-end":
      case "annotation":
      case "tool-call-end":
      case "markup":
        return "";
      case "finish":
        return this.#finish(state, event);
    }
  }

  #progress(event: PromptProgressEvent): string {
    if (!this.#context.asked.includeProgress) return "";
    const state = this.#choices.get(event.choice) ?? this.#opened(event.choice, undefined);
    const role = this.#role(state, "text");
    this.#extras += progressText(event);
    return role + this.#chunk(state, "{}");
  }

  #start(event: StartEvent): string {
    if (this.#choices.has(event.choice)) return "";
    const state = this.#opened(event.choice, event.source);
    state.announced = event.announced;
    const { announced } = event;
    if (state.form.waitsAfter.includes(announced)) return "";
    return this.#role(state, announced === "tool-calls" ? "calls" : announced === "refusal" ? "refusal" : "text");
  }

  #opened(choice: number, source: SourceIdentity | undefined): ChoiceState {
    this.#envelope ??= new ChatEnvelope(this.#context, this.#form, source);
    const state: ChoiceState = {
      index: choice,
      form: this.#form.choice(choice),
      announced: undefined,
      roleOwed: true,
      finished: false,
      callKind: undefined,
      heldLogprobs: [],
      tokens: [],
      extras: "",
      textFrame: null,
      callFrame: null,
    };
    this.#choices.set(choice, state);
    return state;
  }

  /** The choice's first chunk, if it is still owed. `header`: a call's header that goes into it. */
  #role(state: ChoiceState, opening: Opening, header: string | null = null): string {
    if (!state.roleOwed) return "";
    state.roleOwed = false;
    const { form, tokens } = state;
    state.tokens = [];
    const delta = firstDelta(form.first[opening], header);
    const empty = opening === "refusal" ? '{"content":null,"refusal":[]}' : '{"content":[],"refusal":null}';
    const hasLogprobs =
      form.emptyLogprobs && this.#context.asked.logprobs && (opening === "text" || opening === "refusal");
    const chunk = this.#chunk(state, delta, hasLogprobs ? empty : "null", "null", state.announced === "tool-calls");
    state.tokens = tokens;
    return chunk;
  }

  #text(state: ChoiceState, { text, logprobs }: TextDeltaEvent): string {
    if (logprobs !== undefined || state.heldLogprobs.length > 0) return this.#textAndLogprobs(state, text, logprobs);
    if (text === "") return "";
    const frame = this.#extras === "" ? state.textFrame : null;
    if (frame) return frame.before + jsonString(text) + frame.after;
    const chunks = this.#role(state, "text") + this.#chunk(state, `{"content":${JSON.stringify(text)}}`);
    state.textFrame = this.#frame(state, '{"content":\n}', false);
    return chunks;
  }

  /**
   * What chunks of this form have in common, but for the string where `delta` has a line feed, which no chunk's JSON contains. None
   * where each chunk has to be measured for its obfuscation.
   */
  #frame(state: ChoiceState, delta: string, usageFirst: boolean): Frame | null {
    const { includeTokenIds, includeRunningUsage } = this.#context.asked;
    if (this.#envelope?.obfuscated !== false || includeTokenIds || includeRunningUsage) return null;
    const sample = this.#chunk(state, delta, "null", "null", usageFirst);
    const place = sample.indexOf("\n");
    return { before: sample.slice(0, place), after: sample.slice(place + 1) };
  }

  #textAndLogprobs(state: ChoiceState, text: string, logprobs: readonly TokenLogprob[] = []): string {
    const tokens = state.heldLogprobs.length > 0 ? [...state.heldLogprobs, ...logprobs] : logprobs;
    state.heldLogprobs = text === "" ? tokens : [];
    if (text === "") return "";
    const shown = this.#logprobs(tokens, undefined);
    return this.#role(state, "text") + this.#chunk(state, `{"content":${JSON.stringify(text)}}`, shown);
  }

  #refusal(state: ChoiceState, { text, logprobs }: RefusalDeltaEvent): string {
    if (text === "") return "";
    const shown = this.#logprobs(undefined, logprobs);
    return this.#role(state, "refusal") + this.#chunk(state, `{"refusal":${JSON.stringify(text)}}`, shown);
  }

  #logprobs(text: readonly TokenLogprob[] | undefined, refusal: readonly TokenLogprob[] | undefined): string {
    return this.#context.asked.logprobs ? chatLogprobsText(text, refusal, this.#form.number) : "null";
  }

  /** Reasoning has no logprobs in OpenAI's form, streamed or not. */
  #reasoning(state: ChoiceState, text: string): string {
    if (text === "" || this.#reasoningFields.length === 0) return "";
    let chunks = this.#role(state, "text");
    for (const field of this.#reasoningFields) chunks += this.#chunk(state, `{"${field}":${JSON.stringify(text)}}`);
    return chunks;
  }

  #callStart(state: ChoiceState, { index, id, name, kind = "function" }: ToolCallStartEvent): string {
    const isFirst = state.callKind === undefined;
    state.callKind = kind;
    state.callFrame = null;
    const nameText = JSON.stringify(name);
    if (this.#context.asked.legacyFunctions) {
      return isFirst ? this.#callHeader(state, `"function_call":{"name":${nameText},"arguments":""}`) : "";
    }
    const begun = kind === "custom" ? `{"name":${nameText},"input":""}` : `{"name":${nameText},"arguments":""}`;
    const head = `"index":${index},"id":${JSON.stringify(id)},"type":"${kind}","${kind}":${begun}`;
    return this.#callHeader(state, `"tool_calls":[{${head}}]`);
  }

  /** In the first delta where that is still owed and has room for it, else in a delta of its own. */
  #callHeader(state: ChoiceState, header: string): string {
    const isFirst = state.roleOwed && state.form.callInFirstDelta && state.announced !== "tool-calls";
    if (isFirst) return this.#role(state, "call", header);
    const role = this.#role(state, state.announced === "tool-calls" ? "calls" : "call");
    return role + this.#callChunk(state, `{${header}}`);
  }

  #callDelta(state: ChoiceState, { index, arguments: text }: ToolCallDeltaEvent): string {
    if (text === "") return "";
    const frame = this.#extras === "" ? state.callFrame : null;
    if (frame) return frame.before + jsonString(text) + frame.after;
    // The legacy form has room for one call; the request was read so that there is no second.
    if (this.#context.asked.legacyFunctions && index > 0) return "";
    const chunk = this.#callChunk(state, this.#callDeltaOf(state, index, JSON.stringify(text)));
    state.callFrame = this.#frame(state, this.#callDeltaOf(state, index, "\n"), state.announced === "tool-calls");
    return chunk;
  }

  #callDeltaOf(state: ChoiceState, index: number, piece: string): string {
    if (this.#context.asked.legacyFunctions) return `{"function_call":{"arguments":${piece}}}`;
    const member = state.callKind === "custom" ? `"custom":{"input":${piece}}` : `"function":{"arguments":${piece}}`;
    return `{"tool_calls":[{"index":${index},${member}}]}`;
  }

  #callChunk(state: ChoiceState, delta: string): string {
    return this.#chunk(state, delta, "null", "null", state.announced === "tool-calls");
  }

  #finish(state: ChoiceState, { reason, stop }: FinishEvent): string {
    let chunks = this.#role(state, "text");
    if (state.heldLogprobs.length > 0) {
      // Tokens that never became text are not lost: the one case of an empty content delta.
      chunks += this.#chunk(state, '{"content":""}', this.#logprobs(state.heldLogprobs, undefined));
    }
    state.finished = true;
    if (stop !== undefined && this.#context.asked.includeStopString) state.extras += memberText([["stop_str", stop]]);
    const shown = finishReason(reason, this.#context.asked, state.form);
    return chunks + this.#chunk(state, "{}", "null", `"${shown}"`);
  }

  #extra(event: ExtraEvent): string {
    if (this.#form.extrasAfterUsage && this.#usage && this.#allFinished()) {
      this.#afterUsage.push(event);
      return "";
    }
    const members = memberText(passedMembers(event, this.#context));
    if (members === "") return "";
    if (event.place === "chunk" || event.choice === undefined) {
      this.#extras += members;
      return "";
    }
    const state = this.#choices.get(event.choice) ?? this.#opened(event.choice, undefined);
    if (state.finished) return "";
    if (event.place === "delta") return this.#role(state, "text") + this.#chunk(state, `{${members.slice(1)}}`);
    state.extras += members;
    state.textFrame = null;
    state.callFrame = null;
    return "";
  }

  #allFinished(): boolean {
    for (const state of this.#choices.values()) if (!state.finished) return false;
    return true;
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    if (end.kind === "client-gone") return "";
    if (end.kind === "done") return this.#closing() + doneText;
    let roles = this.#choices.size === 0 ? this.#role(this.#opened(0, undefined), "text") : "";
    for (const state of this.#choices.values()) roles += this.#role(state, "text");
    return roles + errorEnd(end.failure);
  }

  /** What follows the finish chunks: usage and timings where asked for, and extras that found no chunk to stand in. */
  #closing(): string {
    const envelope = (this.#envelope ??= new ChatEnvelope(this.#context, this.#form, undefined));
    const { asked } = this.#context;
    let members = this.#extras;
    if (this.#usage) {
      const { usage, timings } = this.#usage;
      if (asked.includeUsage) members += `,"usage":${JSON.stringify(chatUsage(usage, this.#form.usageZeros))}`;
      if (asked.includeTimings && timings) members += `,"timings":${JSON.stringify(timingsObject(timings, usage))}`;
    }
    let chunks = members === "" ? "" : envelope.closingChunk(members);
    for (const event of this.#afterUsage) {
      const late = memberText(passedMembers(event, this.#context));
      if (late === "") continue;
      chunks +=
        event.place === "delta" && event.choice !== undefined
          ? envelope.chunk(`{"index":${event.choice},"delta":{${late.slice(1)}}}`, "")
          : envelope.chunk("", late);
    }
    return chunks;
  }

  #runningUsage(): string {
    if (!this.#usage || !this.#context.asked.includeRunningUsage) return "";
    return `,"usage":${JSON.stringify(chatUsage(this.#usage.usage, this.#form.usageZeros))}`;
  }

  #chunk(state: ChoiceState, delta: string, logprobs = "null", finish = "null", usageFirst = false): string {
    const envelope = (this.#envelope ??= new ChatEnvelope(this.#context, this.#form, undefined));
    const tokens = state.tokens.length > 0 ? `,"token_ids":[${state.tokens.join(",")}]` : "";
    const choice = envelope.choice(state.index, delta, logprobs, finish, state.extras + tokens);
    const extras = this.#extras + this.#runningUsage();
    state.extras = "";
    state.tokens = [];
    this.#extras = "";
    return usageFirst && this.#form.usageBeforeCalls && extras === ""
      ? envelope.usageFirstChunk(choice)
      : envelope.chunk(choice, extras);
  }
}

/** What every chunk of one chat stream has around its choices, prepared once. The order of members is OpenAI's since 2025-08. */
class ChatEnvelope {
  /** Each chunk ends with random characters that depend on its length. */
  readonly obfuscated: boolean;
  readonly #random: () => number;
  /** `{"id":…` up to where `choices` stands. */
  readonly #start: string;
  /** `"usage":null`, where the client asked for usage. */
  readonly #usage: string | null;
  readonly #showsLogprobs: boolean;

  constructor(context: ChoicesContext, form: ChatForm, source: SourceIdentity | undefined) {
    const { asked, random } = context;
    const { id, created, model, systemFingerprint } = answerIdentity(context, "chatcmpl-", source);
    const serviceTier = shownTier(form.serviceTier, context.settings, source);
    this.#random = random;
    this.obfuscated = asked.includeObfuscation ?? form.obfuscates;
    this.#usage = asked.includeUsage && form.nullUsage && !asked.includeRunningUsage ? '"usage":null' : null;
    this.#showsLogprobs = showsLogprobsKey(form, context);
    this.#start =
      `{"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},` +
      (serviceTier === undefined ? "" : `"service_tier":${JSON.stringify(serviceTier)},`) +
      (form.systemFingerprint ? `"system_fingerprint":${JSON.stringify(systemFingerprint)},` : "");
  }

  /** One element of `choices`. `delta`, `logprobs` and `finish` are JSON; `extras` begins with a comma or is empty. */
  choice(index: number, delta: string, logprobs: string, finish: string, extras: string): string {
    const shown = this.#showsLogprobs ? `,"logprobs":${logprobs}` : "";
    return `{"index":${index},"delta":${delta}${shown},"finish_reason":${finish}${extras}}`;
  }

  /** A chunk: `choices` is the array's inside, `extras` are members behind it. */
  chunk(choices: string, extras: string): string {
    const usage = this.#usage === null ? "" : `,${this.#usage}`;
    return this.#event(`${this.#start}"choices":[${choices}]${extras}${usage}`);
  }

  /** The same with `usage` before `choices`, as OpenAI writes the calls of a stream with several. */
  usageFirstChunk(choices: string): string {
    const usage = this.#usage === null ? "" : `${this.#usage},`;
    return this.#event(`${this.#start}${usage}"choices":[${choices}]`);
  }

  /** The chunk without choices at the end. `members` begins with a comma. */
  closingChunk(members: string): string {
    return this.#event(`${this.#start}"choices":[]${members}`);
  }

  /** `json`: an object without its closing brace. */
  #event(json: string): string {
    return `data: ${this.obfuscated ? obfuscate(json, this.#random) : `${json}}`}\n\n`;
  }
}

/**
 * The first delta of a choice, which alone has the role. `header`: the header of the first tool call, as the member
 * `"tool_calls":[…]`, where it stands in the same delta.
 */
function firstDelta({ content, refusal }: FirstMembers, header: string | null): string {
  let members = '"role":"assistant"';
  if (content !== undefined) members += `,"content":${content === null ? "null" : '""'}`;
  if (header !== null) members += `,${header}`;
  if (refusal !== undefined) members += `,"refusal":${refusal === null ? "null" : '""'}`;
  return `{${members}}`;
}
