import type { GenerationEnd, GenerationEvent, GenerationFailure, SourceIdentity } from "../../generation/event.ts";
import { isObject } from "../../generation/json.ts";
import { FrameReader } from "../sse/frame-reader.ts";
import type { AnswerReaderOptions, EventReader } from "../source-port.ts";
import { readFrame } from "../tolerant/frame-content.ts";
import { badAnswer, callsWithoutCall, failureOfText, readFailure } from "../tolerant/read-failure.ts";
import { RepairLog } from "../tolerant/repairs.ts";
import { EventTeller } from "./event-teller.ts";
import { MessageMender } from "./message-mender.ts";
import type { MessageEvent } from "./message-event.ts";

/**
 * Reads the answer of any server that speaks the Messages API, streamed or whole, into generation events. What arrives may be broken in
 * the ways that servers are known to break it; what leaves is in the waist's order. What was mended is counted in `repairs`.
 */
export class MessageReader implements EventReader {
  /** Events of this API have names. */
  readonly named = true;
  readonly repairs: RepairLog = new RepairLog();
  readonly #options: AnswerReaderOptions;
  readonly #observe: (event: MessageEvent) => void;
  readonly #frames: FrameReader;
  readonly #mender: MessageMender;
  readonly #teller: EventTeller;
  #out: GenerationEvent[] = [];
  #ended = false;
  #ending = false;
  #strayText = "";

  /** `observe` sees the events of the message, mended, as they are told. */
  constructor(options: AnswerReaderOptions, observe: (event: MessageEvent) => void = () => {}) {
    this.#options = options;
    this.#observe = observe;
    this.#teller = new EventTeller(options.customTools);
    this.#mender = new MessageMender(this.repairs, options.newCallId);
    this.#frames = new FrameReader(this, this.repairs, options.frameLimit);
  }

  /** The reason for the end is known: what may follow is the end mark. */
  get finished(): boolean {
    return this.#mender.hasEnd;
  }

  /** What the source says of itself. */
  get identity(): SourceIdentity {
    return this.#teller.identity;
  }

  push(input: Uint8Array | string): GenerationEvent[] {
    if (this.#ended) return [];
    try {
      this.#frames.push(input);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#fail(badAnswer(error.message, error));
    }
    return this.#take();
  }

  end(cause?: Error): GenerationEvent[] {
    if (this.#ended) return [];
    this.#ending = true;
    this.#frames.end();
    if (this.#ended) return this.#take();
    if (this.finished) {
      this.repairs.note("message-stop");
      this.#tell(this.#mender.stop());
    } else if (!this.#mender.started && this.#strayText !== "") this.#fail(failureOfText(this.#strayText));
    else {
      const why = cause
        ? `The upstream's answer was cut off: ${cause.message}`
        : "The upstream's answer ended too early.";
      this.#end({ kind: "truncated", failure: badAnswer(why, cause) });
    }
    return this.#take();
  }

  abandon(end: GenerationEnd): GenerationEvent[] {
    if (this.#ended) return [];
    if (this.finished && end.kind !== "client-gone") this.#tell(this.#mender.stop());
    else this.#end(end);
    return this.#take();
  }

  readBody(body: unknown): GenerationEvent[] {
    const failure = readFailure(body);
    if (failure) this.#fail(failure);
    else if (!isObject(body) || (body["content"] === undefined && body["stop_reason"] === undefined))
      this.#fail(badAnswer("The upstream's answer is not a message."));
    else this.#tell(this.#mender.whole(body));
    return this.#take();
  }

  /** A frame of the stream; called by the frame reader. */
  frame(data: string, event: string, bare: boolean): void {
    const trimmed = data.trim();
    if (trimmed === "[DONE]") this.repairs.note("event-type");
    else if (trimmed === "") this.repairs.note("keep-alive");
    else if (this.#ended) this.repairs.note("after-message");
    else this.#parse(data, event, bare);
  }

  #parse(data: string, event: string, bare: boolean): void {
    const content = readFrame(data, { event, bare, ending: this.#ending }, this.repairs);
    if (content.kind === "object") this.#object(content.value, event, bare);
    else if (content.kind === "failure") this.#fail(content.failure);
    else if (content.kind === "words" && this.#strayText.length < 20_000) this.#strayText += `${data}\n`;
  }

  #object(value: object | null, event: string, bare: boolean): void {
    const type = isObject(value) ? value["type"] : undefined;
    const name = typeof type === "string" ? type : event;
    if (bare) this.repairs.note(name === "message" ? "json-body" : "bare-json");
    const failure = name === "error" || !isObject(value) || !streamed.has(name) ? readFailure(value) : null;
    if (failure) this.#fail(failure);
    else if (name === "error") this.#fail(failureOfText(JSON.stringify(value)));
    else if (!isObject(value)) this.#fail(badAnswer("The upstream's answer is not an object."));
    else this.#tell(name === "message" ? this.#mender.whole(value) : this.#mender.push(name, value));
  }

  #tell(events: readonly MessageEvent[]): void {
    for (const event of events) {
      if (this.#ended) return;
      this.#observe(event);
      this.#teller.tell(event, this.#out);
      if (event.type === "message_delta" && this.#teller.lacksCall && this.#options.callsInText !== true)
        this.#fail(callsWithoutCall());
      else if (event.type === "message_stop") this.#end({ kind: "done" });
    }
  }

  #fail(failure: GenerationFailure): void {
    this.#end({ kind: "upstream-error", failure });
  }

  #end(end: GenerationEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#out.push({ type: "end", end });
  }

  #take(): GenerationEvent[] {
    const out = this.#out;
    if (out.length > 0) this.#out = [];
    return out;
  }
}

const streamed: ReadonlySet<string> = new Set([
  "message",
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping",
]);
