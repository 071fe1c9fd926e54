import { accumulate } from "../../wire/core/accumulate.ts";
import { ChoiceAssembler } from "../../wire/core/choice-assembler.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { Tool } from "../../wire/core/message.ts";
import type { Format } from "./format.ts";
import { TextReader, unknownToolsWarning } from "./text-reader.ts";

/** A raw text of a model, and what is known about its origin. */
export interface ParseJob {
  readonly format: Format;
  readonly text: string;
  /** The end of the prompt, from the beginning of the assistant's turn. */
  readonly prefix?: string;
  readonly tools?: readonly Tool[];
  /** The text in the chunks in which it is to be read. Default: one chunk. */
  readonly chunks?: readonly string[];
  /** Whether reasoning was requested. */
  readonly thinking?: boolean;
  /** With false, reasoning and its markers are content. */
  readonly separateReasoning?: boolean;
  /** Emit markup events. */
  readonly trace?: boolean;
}

export interface ParsedText {
  readonly content: string;
  readonly reasoning: string;
  /** `arguments`: for a custom tool, its input. */
  readonly calls: readonly { readonly name: string; readonly arguments: string; readonly kind?: "custom" }[];
  /** Absent if there are none. */
  readonly warnings?: readonly string[];
}

/** What is known about a text before it arrives. */
type TextFacts = Omit<ParseJob, "text" | "chunks">;

/**
 * Reads a text as `truewire serve` reads the answer of a local model: returns events as the text arrives, including `start` and `finish`.
 */
export class JobReader {
  readonly #reader: TextReader;
  readonly #assembler = new ChoiceAssembler(0);

  /** `newCallId`: default `call_0`, `call_1`, … */
  constructor(facts: TextFacts, newCallId?: () => string) {
    const { format, prefix, tools, thinking, separateReasoning, trace } = facts;
    let calls = 0;
    this.#reader = new TextReader({
      format,
      choice: 0,
      newCallId: newCallId ?? (() => `call_${calls++}`),
      prefix,
      tools,
      thinking,
      separateReasoning,
      trace,
    });
  }

  /** Warnings for the log about calls that stayed text because the request does not have the tool. */
  get warnings(): readonly string[] {
    const warning = unknownToolsWarning(this.#reader.unknownTools);
    return warning === null ? [] : [warning];
  }

  push(text: string): GenerationEvent[] {
    this.#assembler.add(this.#reader.push(text));
    return this.#assembler.take();
  }

  /** `cut`: the model did not end the text; it was cut off at the token limit. */
  end(cut = false): GenerationEvent[] {
    this.#assembler.add(this.#reader.end(cut));
    this.#assembler.finish(cut ? "length" : "stop");
    return this.#assembler.take();
  }
}

/** Reads a whole text. Returns the events, including `start` and `finish`, and the warnings for the log. */
export function parseEvents(job: ParseJob): { events: readonly GenerationEvent[]; warnings: readonly string[] } {
  const reader = new JobReader(job);
  const events: GenerationEvent[] = [];
  for (const chunk of job.chunks ?? [job.text]) for (const event of reader.push(chunk)) events.push(event);
  for (const event of reader.end()) events.push(event);
  return { events, warnings: reader.warnings };
}

/** Reads a whole text and returns the message. */
export function parseMessage(job: ParseJob): ParsedText {
  const { events, warnings } = parseEvents(job);
  const choice = accumulate(events).choices[0];
  return {
    content: choice?.text ?? "",
    reasoning: choice?.reasoning ?? "",
    calls: (choice?.toolCalls ?? []).map(({ name, arguments: text, kind }) => {
      return { name, arguments: text, ...(kind === "custom" && { kind }) };
    }),
    ...(warnings.length > 0 && { warnings }),
  };
}
