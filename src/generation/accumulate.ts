import type {
  Annotation,
  EndEvent,
  ExtraEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  PartStartEvent,
  SourceIdentity,
  Timings,
  TokenLogprob,
  Usage,
} from "./event.ts";

/** A whole generation: what `accumulate` makes of its events, and what every non-stream answer is written from. */
export interface Generation {
  readonly source?: SourceIdentity;
  /** By choice number, ascending. */
  readonly choices: readonly GeneratedChoice[];
  readonly usage?: Usage;
  readonly timings?: Timings;
  readonly extras: readonly ExtraEvent[];
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
        const choice = this.#choice(event.choice);
        choice.open = null;
        openPart(choice, event.kind, event);
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
        else (part.summary[event.summary] ??= []).push(event.text);
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
  finish: GeneratedFinish | null;
}

/** A part of text, reasoning or refusal while it grows. */
interface SpokenParts {
  readonly type: "text" | "reasoning" | "refusal";
  readonly id: string | undefined;
  readonly phase: string | undefined;
  readonly pieces: string[];
  readonly summary: string[][];
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

function openPart(
  choice: ChoiceParts,
  type: SpokenParts["type"],
  { id, phase }: Partial<PartStartEvent> = {},
): SpokenParts {
  if (choice.open?.type === type) return choice.open;
  const part: SpokenParts = { type, id, phase, pieces: [], summary: [], annotations: [], logprobs: null };
  choice.parts.push(part);
  choice.open = part;
  return part;
}

const noEnd: EndEvent = {
  type: "end",
  end: {
    kind: "truncated",
    failure: { kind: "bad-answer", message: "The generation ended without an end event.", status: 502 },
  },
};

function wholeChoice(choice: number, { parts: grown, finish }: ChoiceParts): GeneratedChoice {
  const parts = grown.map(wholePart);
  return {
    choice,
    parts,
    text: joined(parts, (part) => (part.type === "text" ? part.text : null)),
    reasoning: joined(parts, thoughtOf),
    refusal: joined(parts, (part) => (part.type === "refusal" ? part.refusal : null)),
    toolCalls: parts.flatMap((part) => {
      if (part.type !== "tool-call") return [];
      const { type: _, ...call } = part;
      return [call];
    }),
    textLogprobs: logprobsOf(grown, "text"),
    refusalLogprobs: logprobsOf(grown, "refusal"),
    finish,
  };
}

function wholePart(part: SpokenParts | CallParts | GeneratedItem): GeneratedPart {
  switch (part.type) {
    case "item":
      return part;
    case "tool-call": {
      const { type, id, name, kind, namespace, itemId, status } = part;
      const call = { type, id, name, kind, arguments: part.arguments.join(""), status };
      return Object.assign(call, namespace !== undefined && { namespace }, itemId !== undefined && { itemId });
    }
    case "text": {
      const { type, id, phase, annotations, logprobs } = part;
      const text = { type, text: part.pieces.join(""), annotations, logprobs };
      return Object.assign(text, id !== undefined && { id }, phase !== undefined && { phase });
    }
    case "refusal":
      return Object.assign(
        { type: part.type, refusal: part.pieces.join("") },
        part.id !== undefined && { id: part.id },
      );
    case "reasoning": {
      const { type, id, signature, encrypted } = part;
      const summary = Array.from(part.summary, (pieces: string[] | undefined) => pieces?.join("") ?? "");
      return {
        type,
        text: part.pieces.join(""),
        summary,
        ...(id !== undefined && { id }),
        ...(signature !== undefined && { signature }),
        ...(encrypted !== undefined && { encrypted }),
      };
    }
  }
}

/** A thought's own text, else its summary. */
function thoughtOf(part: GeneratedPart): string | null {
  if (part.type !== "reasoning") return null;
  return part.text === "" && part.summary.length > 0 ? part.summary.join("\n\n") : part.text;
}

function joined(parts: readonly GeneratedPart[], textOf: (part: GeneratedPart) => string | null): string | null {
  const texts: string[] = [];
  for (const part of parts) {
    const text = textOf(part);
    if (text !== null) texts.push(text);
  }
  return texts.length === 0 ? null : texts.join("");
}

function logprobsOf(
  parts: readonly (SpokenParts | CallParts | GeneratedItem)[],
  type: "text" | "refusal",
): TokenLogprob[] | null {
  let all: TokenLogprob[] | null = null;
  for (const part of parts) {
    if (part.type !== type || part.logprobs === null) continue;
    all ??= [];
    for (const token of part.logprobs) all.push(token);
  }
  return all;
}
