import type {
  Annotation,
  ChoiceEvent,
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  PartEndEvent,
  PromptProgressEvent,
  RefusalDeltaEvent,
  SourceIdentity,
  StartEvent,
  TextDeltaEvent,
  TokenLogprob,
  ToolCallDeltaEvent,
  ToolCallEndEvent,
  ToolCallStartEvent,
  UsageEvent,
} from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import type { StreamWriter } from "../port.ts";
import { allowedExtras, callExtras, memberText } from "../extras.ts";
import { jsonText, type JsonValue } from "../json-text.ts";
import { chatLogprobsText } from "../logprobs.ts";
import { doneText, errorEnd, keepAliveText } from "../sse-text.ts";
import { isMember, progressText, promptMembers } from "../prompt-report.ts";
import { chatUsage, estimatedUsage, timingsObject } from "../usage.ts";
import { chatAnnotation } from "./annotations.ts";
import { ChatEnvelope, type ChunkTemplate } from "./chat-envelope.ts";
import { HostedCallReports } from "./hosted-call-reports.ts";
import {
  type ChatChoiceForm,
  type ChatForm,
  chatForms,
  finishReason,
  type Opening,
  reasoningFields,
  shownDetails,
} from "./form.ts";
import { detailsFor, type ShownDetails } from "./shown-details.ts";

/** The state of one choice. */
interface ChoiceState {
  readonly index: number;
  readonly form: ChatChoiceForm;
  announced: StartEvent["announced"];
  /** The first delta is not sent yet. It may wait until it is known what the choice begins with. */
  roleOwed: boolean;
  finished: boolean;
  /** The kind of the last call; `undefined` before the first. */
  callKind: "function" | "custom" | undefined;
  /** Tokens whose text is not decided yet. They are sent with the next text. */
  heldLogprobs: TokenLogprob[];
  /** The open part of reasoning: its text, unless only its details are sent, and the id of the source's item. */
  reasoning: { text: string; readonly id: string | undefined };
  /** The number of entries in `reasoning_details` that were sent. */
  details: number;
  /** Ids of tokens, sent with the next chunk after the first one. */
  tokens: number[];
  /** The length of the text so far, and before its open part. */
  characters: number;
  partStart: number;
  /** Members for the next chunk, as `memberText`. */
  extras: string;
  /** Templates for the chunks of text, and of the arguments of the open call; `null` while a chunk needs more than that. */
  textTemplate: ChunkTemplate | null;
  callTemplate: ChunkTemplate | null;
}

/**
 * Writes a chat answer as SSE chunks. Each choice has its state; frequent chunks have prepared templates. A delta has one member and is
 * never empty, the finish reason is in the last chunk of its choice, and usage is in the last chunk of the stream. A delta after the
 * finish of its choice, and an event after the end, write nothing.
 */
export class ChatStreamWriter implements StreamWriter {
  readonly #context: ChoicesContext;
  readonly #form: ChatForm;
  readonly #reasoningFields: readonly string[];
  readonly #details: ShownDetails;
  readonly #choices = new Map<number, ChoiceState>();
  #envelope: ChatEnvelope | undefined;
  #usage: UsageEvent | undefined;
  /** The number of characters that the model has generated, to estimate its tokens. */
  #characters = 0;
  /** Members for the next chunk, as `memberText`. */
  #extras = "";
  /** Extra events after the usage, whose chunks follow the usage. */
  readonly #afterUsage: ExtraEvent[] = [];
  #ended = false;
  readonly #hosted: HostedCallReports | undefined;

  constructor(context: ChoicesContext) {
    this.#context = context;
    if (context.requested.includeHostedCalls === true) this.#hosted = new HostedCallReports();
    const form = (this.#form = chatForms[context.profile.name]);
    this.#reasoningFields = reasoningFields(form, context);
    this.#details = shownDetails(form, context);
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    return text;
  }

  open(): string {
    return this.#choices.size > 0 || this.#ended ? "" : this.#role(this.#newChoice(0, undefined), "text");
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
        this.#extras += memberText(Object.entries(promptMembers(event, this.#context.requested)).filter(isMember));
        return "";
      case "progress":
        return this.#progress(event);
      case "extra":
        return this.#extra(event);
      case "end":
        return this.#end(event.end);
    }
    const state = this.#choices.get(event.choice) ?? this.#newChoice(event.choice, undefined);
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
        if (this.#context.requested.includeTokenIds) for (const token of event.tokens) state.tokens.push(token);
        return "";
      case "finish":
        return this.#finish(state, event);
      case "part-start":
        state.partStart = state.characters;
        state.reasoning = event.kind === "reasoning" ? { text: "", id: event.id } : noReasoning();
        return "";
      case "part-end":
        return this.#partEnd(state, event);
      case "tool-call-end":
        return this.#callEnd(state, event);
      case "annotation":
        return this.#annotation(state, event.annotation);
      case "hosted-call-start":
        state.partStart = state.characters;
        return this.#hosted?.begin(event) ?? "";
      case "hosted-call-delta":
        return this.#hosted?.input(event) ?? "";
      case "hosted-call-end":
        return this.#hostedCall(state, this.#hosted?.running(event.id));
      case "hosted-result":
        return this.#hostedCall(state, this.#hosted?.ended(event));
      case "hosted-functions":
      case "hosted-approval":
      case "markup":
        return "";
    }
  }

