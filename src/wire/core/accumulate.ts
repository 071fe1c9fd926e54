import type {
  Annotation,
  DialectJson,
  EndEvent,
  ExtraEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  HostedApprovalEvent,
  HostedFunctionsEvent,
  HostedResultEvent,
  PromptEvent,
  SourceIdentity,
  Timings,
  TokenLogprob,
  Usage,
} from "./events.ts";
import type { HostedCallIdentity } from "./hosted-tool.ts";
import type { CallState, ReasoningState } from "./turn-state.ts";

/** A whole generation, accumulated from its events. Answers without a stream are written from it. */
export interface Generation {
  readonly source?: SourceIdentity;
  /** By choice number, ascending. */
  readonly choices: readonly GeneratedChoice[];
  readonly usage?: Usage;
  readonly timings?: Timings;
  readonly extras: readonly ExtraEvent[];
  /** The prompts' tokens, if requested. */
  readonly prompts?: readonly PromptEvent[];
  readonly end: GenerationEnd;
}

export interface GeneratedChoice {
  readonly choice: number;
  /** Text, reasoning, refusals and calls in order. The members below are the same by kind. */
  readonly parts: readonly GeneratedPart[];
  /** null if the choice has no text delta. */
  readonly text: string | null;
  readonly reasoning: string | null;
  readonly refusal: string | null;
  readonly toolCalls: readonly GeneratedCall[];
  readonly textLogprobs: readonly TokenLogprob[] | null;
  readonly refusalLogprobs: readonly TokenLogprob[] | null;
  /** The ids of its tokens, if requested. */
  readonly tokens?: readonly number[];
  /** null if the generation ended before the choice. */
  readonly finish: GeneratedFinish | null;
}

export interface GeneratedFinish {
  readonly reason: FinishReason;
  readonly stop?: string;
  readonly limit?: "max-tokens" | "context" | "loop";
  readonly paused?: true;
}

export type GeneratedPart =
  | GeneratedText
  | GeneratedRefusal
  | GeneratedReasoning
  | GeneratedCallPart
  | GeneratedHostedCall
  | HostedResultEvent
  | HostedFunctionsEvent
  | HostedApprovalEvent
  | GeneratedItem;

/** A call of a hosted tool. Its result is a part of its own. */
export interface GeneratedHostedCall extends HostedCallIdentity {
  readonly type: "hosted-call";
  readonly arguments: string;
  readonly approvalId?: string;
  /** The result; absent: the answer ended before it. */
  readonly result?: HostedResultEvent;
  readonly native?: DialectJson;
}

export interface GeneratedText {
  readonly type: "text";
  readonly text: string;
  readonly id?: string;
  readonly phase?: string;
  readonly annotations: readonly Annotation[];
  readonly logprobs: readonly TokenLogprob[] | null;
}

export interface GeneratedRefusal {
  readonly type: "refusal";
  readonly refusal: string;
  readonly id?: string;
}

export interface GeneratedReasoning {
  readonly type: "reasoning";
  /** "" if only a summary or the encrypted form is known. */
  readonly text: string;
  readonly summary: readonly string[];
  readonly id?: string;
  readonly state?: ReasoningState;
}

export interface GeneratedCallPart extends GeneratedCall {
  readonly type: "tool-call";
}

/** An item that exists in one API only. */
export interface GeneratedItem {
  readonly type: "item";
  readonly dialect: string | undefined;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface GeneratedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly kind: "function" | "custom";
  readonly namespace?: string;
  readonly itemId?: string;
  /** Members that calls have in one API only. */
  readonly native?: DialectJson;
  readonly state?: CallState;
  /** null: the call is incomplete. */
  readonly status: "succeeded" | "failed" | null;
}

/** Accumulates events. `result` may be called at any time. Takes linear time: chunks are joined once. */
export class Accumulator {
  #source: SourceIdentity | undefined;
  #choices = new Map<number, GrowingChoice>();
  /** The places of lists of functions that come later, by their ids. */
  readonly #pendingLists = new Map<string, number>();
  #usage: Usage | undefined;
  #timings: Timings | undefined;
  #extras: ExtraEvent[] = [];
  #prompts: PromptEvent[] = [];
  #end: GenerationEnd | undefined;

