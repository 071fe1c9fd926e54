import type { CompiledFormat } from "./compiled-format.ts";
import { type Cursor, isSpace, type Parser, TextBuffer } from "./cursor.ts";
import type { ArgumentSink } from "./json-scan.ts";
import { matchMarker, readBeforeMarker } from "./marker-set.ts";
import type { EventOutput } from "./output.ts";
import type { ToolTypes } from "./tool-types.ts";

/** What all parsers of a plain format share. */
export interface ParseContext extends CallContext {
  readonly output: EventOutput;
  readonly callsAllowed: boolean;
}

/** What the parsers of one call share. */
export interface CallContext {
  readonly cursor: Cursor;
  readonly output: CallOutput;
  readonly format: CompiledFormat;
  readonly types: ToolTypes;
}

/** Receives a call: emits its events, or records it while it is not certain to be a call. */
interface CallOutput {
  startCall(name: string, raw: string, id?: string): void;
  callArguments(json: string, raw: string): void;
  endCall(status: "succeeded" | "failed", raw: string): void;
  markup(raw: string): void;
  /** Text that closes finished calls. It is treated like the last of them: hidden, or visible if that call became text. */
  closer(raw: string): void;
  /** Whether the request has a tool with this name. */
  isKnown(name: string): boolean;
  /** Reports a call that stays text because the request has no tool with this name. */
  unknown(name: string): void;
}

/** The result of trying to read a call. "none": nothing was emitted, and everything that was passed is pending. */
export type CallOutcome = "read" | "failed" | "none";

/** The head of a call whose name is written in plain text. */
export interface CallHead {
  readonly name: string;
  readonly id?: string;
  /** The marker that ended the head. */
  readonly end: string;
  /** A self-closing tag: the call has no arguments. */
  readonly empty: boolean;
}

/** Writes a call whose head was read. The call starts with the first JSON that is written for it. */
export class CallWriter implements ArgumentSink {
  readonly name: string;
  started = false;
  readonly #context: Pick<CallContext, "cursor" | "output">;
  readonly #id: string | undefined;

  constructor(
    context: Pick<CallContext, "cursor" | "output">,
    { name, id }: { name: string; id?: string | undefined },
  ) {
    this.#context = context;
    this.name = name;
    this.#id = id;
  }

  start(): void {
    if (this.started) return;
    this.started = true;
    this.#context.output.startCall(this.name, this.#context.cursor.take(), this.#id);
  }

  write(json: string, raw: string): void {
    if (json !== "" || raw !== "") this.#context.output.callArguments(json, raw);
  }

  json(text: string): void {
    this.start();
    this.write(text, this.#context.cursor.take());
  }

  end(status: "succeeded" | "failed"): void {
    this.start();
    this.#context.output.endCall(status, this.#context.cursor.take());
  }
}

/**
 * Ends an invalid call. If it has started, the rest of it, up to its close marker, belongs to the call and is not visible text; with
 * `inArguments` the rest is emitted as arguments, as the model wrote it, so that the client can see what was meant. Otherwise everything
 * is pending, and none of it was a call. `brackets` matches the brackets of the call itself that follow its arguments.
 */
export function* failCall(
  { cursor, format }: CallContext,
  call: CallWriter,
  { inArguments = true, brackets }: { readonly inArguments?: boolean; readonly brackets?: RegExp } = {},
): Parser<CallOutcome> {
  if (!call.started) return "none";
  const closes = format.allCloses();
  if (closes.markers.length > 0) {
    const rest = new RestOfCall();
    yield* readBeforeMarker(cursor, closes, (raw) => call.write(inArguments ? rest.add(raw) : "", raw));
    call.write(rest.end(brackets), "");
  }
  call.end("failed");
  return "failed";
}

/** The text of an invalid call. Its end is held back as long as it may be white space and the closing brackets of the call itself. */
export class RestOfCall {
  readonly #held = new TextBuffer();

  /** Returns the text that is certainly not the end. */
  add(raw: string): string {
    let end = raw.length;
    while (end > 0 && isBracketOrSpace(raw.charCodeAt(end - 1))) end--;
    const text = end === 0 ? "" : this.#held.take() + raw.slice(0, end);
    this.#held.add(raw.slice(end));
    return text;
  }

  /** Returns the held text without white space and without `brackets`. */
  end(brackets: RegExp | undefined): string {
    const held = this.#held.take().trimEnd();
    return brackets ? held.replace(brackets, "").trimEnd() : held;
  }
}

function isBracketOrSpace(code: number): boolean {
  return code === 125 || code === 93 || isSpace(code);
}

/** Skips the first or last line of a Markdown code fence. Returns whether there was one. */
export function* skipFence({ cursor, format }: CallContext): Parser<boolean> {
  const fence = format.set("fence", () => ["```json", "```JSON", "```"]);
  return (yield* matchMarker(cursor, fence)) >= 0;
}

/** Records a call until it is certain to be one. */
class Recorder implements CallOutput {
  readonly #steps: ((output: CallOutput) => void)[] = [];
  readonly #output: CallOutput;
  readonly #raw = new TextBuffer();

  constructor(output: CallOutput) {
    this.#output = output;
  }

  get raw(): string {
    return this.#raw.toString();
  }

  #record(raw: string, step: (output: CallOutput) => void): void {
    this.#raw.add(raw);
    this.#steps.push(step);
  }

  startCall(name: string, raw: string, id?: string): void {
    this.#record(raw, (output) => output.startCall(name, raw, id));
  }

  callArguments(json: string, raw: string): void {
    this.#record(raw, (output) => output.callArguments(json, raw));
  }

  endCall(status: "succeeded" | "failed", raw: string): void {
    this.#record(raw, (output) => output.endCall(status, raw));
  }

  markup(raw: string): void {
    this.#record(raw, (output) => output.markup(raw));
  }

  closer(raw: string): void {
    this.#record(raw, (output) => output.closer(raw));
  }

  isKnown(name: string): boolean {
    return this.#output.isKnown(name);
  }

  unknown(name: string): void {
    this.#output.unknown(name);
  }

  replay(): void {
    for (const step of this.#steps) step(this.#output);
  }
}

/**
 * Reads calls that are certain only at their end and emits them then. `confirm` may check more than that they were read. If they are no
 * calls, all their text becomes pending again.
 */
export function* recordCall(
  context: CallContext,
  read: (recording: CallContext) => Parser<CallOutcome>,
  confirm?: () => Parser<boolean>,
): Parser<CallOutcome> {
  const recorder = new Recorder(context.output);
  const outcome = yield* read({ ...context, output: recorder });
  if (outcome === "read" && (!confirm || (yield* confirm()))) {
    recorder.replay();
    return "read";
  }
  context.cursor.restore(recorder.raw);
  return "none";
}