  #hostedCall(state: ChoiceState, call: JsonValue | undefined): string {
    if (call === undefined) return "";
    const role = this.#role(state, "text");
    this.#extras += memberText([["hosted_call", call]]);
    return role + this.#chunk(state, "{}");
  }

  #newChoice(choice: number, source: SourceIdentity | undefined): ChoiceState {
    this.#envelope ??= new ChatEnvelope(this.#context, this.#form, source);
    const state: ChoiceState = {
      index: choice,
      form: this.#form.choice,
      announced: undefined,
      roleOwed: true,
      finished: false,
      callKind: undefined,
      heldLogprobs: [],
      reasoning: noReasoning(),
      details: 0,
      tokens: [],
      characters: 0,
      partStart: 0,
      extras: "",
      textTemplate: null,
      callTemplate: null,
    };
    this.#choices.set(choice, state);
    return state;
  }

  #start(event: StartEvent): string {
    if (this.#choices.has(event.choice)) return "";
    const state = this.#newChoice(event.choice, event.source);
    const { announced } = event;
    state.announced = announced;
    if (state.form.waitsAfter.includes(announced)) return "";
    return this.#role(state, announced === "tool-calls" ? "calls" : announced === "refusal" ? "refusal" : "text");
  }

  #progress(event: PromptProgressEvent): string {
    if (!this.#context.requested.includeProgress) return "";
    const state = this.#choices.get(event.choice) ?? this.#newChoice(event.choice, undefined);
    const role = this.#role(state, "text");
    this.#extras += progressText(event);
    return role + this.#chunk(state, "{}");
  }

  /**
   * Writes the first chunk of a choice, which alone has the role, unless it is sent. `header`: the member of a call, if it is in the first
   * delta.
   */
  #role(state: ChoiceState, opening: Opening, header: string | null = null): string {
    if (!state.roleOwed) return "";
    state.roleOwed = false;
    const { form, tokens } = state;
    state.tokens = [];
    const { content, refusal } = form.first[opening];
    let delta = '"role":"assistant"';
    if (content !== undefined) delta += `,"content":${JSON.stringify(content)}`;
    if (header !== null) delta += `,${header}`;
    if (refusal !== undefined) delta += `,"refusal":${JSON.stringify(refusal)}`;
    const hasLogprobs =
      form.emptyLogprobs && this.#context.requested.logprobs && (opening === "text" || opening === "refusal");
    const noTokens = opening === "refusal" ? '{"content":null,"refusal":[]}' : '{"content":[],"refusal":null}';
    const usageFirst = state.announced === "tool-calls";
    const chunk = this.#chunk(state, `{${delta}}`, hasLogprobs ? noTokens : "null", "null", usageFirst);
    state.tokens = tokens;
    return chunk;
  }

  #text(state: ChoiceState, { text, logprobs }: TextDeltaEvent): string {
    if (state.reasoning.text !== "") state.reasoning = noReasoning();
    state.characters += text.length;
    this.#characters += text.length;
    if (logprobs !== undefined || state.heldLogprobs.length > 0) return this.#textAndLogprobs(state, text, logprobs);
    if (text === "") return "";
    const template = this.#extras === "" ? state.textTemplate : null;
    if (template && this.#envelope) return this.#envelope.fill(template, text);
    const chunks = this.#role(state, "text") + this.#chunk(state, `{"content":${JSON.stringify(text)}}`);
    state.textTemplate = this.#template(state, '{"content":\n}', false);
    return chunks;
  }

  /**
   * Returns the template of chunks with this delta. A line feed in `delta` marks the place of the string: JSON on one line contains none.
   * `null` if chunks differ in more than that string: token ids and running usage change.
   */
  #template(state: ChoiceState, delta: string, usageFirst: boolean): ChunkTemplate | null {
    const { includeTokenIds, includeRunningUsage } = this.#context.requested;
    if (!this.#envelope || includeTokenIds || includeRunningUsage) return null;
    return this.#envelope.template(this.#chunk(state, delta, "null", "null", usageFirst));
  }

  #textAndLogprobs(state: ChoiceState, text: string, logprobs: readonly TokenLogprob[] = []): string {
    const held = state.heldLogprobs;
    for (const token of logprobs) held.push(token);
    if (text === "") return "";
    state.heldLogprobs = [];
    const shown = this.#logprobs(held, undefined);
    return this.#role(state, "text") + this.#chunk(state, `{"content":${JSON.stringify(text)}}`, shown);
  }

  #refusal(state: ChoiceState, { text, logprobs }: RefusalDeltaEvent): string {
    this.#characters += text.length;
    if (text === "") return "";
    const shown = this.#logprobs(undefined, logprobs);
    return this.#role(state, "refusal") + this.#chunk(state, `{"refusal":${JSON.stringify(text)}}`, shown);
  }

  #logprobs(text: readonly TokenLogprob[] | undefined, refusal: readonly TokenLogprob[] | undefined): string {
    return this.#context.requested.logprobs ? chatLogprobsText(text, refusal, this.#form.number) : "null";
  }

  /** Reasoning has no log probabilities in OpenAI's form. */
  #reasoning(state: ChoiceState, text: string): string {
    this.#characters += text.length;
    if (this.#details === "all") state.reasoning.text += text;
    if (text === "" || this.#reasoningFields.length === 0) return "";
    let chunks = this.#role(state, "text");
    for (const field of this.#reasoningFields) chunks += this.#chunk(state, `{"${field}":${JSON.stringify(text)}}`);
    return chunks;
  }

  /** Writes the state of the reasoning that ends. */
  #partEnd(choice: ChoiceState, { state }: PartEndEvent): string {
    const { reasoning, details } = choice;
    choice.reasoning = noReasoning();
    if (!state) return "";
    const entries = detailsFor({ ...reasoning, state }, details, this.#details, this.#context);
    if (entries.length === 0) return "";
    choice.details += entries.length;
    return this.#role(choice, "text") + this.#chunk(choice, `{"reasoning_details":${jsonText(entries as JsonValue)}}`);
  }

  #callStart(state: ChoiceState, event: ToolCallStartEvent): string {
    state.reasoning = noReasoning();
    const { index, id, name, kind = "function" } = event;
    const isFirst = state.callKind === undefined;
    state.callKind = kind;
    state.callTemplate = null;
    const nameText = JSON.stringify(name);
    if (this.#context.requested.legacyFunctions) {
      return isFirst ? this.#callHeader(state, `"function_call":{"name":${nameText},"arguments":""}`) : "";
    }
    const called = `{"name":${nameText},"${kind === "custom" ? "input" : "arguments"}":""}`;
    const header = `"index":${index},"id":${JSON.stringify(id)},"type":"${kind}","${kind}":${called}`;
    return this.#callHeader(state, `"tool_calls":[{${header}${memberText(callExtras(event, this.#context))}}]`);
  }

  /** Writes a call's header in the first delta if the form of the choice allows it, or in a delta of its own. */
  #callHeader(state: ChoiceState, header: string): string {
    const isFirst = state.roleOwed && state.form.callInFirstDelta && state.announced !== "tool-calls";
    if (isFirst) return this.#role(state, "call", header);
    const role = this.#role(state, state.announced === "tool-calls" ? "calls" : "call");
    return role + this.#callChunk(state, `{${header}}`);
  }

  #callDelta(state: ChoiceState, { index, arguments: text }: ToolCallDeltaEvent): string {
    if (text === "") return "";
    this.#characters += text.length;
    const template = this.#extras === "" ? state.callTemplate : null;
    if (template && this.#envelope) return this.#envelope.fill(template, text);
    // The legacy form has only one call, and the request was read so that the model makes no second one.
    if (this.#context.requested.legacyFunctions && index > 0) return "";
    const chunk = this.#callChunk(state, this.#argumentsDelta(state, index, JSON.stringify(text)));
    const isOneOfSeveral = state.announced === "tool-calls";
    state.callTemplate = this.#template(state, this.#argumentsDelta(state, index, "\n"), isOneOfSeveral);
    return chunk;
  }

  /** Writes the members of a call that the source has sent after its start. */
  #callEnd(state: ChoiceState, event: ToolCallEndEvent): string {
    const members = memberText(callExtras(event, this.#context));
    if (members === "" || this.#context.requested.legacyFunctions) return "";
    return this.#callChunk(state, `{"tool_calls":[{"index":${event.index}${members}}]}`);
  }

  /** `json`: the JSON of a part of the arguments. */
  #argumentsDelta(state: ChoiceState, index: number, json: string): string {
    if (this.#context.requested.legacyFunctions) return `{"function_call":{"arguments":${json}}}`;
    const member = state.callKind === "custom" ? `"custom":{"input":${json}}` : `"function":{"arguments":${json}}`;
    return `{"tool_calls":[{"index":${index},${member}}]}`;
  }

  #callChunk(state: ChoiceState, delta: string): string {
    return this.#chunk(state, delta, "null", "null", state.announced === "tool-calls");
  }

  #finish(state: ChoiceState, { reason, stop }: FinishEvent): string {
    let chunks = this.#role(state, "text");
    if (state.heldLogprobs.length > 0) {
      // Tokens without text must not be lost. Only this delta has an empty content.
      chunks += this.#chunk(state, '{"content":""}', this.#logprobs(state.heldLogprobs, undefined));
    }
    state.finished = true;
    if (stop !== undefined && this.#context.requested.includeStopString)
      state.extras += memberText([["stop_str", stop]]);
    const shown = finishReason(reason, this.#context.requested, state.form);
    return chunks + this.#chunk(state, "{}", "null", `"${shown}"`);
  }

  #annotation(state: ChoiceState, annotation: Annotation): string {
    const written = chatAnnotation(annotation, state.partStart);
    if (written.length === 0) return "";
    return this.#role(state, "text") + this.#chunk(state, `{"annotations":${JSON.stringify(written)}}`);
  }

  #extra(event: ExtraEvent): string {
    if (this.#form.extrasAfterUsage && this.#usage && this.#allFinished()) {
      this.#afterUsage.push(event);
      return "";
    }
    const members = memberText(allowedExtras(event, this.#context));
    if (members === "") return "";
    if (event.place === "chunk" || event.choice === undefined) {
      this.#extras += members;
      return "";
    }
    const state = this.#choices.get(event.choice) ?? this.#newChoice(event.choice, undefined);
    // The end of audio follows the finish of its choice.
    if (state.finished) return event.place === "delta" ? this.#late(event.choice, members) : "";
    if (event.place === "delta") return this.#role(state, "text") + this.#chunk(state, `{${members.slice(1)}}`);
    state.extras += members;
    state.textTemplate = null;
    state.callTemplate = null;
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
    let roles = this.#choices.size === 0 ? this.#role(this.#newChoice(0, undefined), "text") : "";
    for (const state of this.#choices.values()) roles += this.#role(state, "text");
    return roles + errorEnd(end.failure);
  }

  /** Writes the chunks after the finish chunks: requested usage and timings, and extra members that are in no chunk yet. */
  #closing(): string {
    const envelope = (this.#envelope ??= new ChatEnvelope(this.#context, this.#form, undefined));
    const { requested: asked } = this.#context;
    let members = this.#extras;
    const { usage, timings }: Partial<UsageEvent> = this.#usage ?? {};
    const shown = asked.includeUsage ? (usage ?? estimatedUsage(asked.estimatePrompt, this.#characters)) : undefined;
    if (shown) members += `,"usage":${JSON.stringify(chatUsage(shown, this.#form.usageZeros))}`;
    if (asked.includeTimings && usage && timings)
      members += `,"timings":${JSON.stringify(timingsObject(timings, usage))}`;
    let chunks = members === "" ? "" : envelope.closingChunk(members);
    for (const event of this.#afterUsage) {
      const late = memberText(allowedExtras(event, this.#context));
      if (late === "") continue;
      chunks +=
        event.place === "delta" && event.choice !== undefined
          ? this.#late(event.choice, late)
          : envelope.chunk("", late);
    }
    return chunks;
  }

  /** A delta after the finish of its choice. */
  #late(choice: number, members: string): string {
    const envelope = (this.#envelope ??= new ChatEnvelope(this.#context, this.#form, undefined));
    return envelope.chunk(`{"index":${choice},"delta":{${members.slice(1)}}}`, "");
  }

  #runningUsage(): string {
    if (!this.#usage || !this.#context.requested.includeRunningUsage) return "";
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

function noReasoning(): ChoiceState["reasoning"] {
  return { text: "", id: undefined };
}
