import type {
  Annotation,
  EndEvent,
  ExtraEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  PromptEvent,
  SourceIdentity,
  Timings,
  TokenLogprob,
  Usage,
} from "./events.ts";

/** A whole generation: what `accumulate` makes of its events, and what every non-stream answer is written from. */
export interface Generation {
  readonly source?: SourceIdentity;
  /** By choice number, ascending. */
  readonly choices: readonly GeneratedChoice[];
  readonly usage?: Usage;
  readonly timings?: Timings;
  readonly extras: readonly ExtraEvent[];
  /** What was told of the prompts, where it was asked for. */
  readonly prompts?: readonly PromptEvent[];
  readonly end: GenerationEnd;
}

export interface GeneratedChoice {
  readonly choice: number;
  /** All that was said, thought and called, in order. The members below are the same, by kind. */
  readonly parts: readonly GeneratedPart[];
  /** null when the choice has no text delta at all. */
  readonly text: string | null;
  readonly reasoning: string | null;
  readonly refusal: string | null;
  readonly toolCalls: readonly GeneratedCall[];
  readonly textLogprobs: readonly TokenLogprob[] | null;
  readonly refusalLogprobs: readonly TokenLogprob[] | null;
  /** The ids of its tokens, where they were asked for. */
  readonly tokens?: readonly number[];
  /** null when the generation ended before this choice did. */
  readonly finish: GeneratedFinish | null;
}

export interface GeneratedFinish {
  readonly reason: FinishReason;
  readonly stop?: string;
  readonly limit?: "max-tokens" | "context";
}

export type GeneratedPart = GeneratedText | GeneratedRefusal | GeneratedThought | GeneratedCallPart | GeneratedItem;

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

export interface GeneratedThought {
  readonly type: "reasoning";
  /** "" where only a summary or a sealed form is known. */
  readonly text: string;
  readonly summary: readonly string[];
  readonly id?: string;
  readonly signature?: string;
  readonly encrypted?: string;
}

export interface GeneratedCallPart extends GeneratedCall {
  readonly type: "tool-call";
}

/** A whole item that only one API has a place for. */
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
  /** null while the call has not ended: a cut call. */
  readonly status: "succeeded" | "failed" | null;
}

