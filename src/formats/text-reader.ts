import type { GenerationEvent, TokenLogprob } from "../core/events.ts";
import type { Tool } from "../core/message.ts";
import type { Format } from "./format.ts";
import { Cursor, type Reading } from "./reading/cursor.ts";
import { Output, StopFilter } from "./reading/output.ts";
import { planOf } from "./reading/plan.ts";
import { readPlain } from "./reading/read-content.ts";
import { readRouted } from "./reading/read-routed.ts";
import { openThought, startOf } from "./reading/start.ts";
import { ToolTypes } from "./reading/tool-types.ts";

export interface TextReaderOptions {
  readonly format: Format;
  /** The choice that the events name. */
  readonly choice: number;
  readonly newCallId: () => string;
  /** The end of the rendered prompt: it may already have begun a thought. Absent: unknown. */
  readonly prefix?: string;
  /** The request's tools: they type untyped values, and a call of another name stays text. Absent: every name is a call. */
  readonly tools?: readonly Tool[];
  /** Default true; false (tool_choice none, a request without tools): what looks like a call stays text. */
  readonly callsAllowed?: boolean;
  /** The client's stop strings. They end the visible text; reasoning and calls may hold them. */
  readonly stop?: readonly string[];
  /** Whether the model was asked to think; absent: not known. */
  readonly thinking?: boolean;
  /** Default true; false: reasoning and its markers are content, those at the end of `prefix` included. */
  readonly separateReasoning?: boolean;
  /** Make `markup` events, which with the text and reasoning deltas account for every character. */
  readonly trace?: boolean;
}

/**
 * Reads what a model writes: text in any pieces → events, the same for every way of cutting it. The events are deltas and calls, in
 * legal order; `start` and `finish` are the caller's. Nothing is thrown for any text.
 *
 * Work is linear in the text. Held back is the longest tail that may become a marker, white space at an edge, and a call's text up to
 * where it is certain to be one.
 */
export class TextReader {
  readonly #cursor = new Cursor();
  readonly #output: Output;
  readonly #reading: Reading<unknown>;

  constructor(options: TextReaderOptions) {
    const { format, choice, newCallId, tools, stop } = options;
    const types = tools ? new ToolTypes(tools) : noTools;
    const output = new Output({
      choice,
      newCallId,
      known: tools ? types : null,
      mergeReasoning: options.separateReasoning === false,
      begunThought: options.separateReasoning === false ? begunThought(format, options.prefix) : "",
      keepSpace: format.kind === "plain" && planOf(format).isPlainText,
      stop: stop && stop.length > 0 ? new StopFilter(stop) : null,
      trace: options.trace === true,
    });
    this.#output = output;
    const cursor = this.#cursor;
    const callsAllowed = options.callsAllowed !== false;
    this.#reading =
      format.kind === "plain"
        ? readPlain({ cursor, output, types, callsAllowed, plan: planOf(format) }, startOf(format.reasoning, options))
        : readRouted({ cursor, output, types, callsAllowed }, format, options.prefix);
  }

  /**
   * The next piece of the text. With logprobs a piece is one token; its logprob goes out with the text or reasoning that holds its last
   * character, and nowhere if a marker or a call does. After a stop string was hit, text is ignored.
   */
  push(text: string, logprob?: TokenLogprob): GenerationEvent[] {
    if (this.stopped !== null) return [];
    this.#output.received(text, logprob);
    if (text !== "") {
      const cursor = this.#cursor;
      cursor.feed(text);
      if (cursor.pump === null || !cursor.pump()) this.#reading.next();
    }
    return this.#output.flush();
  }

  /**
   * No more text will come. `cut`: the model did not end it (finish reason "length"); then what is still open stays incomplete. Else the
   * end closes what is open. A call whose arguments are incomplete has failed.
   */
  end(cut = false): GenerationEvent[] {
    if (this.stopped !== null) return [];
    this.#cursor.ended = true;
    this.#cursor.cut = cut;
    this.#reading.next();
    this.#output.end();
    return this.#output.flush();
  }

  /** The stop string that ended the text, null: none. */
  get stopped(): string | null {
    return this.#output.stopped;
  }

  get sawCalls(): boolean {
    return this.#output.sawCalls;
  }

  /** Names in calls of tools that the request does not have: those calls stayed text. At most twenty names are kept. */
  get unknownTools(): ReadonlySet<string> {
    return this.#output.unknownTools;
  }

  get phase(): "reasoning" | "content" | "call" {
    return this.#output.phase;
  }

  /** The raw text since a call's opener, while a call is open. */
  get openCall(): string | null {
    if (this.#output.phase !== "call") return null;
    return this.#output.callSoFar() + this.#cursor.peekPending();
  }
}

/** What the prompt's end has of a thought that it opened, its opener included. */
function begunThought({ kind, reasoning }: Format, prefix: string | undefined): string {
  if (kind === "routed" || !reasoning || prefix === undefined) return "";
  const thought = openThought(reasoning, prefix);
  if (thought === null) return "";
  const before = prefix.slice(0, prefix.length - thought.length);
  return (reasoning.open.find((open) => before.endsWith(open)) ?? "") + thought;
}

const noTools = new ToolTypes([]);
