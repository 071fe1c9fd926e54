import type { GenerationEvent, TokenLogprob } from "../../wire/core/events.ts";
import type { Tool } from "../../wire/core/message.ts";
import type { Format } from "./format.ts";
import { Cursor, type Parser } from "./reading/cursor.ts";
import { EventOutput, StopFilter } from "./reading/output.ts";
import { compileFormat } from "./reading/compiled-format.ts";
import { readPlain } from "./reading/read-content.ts";
import { readRouted } from "./reading/read-routed.ts";
import { openReasoning, textStart } from "./reasoning.ts";
import { ToolTypes } from "./reading/tool-types.ts";

export interface TextReaderOptions {
  readonly format: Format;
  /** The choice that the events name. */
  readonly choice: number;
  readonly newCallId: () => string;
  /** The end of the rendered prompt, which may have opened the reasoning. Absent: unknown. */
  readonly prefix?: string;
  /** The request's tools: they determine the types of values, and a call of any other tool stays text. Absent: every name is a tool. */
  readonly tools?: readonly Tool[];
  /** Default true. With false (tool_choice none, a request without tools), what looks like a call stays text. */
  readonly callsAllowed?: boolean;
  /** The client's stop strings. They end the visible text; reasoning and calls may contain them. */
  readonly stop?: readonly string[];
  /** Whether reasoning was requested. Absent: unknown. */
  readonly thinking?: boolean;
  /** Default true. With false, reasoning and its markers are content, including those at the end of `prefix`. */
  readonly separateReasoning?: boolean;
  /** Emit `markup` events, which together with the deltas contain every character of the text. */
  readonly trace?: boolean;
}

/**
 * Parses the text of a model, in any chunks, into events, which do not depend on how the text is cut. The events are deltas and calls in
 * legal order, without `start` and `finish`, which the caller emits. Never throws.
 *
 * The work is linear in the length of the text. Only these are held back: the longest tail that may become a marker, white space at the
 * ends of visible text and reasoning, and the text of a call until it is certain to be one.
 */
export class TextReader {
  readonly #cursor = new Cursor();
  readonly #output: EventOutput;
  readonly #parser: Parser<unknown>;

  constructor(options: TextReaderOptions) {
    const { format, choice, newCallId, tools, stop } = options;
    const types = tools ? new ToolTypes(tools) : noTools;
    const output = new EventOutput({
      choice,
      newCallId,
      known: tools ? types : null,
      mergeReasoning: options.separateReasoning === false,
      promptReasoning: options.separateReasoning === false ? promptReasoning(format, options.prefix) : "",
      keepSpace: format.kind === "plain" && compileFormat(format).isPlainText,
      stop: stop && stop.length > 0 ? new StopFilter(stop) : null,
      trace: options.trace === true,
    });
    this.#output = output;
    const cursor = this.#cursor;
    const callsAllowed = options.callsAllowed !== false;
    this.#parser =
      format.kind === "plain"
        ? readPlain(
            { cursor, output, types, callsAllowed, format: compileFormat(format) },
            textStart(format.reasoning, options),
          )
        : readRouted({ cursor, output, types, callsAllowed }, format, options.prefix);
  }

  /**
   * Reads the next chunk. With `logprob`, the chunk is one token, and the logprob is emitted with the text or reasoning that contains the
   * last character of the token, or dropped if a marker or a call does. After a stop string, text is ignored.
   */
  push(text: string, logprob?: TokenLogprob): GenerationEvent[] {
    if (this.stopped !== null) return [];
    this.#output.received(text, logprob);
    if (text !== "") {
      const cursor = this.#cursor;
      cursor.feed(text);
      if (cursor.pump === null || !cursor.pump()) this.#parser.next();
    }
    return this.#output.flush();
  }

  /**
   * Ends the text. With `cut`, the model did not end it (finish reason "length"), and what is open stays incomplete; otherwise the end
   * closes what is open. A call whose arguments are incomplete has failed.
   */
  end(cut = false): GenerationEvent[] {
    if (this.stopped !== null) return [];
    this.#cursor.ended = true;
    this.#cursor.cut = cut;
    this.#parser.next();
    this.#output.end();
    return this.#output.flush();
  }

  /** The stop string that ended the text, or null. */
  get stopped(): string | null {
    return this.#output.stopped;
  }

  get sawCalls(): boolean {
    return this.#output.sawCalls;
  }

  /** The tools, at most twenty, that were called although the request does not have them; those calls stayed text. */
  get unknownTools(): ReadonlySet<string> {
    return this.#output.unknownTools;
  }

  get phase(): "reasoning" | "content" | "call" {
    return this.#output.phase;
  }

  /** The raw text since the opener of the open call, or null if no call is open. */
  get openCall(): string | null {
    if (this.#output.phase !== "call") return null;
    return this.#output.callSoFar() + this.#cursor.peekPending();
  }
}

/** The reasoning that the end of the prompt has opened, including its opener. */
function promptReasoning({ kind, reasoning }: Format, prefix: string | undefined): string {
  if (kind === "routed" || !reasoning || prefix === undefined) return "";
  const text = openReasoning(reasoning, prefix);
  if (text === null) return "";
  const before = prefix.slice(0, prefix.length - text.length);
  return (reasoning.open.find((open) => before.endsWith(open)) ?? "") + text;
}

const noTools = new ToolTypes([]);

/** The log message about calls that stayed text because the request does not have these tools, or null if there were none. */
export function unknownToolsWarning(names: ReadonlySet<string>): string | null {
  if (names.size === 0) return null;
  const list = [...names].map(quoted).join(", ");
  return `The model called ${list}, which the request does not have as a tool; the call is left in the text.`;
}

/** Quotes a name, which the model may have invented, without characters that control a terminal. */
function quoted(name: string): string {
  return JSON.stringify(name).replace(/[\u007f-\u009f]/g, "\ufffd");
}

/** The state of a `TextReader`. */
export interface ReaderState {
  readonly phase: "reasoning" | "content" | "call";
  /** The raw text since the opener of the open call or section. */
  readonly openCall: string | null;
  readonly sawCalls: boolean;
}

/**
 * Whether a call has certainly begun, so that a lazy grammar may start: the parser is after an opener, or after a header that names a tool.
 * If calls need no marker, an answer in JSON begins like a call, so the call has begun only when its name is complete.
 */
export function callHasStarted(format: Format, { phase, openCall, sawCalls }: ReaderState): boolean {
  if (phase !== "call" || openCall === null) return false;
  if (format.kind === "routed" || sawCalls) return true;
  const openers = [...(format.section?.open ?? []), ...format.calls.flatMap((call) => call.open ?? [])];
  return openers.some((opener) => openCall.trimStart().startsWith(opener));
}