/** Gathers events as they come; `result` may be asked for at any time. Linear in the text: pieces are joined once. */
export class Accumulator {
  #source: SourceIdentity | undefined;
  #choices = new Map<number, ChoiceParts>();
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
        if (open?.type === "reasoning") {
          if (event.signature !== undefined) open.signature = event.signature;
          if (event.encrypted !== undefined) open.encrypted = event.encrypted;
        }
        choice.open = null;
        break;
      }
      case "text-delta": {
        const part = openPart(this.#choice(event.choice), "text");
        part.pieces.push(event.text);
        if (event.logprobs) for (const token of event.logprobs) (part.logprobs ??= []).push(token);
        break;
      }
      case "reasoning-delta": {
        const part = openPart(this.#choice(event.choice), "reasoning");
        if (event.summary === undefined) part.pieces.push(event.text);
        else summaryPart(part, event.summary).push(event.text);
        break;
      }
      case "refusal-delta": {
        const part = openPart(this.#choice(event.choice), "refusal");
        part.pieces.push(event.text);
        if (event.logprobs) for (const token of event.logprobs) (part.logprobs ??= []).push(token);
        break;
      }
      case "annotation":
        openPart(this.#choice(event.choice), "text").annotations.push(event.annotation);
        break;
      case "tool-call-start": {
        const { id, name, kind = "function", namespace, itemId } = event;
        const choice = this.#choice(event.choice);
        const call: CallParts = { type: "tool-call", id, name, kind, namespace, itemId, arguments: [], status: null };
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
        if (call) call.status = event.status;
        break;
      }
      case "finish": {
        const { reason, stop, limit } = event;
        this.#choice(event.choice).finish = {
          reason,
          ...(stop !== undefined && { stop }),
          ...(limit !== undefined && { limit }),
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

  #choice(number: number): ChoiceParts {
    let choice = this.#choices.get(number);
    if (!choice) this.#choices.set(number, (choice = { parts: [], open: null, calls: [], finish: null }));
    return choice;
  }

  /** A generation whose `end` has not come yet counts as truncated. */
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
 * The whole generation that these events tell. What a stream would have shown piece by piece is here at once. Without an `end` event it
 * counts as truncated.
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

interface ChoiceParts {
  readonly parts: (SpokenParts | CallParts | GeneratedItem)[];
  /** The part that deltas of its kind go to. */
  open: SpokenParts | null;
  readonly calls: CallParts[];
  tokens?: number[];
  finish: GeneratedFinish | null;
}

/** A part of text, reasoning or refusal while it grows. */
interface SpokenParts {
  readonly type: "text" | "reasoning" | "refusal";
  readonly id: string | undefined;
  readonly phase: string | undefined;
  readonly pieces: string[];
  /** By the source's numbers, which may be of any size, in the order in which they appear. */
  readonly summary: Map<number, string[]>;
  readonly annotations: Annotation[];
  logprobs: TokenLogprob[] | null;
  signature?: string;
  encrypted?: string;
}

interface CallParts {
  readonly type: "tool-call";
  readonly id: string;
  readonly name: string;
  readonly kind: "function" | "custom";
  readonly namespace: string | undefined;
  readonly itemId: string | undefined;
  readonly arguments: string[];
  status: GeneratedCall["status"];
}

/** The open part, if it is of this type; else a new one. Called for every delta. */
function openPart(choice: ChoiceParts, type: SpokenParts["type"]): SpokenParts {
  return choice.open?.type === type ? choice.open : newPart(choice, type, undefined, undefined);
}

function newPart(
  choice: ChoiceParts,
  type: SpokenParts["type"],
  id: string | undefined,
  phase: string | undefined,
): SpokenParts {
  const part: SpokenParts = { type, id, phase, pieces: [], summary: new Map(), annotations: [], logprobs: null };
  choice.parts.push(part);
  choice.open = part;
  return part;
}

function summaryPart({ summary }: SpokenParts, number: number): string[] {
  let pieces = summary.get(number);
  if (!pieces) summary.set(number, (pieces = []));
  return pieces;
}

const noEnd: EndEvent = {
  type: "end",
  end: {
    kind: "truncated",
    failure: { kind: "bad-answer", message: "The generation ended without an end event.", status: 502 },
  },
};

function wholeChoice(choice: number, { parts: grown, tokens, finish }: ChoiceParts): GeneratedChoice {
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
        parts.push(part);
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
        const said = part.pieces.join("");
        parts.push({ type: "refusal", refusal: said, ...(part.id !== undefined && { id: part.id }) });
        refusal = refusal === null ? said : refusal + said;
        refusalLogprobs = bothOf(refusalLogprobs, part.logprobs);
        break;
      }
      case "reasoning": {
        const thought = wholeThought(part);
        parts.push(thought);
        // A thought's own text, else its summary.
        const shown = thought.text === "" ? thought.summary.join("\n\n") : thought.text;
        reasoning = reasoning === null ? shown : reasoning + shown;
      }
    }
  }
  const whole = { choice, parts, text, reasoning, refusal, toolCalls, textLogprobs, refusalLogprobs, finish };
  return tokens ? { ...whole, tokens } : whole;
}

function wholeCall({ id, name, kind, arguments: pieces, namespace, itemId, status }: CallParts): GeneratedCall {
  const call = { id, name, arguments: pieces.join(""), kind, status };
  if (namespace === undefined && itemId === undefined) return call;
  return { ...call, ...(namespace !== undefined && { namespace }), ...(itemId !== undefined && { itemId }) };
}

function wholeText({ pieces, id, phase, annotations, logprobs }: SpokenParts): GeneratedText {
  const text: GeneratedText = { type: "text", text: pieces.join(""), annotations, logprobs };
  if (id === undefined && phase === undefined) return text;
  return { ...text, ...(id !== undefined && { id }), ...(phase !== undefined && { phase }) };
}

function wholeThought({ pieces, summary, id, signature, encrypted }: SpokenParts): GeneratedThought {
  return {
    type: "reasoning",
    text: pieces.join(""),
    // A source may leave a number out.
    summary: Array.from(summary.values(), (part) => part.join("")),
    ...(id !== undefined && { id }),
    ...(signature !== undefined && { signature }),
    ...(encrypted !== undefined && { encrypted }),
  };
}

function bothOf(before: TokenLogprob[] | null, more: readonly TokenLogprob[] | null): TokenLogprob[] | null {
  if (more === null) return before;
  return before === null ? [...more] : before.concat(more);
}
