import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../core/events.ts";
import type { EventReader } from "../source-port.ts";
import { FrameReader } from "../sse/frame-reader.ts";
import type { FrameSink } from "../sse/frame-reader.ts";
import { badAnswer, failureOfText } from "./read-failure.ts";
import { RepairLog } from "./repairs.ts";
import { parseTolerantly } from "./tolerant-json.ts";

/**
 * Reads one answer, streamed or whole, into events, of which there is one end: what the readers of all APIs share. What arrives may be
 * broken in every way that servers are known to break it. What was mended is counted in `repairs`.
 */
export abstract class AnswerReader implements EventReader, FrameSink {
  readonly repairs: RepairLog = new RepairLog();
  /** Events that are not handed out yet. */
  protected out: GenerationEvent[] = [];
  readonly #frames: FrameReader;
  #ended = false;
  /** The input is over: an event that is not complete now was cut. */
  #isOver = false;
  #strayText = "";

  /** `frameLimit`: the longest event, in characters. */
  constructor(frameLimit: number | undefined) {
    this.#frames = new FrameReader(this, this.repairs, frameLimit);
  }

  /** The `end` event is out; further input is ignored. */
  get ended(): boolean {
    return this.#ended;
  }

  /** All is said: only usage, the end mark and noise are still due. */
  abstract get finished(): boolean;

  /** Something of the answer has come: a failure before is still a failure with a status. */
  abstract get begun(): boolean;

  /** A piece of the answer, cut anywhere (text: at characters). Never throws for what it reads. */
  push(input: Uint8Array | string): GenerationEvent[] {
    if (this.#ended) return [];
    try {
      this.#frames.push(input);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.fail(badAnswer(error.message, error));
    }
    return this.handOut();
  }

  /** The input is over. `cause`: it did not end by itself, but was cut off. */
  end(cause?: Error): GenerationEvent[] {
    if (this.#ended) return [];
    this.#isOver = true;
    this.#frames.end();
    if (!this.#ended) this.inputOver(cause);
    return this.handOut();
  }

  /** The transport gives up; `end` becomes the last event, unless the answer was complete already. */
  abandon(end: GenerationEnd): GenerationEvent[] {
    if (!this.#ended) this.givenUp(end);
    return this.handOut();
  }

  /** A whole JSON answer (or an error in its place), parsed. */
  abstract readBody(body: unknown): GenerationEvent[];

  /** A frame of the stream; called by the frame reader. */
  abstract frame(data: string, event: string, bare: boolean): void;

  /** Reads what a frame says in JSON; `data` is its text. */
  protected abstract object(value: object | null, data: string, event: string, bare: boolean): void;

  /** The input has ended, and the answer has not: it was cut. */
  protected inputOver(cause: Error | undefined): void {
    if (!this.begun && this.#strayText !== "") return this.fail(failureOfText(this.#strayText));
    const why = cause
      ? `The upstream's answer was cut off: ${cause.message}`
      : "The upstream's answer ended too early.";
    this.conclude({ kind: "truncated", failure: badAnswer(why, cause) });
  }

  protected givenUp(end: GenerationEnd): void {
    this.conclude(end);
  }

  /** What was no event: what a proxy or a framework said instead. */
  protected get strayText(): string {
    return this.#strayText;
  }

  /** A frame that has text. */
  protected content(data: string, event: string, bare: boolean): void {
    const content = readFrame(data, { event, bare, ending: this.#isOver }, this.repairs);
    if (content.kind === "object") this.object(content.value, data, event, bare);
    else if (content.kind === "failure") this.fail(content.failure);
    else if (content.kind === "words" && this.#strayText.length < 20_000) this.#strayText += `${data}\n`;
  }

  protected fail(failure: GenerationFailure): void {
    this.conclude({ kind: "upstream-error", failure });
  }

  /** The first end counts. */
  protected conclude(end: GenerationEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.out.push({ type: "end", end });
  }

  protected handOut(): GenerationEvent[] {
    const { out } = this;
    if (out.length > 0) this.out = [];
    return out;
  }
}

/** What a frame of an answer holds. */
type FrameContent =
  /** JSON: a chunk, a whole answer, or an error. */
  | { readonly kind: "object"; readonly value: object | null }
  /** Text on lines of its own: noise between events; instead of events it is the failure. */
  | { readonly kind: "words" }
  /** A ping, or an event that the end of the input cut. */
  | { readonly kind: "nothing" }
  | { readonly kind: "failure"; readonly failure: GenerationFailure };

interface FrameOptions {
  /** The event's name, "" without one. */
  readonly event: string;
  /** The text stood without `data:`. */
  readonly bare: boolean;
  /** The input is over: what is not complete now was cut. */
  readonly ending: boolean;
}

/** What the text of a frame is; it is neither empty nor `[DONE]`. */
function readFrame(data: string, { event, bare, ending }: FrameOptions, repairs: RepairLog): FrameContent {
  const value = parseTolerantly(data, repairs);
  if (value !== undefined && typeof value === "object") return { kind: "object", value };
  if (bare) {
    repairs.note("unknown-field");
    return { kind: "words" };
  }
  if (event === "ping" || /^(ping|keep-?alive|heartbeat)$/i.test(data.trim())) {
    repairs.note("keep-alive");
    return { kind: "nothing" };
  }
  const looksLikeObject = data.trimStart().startsWith("{");
  if (ending && looksLikeObject) return { kind: "nothing" };
  if (typeof value === "string" || event === "error" || !looksLikeObject) {
    return { kind: "failure", failure: failureOfText(typeof value === "string" ? value : data) };
  }
  const cause = new Error(data.slice(0, 300));
  return { kind: "failure", failure: badAnswer("The upstream sent an event that is not JSON.", cause) };
}