  add(events: Iterable<GenerationEvent>): void {
    for (const event of events) this.#addOne(event);
  }

  #addOne(event: GenerationEvent): void {
    switch (event.type) {
      case "start":
        this.#source ??= event.source;
        this.#choice(event.choice);
        break;
      case "part-start": {
        newPart(this.#choice(event.choice), event.kind, event.id, event.phase);
        break;
      }
      case "part-end": {
        const choice = this.#choice(event.choice);
        const { open } = choice;
        if (open?.type === "reasoning" && event.state) open.state = event.state;
        choice.open = null;
        break;
      }
      case "text-delta": {
        const part = openPart(this.#choice(event.choice), "text");
        part.chunks.push(event.text);
        if (event.logprobs) for (const token of event.logprobs) (part.logprobs ??= []).push(token);
        break;
      }
      case "reasoning-delta": {
        const part = openPart(this.#choice(event.choice), "reasoning");
        if (event.summary === undefined) part.chunks.push(event.text);
        else summaryPart(part, event.summary).push(event.text);
        break;
      }
      case "refusal-delta": {
        const part = openPart(this.#choice(event.choice), "refusal");
        part.chunks.push(event.text);
        if (event.logprobs) for (const token of event.logprobs) (part.logprobs ??= []).push(token);
        break;
      }
      case "annotation":
        openPart(this.#choice(event.choice), "text").annotations.push(event.annotation);
        break;
      case "tool-call-start": {
        const { id, name, kind = "function", namespace, itemId, native, state } = event;
        const choice = this.#choice(event.choice);
        const growing = { namespace, itemId, native, state, arguments: [], status: null };
        const call: GrowingCall = { type: "tool-call", id, name, kind, ...growing };
        choice.open = null;
        choice.calls[event.index] = call;
        choice.parts.push(call);
        break;
      }
      case "tool-call-delta":
        this.#choice(event.choice).calls[event.index]?.arguments.push(event.arguments);
        break;
      case "tool-call-end": {
        const call = this.#choice(event.choice).calls[event.index];
        if (!call) break;
        call.status = event.status;
        if (event.native) call.native = withValue(call.native, event.native);
        if (event.state) call.state = withValue(call.state, event.state);
        break;
      }
      case "hosted-call-start": {
        const { type: _, choice: number, ...call } = event;
        const choice = this.#choice(number);
        const growing: GrowingHostedCall = { ...call, type: "hosted-call", arguments: [] };
        choice.open = null;
        choice.hosted.set(event.id, growing);
        choice.parts.push(growing);
        break;
      }
      case "hosted-call-delta":
        this.#choice(event.choice).hosted.get(event.id)?.arguments.push(event.arguments);
        break;
      case "hosted-result": {
        const call = this.#choice(event.choice).hosted.get(event.id);
        if (call) call.result = event;
        this.#whole(event);
        break;
      }
      case "hosted-functions": {
        const { parts } = this.#choice(event.choice);
        const place = this.#pendingLists.get(event.id);
        if (place !== undefined) {
          parts[place] = event;
          this.#pendingLists.delete(event.id);
          break;
        }
        this.#whole(event);
        if (event.isPending) this.#pendingLists.set(event.id, parts.length - 1);
        break;
      }
      case "hosted-approval":
        this.#whole(event);
        break;
      case "finish": {
        const { reason, stop, limit, paused } = event;
        this.#choice(event.choice).finish = {
          reason,
          ...(stop !== undefined && { stop }),
          ...(limit !== undefined && { limit }),
          ...(paused && { paused }),
        };
        break;
      }
      case "tokens": {
        const choice = this.#choice(event.choice);
        choice.tokens ??= [];
        for (const token of event.tokens) choice.tokens.push(token);
        break;
      }
      case "prompt":
        this.#prompts.push(event);
        break;
      case "usage":
        this.#usage = event.usage;
        this.#timings = event.timings ?? this.#timings;
        break;
      case "extra":
        if (event.place === "item" && event.choice !== undefined) {
          const choice = this.#choice(event.choice);
          choice.open = null;
          choice.parts.push({ type: "item", dialect: event.dialect, value: event.value });
        } else this.#extras.push(event);
        break;
      case "end":
        this.#end = event.end;
    }
  }

  /** Adds a part that comes as one event. */
  #whole(part: HostedResultEvent | HostedFunctionsEvent | HostedApprovalEvent): void {
    const choice = this.#choice(part.choice);
    choice.open = null;
    choice.parts.push(part);
  }

  #choice(number: number): GrowingChoice {
    let choice = this.#choices.get(number);
    if (!choice)
      this.#choices.set(number, (choice = { parts: [], open: null, calls: [], hosted: new Map(), finish: null }));
    return choice;
  }

  /** The generation; without an `end` event it is truncated. */
  result(): Generation {
    const numbers = [...this.#choices.keys()].sort((a, b) => a - b);
    const generation: { -readonly [Member in keyof Generation]: Generation[Member] } = {
      choices: numbers.map((number) => wholeChoice(number, this.#choice(number))),
      extras: this.#extras,
      end: this.#end ?? noEnd.end,
    };
    if (this.#source) generation.source = this.#source;
    if (this.#usage) generation.usage = this.#usage;
    if (this.#timings) generation.timings = this.#timings;
    if (this.#prompts.length > 0) generation.prompts = this.#prompts;
    return generation;
  }
}

/**
 * Accumulates the events of a generation. Without an `end` event it is truncated.
 *
 * @example
 * import { accumulate } from "truewire";
 *
 * const { choices } = accumulate([
 *   { type: "start", choice: 0 },
 *   { type: "text-delta", choice: 0, text: "Hel" },
 *   { type: "text-delta", choice: 0, text: "lo" },
 *   { type: "finish", choice: 0, reason: "stop" },
 *   { type: "end", end: { kind: "done" } },
 * ]);
 * console.log(choices[0].text, choices[0].finish.reason);
 * // → Hello stop
 */
export function accumulate(events: Iterable<GenerationEvent>): Generation {
  const accumulator = new Accumulator();
  accumulator.add(events);
  return accumulator.result();
}

interface GrowingChoice {
  readonly parts: (
    | GrowingPart
    | GrowingCall
    | GrowingHostedCall
    | HostedResultEvent
    | HostedFunctionsEvent
    | HostedApprovalEvent
    | GeneratedItem
  )[];
  /** Deltas of its kind are appended to this part. */
  open: GrowingPart | null;
  readonly calls: GrowingCall[];
  /** By id. */
  readonly hosted: Map<string, GrowingHostedCall>;
  tokens?: number[];
  finish: GeneratedFinish | null;
}

/** A part of text, reasoning or refusal while it grows. */
interface GrowingPart {
  readonly type: "text" | "reasoning" | "refusal";
  readonly id: string | undefined;
  readonly phase: string | undefined;
  readonly chunks: string[];
  /** By the source's numbers, in the order in which they appear. */
  readonly summary: Map<number, string[]>;
  readonly annotations: Annotation[];
  logprobs: TokenLogprob[] | null;
  state?: ReasoningState;
}

type GrowingHostedCall = Omit<GeneratedHostedCall, "arguments" | "result"> & {
  readonly arguments: string[];
  result?: HostedResultEvent;
};

interface GrowingCall {
  readonly type: "tool-call";
  readonly id: string;
  readonly name: string;
  readonly kind: "function" | "custom";
  readonly namespace: string | undefined;
  readonly itemId: string | undefined;
  native: DialectJson | undefined;
  state: CallState | undefined;
  readonly arguments: string[];
  status: GeneratedCall["status"];
}

/** The open part, if it is of this type; else a new one. Called for every delta. */
function openPart(choice: GrowingChoice, type: GrowingPart["type"]): GrowingPart {
  return choice.open?.type === type ? choice.open : newPart(choice, type, undefined, undefined);
}

function newPart(
  choice: GrowingChoice,
  type: GrowingPart["type"],
  id: string | undefined,
  phase: string | undefined,
): GrowingPart {
  const part: GrowingPart = { type, id, phase, chunks: [], summary: new Map(), annotations: [], logprobs: null };
  choice.parts.push(part);
  choice.open = part;
  return part;
}

/** Adds members that have come later. */
function withValue<T extends { readonly value: Readonly<Record<string, unknown>> }>(known: T | undefined, later: T): T {
  return { ...later, value: { ...known?.value, ...later.value } };
}

function summaryPart({ summary }: GrowingPart, number: number): string[] {
  let chunks = summary.get(number);
  if (!chunks) summary.set(number, (chunks = []));
  return chunks;
}

const noEnd: EndEvent = {
  type: "end",
  end: {
    kind: "truncated",
    failure: { kind: "bad-answer", message: "The generation ended without an end event.", status: 502 },
  },
};

function wholeChoice(choice: number, { parts: grown, tokens, finish }: GrowingChoice): GeneratedChoice {
  const parts: GeneratedPart[] = [];
  const toolCalls: GeneratedCall[] = [];
  let text: string | null = null;
  let reasoning: string | null = null;
  let refusal: string | null = null;
  let textLogprobs: TokenLogprob[] | null = null;
  let refusalLogprobs: TokenLogprob[] | null = null;
  for (const part of grown) {
    switch (part.type) {
      case "item":
      case "hosted-result":
      case "hosted-functions":
      case "hosted-approval":
        parts.push(part);
        break;
      case "hosted-call":
        parts.push({ ...part, arguments: part.arguments.join("") });
        break;
      case "tool-call": {
        const call = wholeCall(part);
        toolCalls.push(call);
        parts.push({ type: "tool-call", ...call });
        break;
      }
      case "text": {
        const whole = wholeText(part);
        parts.push(whole);
        text = text === null ? whole.text : text + whole.text;
        textLogprobs = bothOf(textLogprobs, part.logprobs);
        break;
      }
      case "refusal": {
        const text = part.chunks.join("");
        parts.push({ type: "refusal", refusal: text, ...(part.id !== undefined && { id: part.id }) });
        refusal = refusal === null ? text : refusal + text;
        refusalLogprobs = bothOf(refusalLogprobs, part.logprobs);
        break;
      }
      case "reasoning": {
        const whole = wholeReasoning(part);
        parts.push(whole);
        const shown = whole.text === "" ? whole.summary.join("\n\n") : whole.text;
        reasoning = reasoning === null ? shown : reasoning + shown;
      }
    }
  }
  const whole = { choice, parts, text, reasoning, refusal, toolCalls, textLogprobs, refusalLogprobs, finish };
  return tokens ? { ...whole, tokens } : whole;
}

function wholeCall({
  id,
  name,
  kind,
  arguments: chunks,
  namespace,
  itemId,
  native,
  state,
  status,
}: GrowingCall): GeneratedCall {
  return {
    id,
    name,
    arguments: chunks.join(""),
    kind,
    status,
    ...(namespace !== undefined && { namespace }),
    ...(itemId !== undefined && { itemId }),
    ...(native !== undefined && { native }),
    ...(state !== undefined && { state }),
  };
}

function wholeText({ chunks, id, phase, annotations, logprobs }: GrowingPart): GeneratedText {
  const text: GeneratedText = { type: "text", text: chunks.join(""), annotations, logprobs };
  if (id === undefined && phase === undefined) return text;
  return { ...text, ...(id !== undefined && { id }), ...(phase !== undefined && { phase }) };
}

function wholeReasoning({ chunks, summary, id, state }: GrowingPart): GeneratedReasoning {
  return {
    type: "reasoning",
    text: chunks.join(""),
    // A source may skip a number.
    summary: Array.from(summary.values(), (part) => part.join("")),
    ...(id !== undefined && { id }),
    ...(state !== undefined && { state }),
  };
}

function bothOf(before: TokenLogprob[] | null, more: readonly TokenLogprob[] | null): TokenLogprob[] | null {
  if (more === null) return before;
  const all = before ?? [];
  for (const token of more) all.push(token);
  return all;
}
