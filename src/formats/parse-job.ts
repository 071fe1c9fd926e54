import { accumulate } from "../generation/accumulate.ts";
import { ChoiceAssembler } from "../generation/choice-assembler.ts";
import type { GenerationEvent } from "../generation/event.ts";
import type { Tool } from "../generation/message.ts";
import type { Format, Reasoning } from "./format.ts";
import { openThought } from "./reading/start.ts";
import { TextReader } from "./text-reader.ts";
import { unknownToolsWarning } from "./unknown-tools.ts";

/** A raw text of a model and what is known of how it came about. */
export interface ParseJob {
  readonly format: Format;
  readonly text: string;
  /** The end of the prompt, from where the assistant's turn begins. */
  readonly prefix?: string;
  readonly tools?: readonly Tool[];
  /** The text in the pieces in which it is to be read; default: whole. */
  readonly chunks?: readonly string[];
  /** Whether the model was asked to think. */
  readonly thinking?: boolean;
  /** false: reasoning and its markers are content. */
  readonly separateReasoning?: boolean;
  /** The prefix ends with the beginning of the message, which belongs to the result. */
  readonly continues?: boolean;
  /** A thought with nothing behind it is the content. */
  readonly nonemptyContent?: boolean;
  /** The answer was to be JSON: a code fence around it is taken off. */
  readonly json?: boolean;
  /** Make markup events. */
  readonly trace?: boolean;
}

export interface ParsedMessage {
  readonly content: string;
  readonly reasoning: string;
  /** `arguments`: of a custom tool, the input. */
  readonly calls: readonly { readonly name: string; readonly arguments: string; readonly kind?: "custom" }[];
  /** Absent: none. */
  readonly warnings?: readonly string[];
}

/** What is known of a text before it comes. */
export type TextFacts = Omit<ParseJob, "text" | "chunks" | "nonemptyContent" | "json">;

/** Reads a text as it comes: events, `start` and `finish` included. What the prompt has begun of the message belongs to it. */
export class JobReader {
  readonly #reader: TextReader;
  readonly #assembler = new ChoiceAssembler(0);
  #begun: string;

  /** `newCallId`: default `call_0`, `call_1`, … */
  constructor(facts: TextFacts, newCallId?: () => string) {
    const { begun, prefix } = begin(facts);
    const { format, tools, thinking, separateReasoning, trace } = facts;
    let calls = 0;
    this.#begun = begun;
    this.#reader = new TextReader({
      format,
      choice: 0,
      newCallId: newCallId ?? (() => `call_${calls++}`),
      ...(prefix !== undefined && { prefix }),
      ...(tools && { tools }),
      ...(thinking !== undefined && { thinking }),
      ...(separateReasoning !== undefined && { separateReasoning }),
      ...(trace !== undefined && { trace }),
    });
  }

  /** What the log is to be told: calls that stayed text because the request has no such tool. */
  get warnings(): readonly string[] {
    const warning = unknownToolsWarning(this.#reader.unknownTools);
    return warning === null ? [] : [warning];
  }

  push(text: string): GenerationEvent[] {
    this.#begin();
    this.#assembler.add(this.#reader.push(text));
    return this.#assembler.take();
  }

  /** `cut`: the model did not end the text, its budget did. */
  end(cut = false): GenerationEvent[] {
    this.#begin();
    this.#assembler.add(this.#reader.end(cut));
    this.#assembler.finish(cut ? "length" : "stop");
    return this.#assembler.take();
  }

  #begin(): void {
    if (this.#begun === "") return;
    this.#assembler.add(this.#reader.push(this.#begun));
    this.#begun = "";
  }
}

/** Reads a text to its end: the events, `start` and `finish` included, and what the log is to be told. */
export function parseEvents(job: ParseJob): { events: readonly GenerationEvent[]; warnings: readonly string[] } {
  const reader = new JobReader(job);
  const events: GenerationEvent[] = [];
  for (const chunk of job.chunks ?? [job.text]) for (const event of reader.push(chunk)) events.push(event);
  for (const event of reader.end()) events.push(event);
  return { events, warnings: reader.warnings };
}

/** Reads a text to its end: the message that it is. */
export function parseMessage(job: ParseJob): ParsedMessage {
  const { events, warnings } = parseEvents(job);
  const choice = accumulate(events).choices[0];
  const lonely = job.separateReasoning === false ? lonelyOpener(job) : "";
  const text = choice?.text ?? "";
  const content = text.startsWith(lonely) ? text.slice(lonely.length) : text;
  const reasoning = choice?.reasoning ?? "";
  const swapped = job.nonemptyContent === true && content.trim() === "";
  return {
    content: swapped ? reasoning : job.json === true ? withoutFence(content) : content,
    reasoning: swapped ? "" : reasoning,
    calls: (choice?.toolCalls ?? []).map(({ name, arguments: text, kind }) => {
      return { name, arguments: text, ...(kind === "custom" && { kind }) };
    }),
    ...(warnings.length > 0 && { warnings }),
  };
}

/** What of the prompt's end belongs to the message, and the prompt's end before that. */
function begin({ format, prefix, continues }: TextFacts): { begun: string; prefix?: string } {
  if (prefix === undefined) return { begun: "" };
  if (format.kind === "routed") {
    const at = prefix.indexOf(format.start);
    return at < 0 ? { begun: "" } : { begun: prefix.slice(at) };
  }
  if (continues === true) {
    const at = turnStart(prefix, format.reasoning);
    return { begun: prefix.slice(at), prefix: prefix.slice(0, at) };
  }
  const thought = format.reasoning ? openThought(format.reasoning, prefix) : null;
  if (thought === null) return { begun: "", prefix };
  return { begun: thought, prefix: prefix.slice(0, prefix.length - thought.length) };
}

/** Where the assistant's own text begins: behind the last role marker. */
function turnStart(prefix: string, reasoning: Reasoning | undefined): number {
  const own = new Set<string>([...(reasoning?.open ?? []), ...(reasoning?.close ?? [])]);
  let at = 0;
  for (const found of prefix.matchAll(/(?:<[^<>\s]*>|\[\/?INST\]|\]~b\]ai|\b(?:[Aa]ssistant|model)(?:\n|: ?))\n*/g)) {
    if (!own.has(found[0].trim())) at = found.index + found[0].length;
  }
  return at;
}

/**
 * With reasoning left in the content, the opener that stands in the prompt belongs to it; as far as a whole text tells, only if the text
 * has its close. Gives the opener that has none.
 */
function lonelyOpener({ format, prefix, text }: ParseJob): string {
  const { reasoning } = format;
  if (!reasoning || prefix === undefined || format.kind === "routed") return "";
  const thought = openThought(reasoning, prefix);
  if (thought === null) return "";
  const first = (markers: readonly string[]): number =>
    Math.min(...markers.map((marker) => text.indexOf(marker)).map((at) => (at < 0 ? Infinity : at)));
  const close = first(reasoning.close);
  if (close < Infinity && first(reasoning.endedBy ?? []) >= close) return "";
  const before = prefix.slice(0, prefix.length - thought.length);
  return reasoning.open.find((open) => before.endsWith(open)) ?? "";
}

function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([^]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}
