import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../core/events.ts";
import type { EventReader } from "../source-port.ts";
import { SseFrameReader } from "../sse/frame-reader.ts";
import type { FrameSink } from "../sse/frame-reader.ts";
import { badAnswer, failureOfText } from "./read-failure.ts";
import { RepairLog } from "./repairs.ts";
import { parseTolerantly } from "./read-response.ts";

/**
 * The base of the readers of all APIs: reads one answer, streamed or whole, into events with one `end`. The answer may be damaged in every
 * way that servers are known to damage it. Repairs are counted in `repairs`.
 */
export abstract class AnswerReader implements EventReader, FrameSink {
  readonly repairs: RepairLog = new RepairLog();
  /** Events for the next return. */
  protected out: GenerationEvent[] = [];
  readonly #frames: SseFrameReader;
  #ended = false;
  /** The input has ended: an incomplete event was cut. */
  #isOver = false;
  #strayText = "";

  /** `frameLimit`: the longest event, in characters. */
  constructor(frameLimit: number | undefined) {
    this.#frames = new SseFrameReader(this, this.repairs, frameLimit);
  }

  /** The `end` event was emitted. Further input is ignored. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Only usage, the end mark and noise may follow. */
  abstract get finished(): boolean;

  /** The answer has begun: a failure before that still has a status. */
  abstract get begun(): boolean;

  /** Reads a chunk of the answer. Bytes may be split anywhere, text between characters. Never throws for invalid input. */
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

  /** Ends the input. `cause`: it was cut off. */
  end(cause?: Error): GenerationEvent[] {
    if (this.#ended) return [];
    this.#isOver = true;
    this.#frames.end();
    if (!this.#ended) this.inputOver(cause);
    return this.handOut();
  }

  /** Ends the answer with `end`, unless it was complete. */
  abandon(end: GenerationEnd): GenerationEvent[] {
    if (!this.#ended) this.givenUp(end);
    return this.handOut();
  }

  /** Reads a parsed JSON answer, or an error in its place. */
  abstract readBody(body: unknown): GenerationEvent[];

  /** Reads a frame of the stream. Called by the frame reader. */
  abstract frame(data: string, event: string, bare: boolean): void;

  /** Reads the JSON of a frame; `data`: its text. */
  protected abstract object(value: object | null, data: string, event: string, bare: boolean): void;

  /** The input has ended before the answer: it was cut. */
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

  /** Text that is not an event: a message of a proxy or a framework. */
  protected get strayText(): string {
    return this.#strayText;
  }

  /** Reads a frame that is not empty. */
  protected content(data: string, event: string, bare: boolean): void {
    const content = readFrame(data, { event, bare, ending: this.#isOver }, this.repairs);
    if (content.kind === "object") this.object(content.value, data, event, bare);
    else if (content.kind === "failure") this.fail(content.failure);
    else if (content.kind === "words" && this.#strayText.length < 20_000) this.#strayText += `${data}\n`;
  }

  protected fail(failure: GenerationFailure): void {
    this.conclude({ kind: "upstream-error", failure });
  }

  /** Emits `end`. Further ends are ignored. */
  protected conclude(end: GenerationEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.out.push({ type: "end", end });
  }

  /** Adds a frequent event. An array for one event takes a quarter of the memory of one that `push` has grown. */
  protected add(event: GenerationEvent): void {
    if (this.out.length === 0) this.out = [event];
    else this.out.push(event);
  }

  protected handOut(): GenerationEvent[] {
    const { out } = this;
    if (out.length > 0) this.out = [];
    return out;
  }
}

/** The content of a frame. */
type FrameContent =
  /** JSON: a chunk, a whole answer, or an error. */
  | { readonly kind: "object"; readonly value: object | null }
  /** Text without `data:`: noise between events, or a failure in place of all events. */
  | { readonly kind: "words" }
  /** A ping, or an event that was cut by the end of the input. */
  | { readonly kind: "nothing" }
  | { readonly kind: "failure"; readonly failure: GenerationFailure };

interface FrameOptions {
  /** The event's name, "" without one. */
  readonly event: string;
  /** The text was not in a `data:` field. */
  readonly bare: boolean;
  /** The input has ended: incomplete content was cut. */
  readonly ending: boolean;
}

/** Classifies the text of a frame, which is neither empty nor `[DONE]`. */
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
  return { kind: "failure", failure: badAnswer("The upstream sent an event that is not JSON.") };
}
