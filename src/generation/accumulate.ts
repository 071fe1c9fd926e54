import type {
  EndEvent,
  ExtraEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
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
  /** null when the choice has no text delta at all. */
  readonly text: string | null;
  readonly reasoning: string | null;
  readonly refusal: string | null;
  readonly toolCalls: readonly GeneratedCall[];
  readonly textLogprobs: readonly TokenLogprob[] | null;
  readonly refusalLogprobs: readonly TokenLogprob[] | null;
  /** null when the generation ended before this choice did. */
  readonly finish: { readonly reason: FinishReason; readonly stop?: string } | null;
}

export interface GeneratedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly kind: "function" | "custom";
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
      case "text-delta": {
        const choice = this.#choice(event.choice);
        (choice.text ??= []).push(event.text);
        if (event.logprobs) (choice.textLogprobs ??= []).push(...event.logprobs);
        break;
      }
      case "reasoning-delta":
        (this.#choice(event.choice).reasoning ??= []).push(event.text);
        break;
      case "refusal-delta": {
        const choice = this.#choice(event.choice);
        (choice.refusal ??= []).push(event.text);
        if (event.logprobs) (choice.refusalLogprobs ??= []).push(...event.logprobs);
        break;
      }
      case "tool-call-start": {
        const { id, name, kind = "function" } = event;
        this.#choice(event.choice).calls[event.index] = { id, name, kind, arguments: [], status: null };
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
      case "finish":
        this.#choice(event.choice).finish = {
          reason: event.reason,
          ...(event.stop !== undefined && { stop: event.stop }),
        };
        break;
      case "usage":
        this.#usage = event.usage;
        this.#timings = event.timings ?? this.#timings;
        break;
      case "extra":
        this.#extras.push(event);
        break;
      case "end":
        this.#end = event.end;
    }
  }

  #choice(number: number): ChoiceParts {
    let choice = this.#choices.get(number);
    if (!choice) this.#choices.set(number, (choice = { calls: [], finish: null }));
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
  text?: string[];
  reasoning?: string[];
  refusal?: string[];
  calls: CallParts[];
  textLogprobs?: TokenLogprob[];
  refusalLogprobs?: TokenLogprob[];
  finish: GeneratedChoice["finish"];
}

interface CallParts {
  id: string;
  name: string;
  kind: "function" | "custom";
  arguments: string[];
  status: GeneratedCall["status"];
}

const noEnd: EndEvent = {
  type: "end",
  end: {
    kind: "truncated",
    failure: { message: "The generation ended without an end event.", status: 502, type: "server_error" },
  },
};

function wholeChoice(choice: number, parts: ChoiceParts): GeneratedChoice {
  return {
    choice,
    text: parts.text?.join("") ?? null,
    reasoning: parts.reasoning?.join("") ?? null,
    refusal: parts.refusal?.join("") ?? null,
    toolCalls: parts.calls.map((call) => ({ ...call, arguments: call.arguments.join("") })),
    textLogprobs: parts.textLogprobs ?? null,
    refusalLogprobs: parts.refusalLogprobs ?? null,
    finish: parts.finish,
  };
}
