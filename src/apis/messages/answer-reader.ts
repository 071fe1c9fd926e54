import { variantsOf } from "../members.ts";
import { streamEvent } from "./schema.ts";
import type { GenerationEnd, GenerationEvent, SourceIdentity } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { badAnswer, callsWithoutCall, failureOfText, readFailure } from "../tolerant/read-failure.ts";
import { EventTeller } from "./event-teller.ts";
import { MessageMender } from "./message-mender.ts";
import type { MessageEvent } from "./message-event.ts";

/** Reads the answer of any server that speaks the Messages API into generation events in the waist's order. */
export class MessageReader extends AnswerReader {
  /** Events of this API have names. */
  readonly named = true;
  readonly #options: AnswerReaderOptions;
  readonly #observe: (event: MessageEvent) => void;
  readonly #mender: MessageMender;
  readonly #teller = new EventTeller();

  /** `observe` sees the events of the message, mended, as they are told. */
  constructor(options: AnswerReaderOptions, observe: (event: MessageEvent) => void = () => {}) {
    super(options.frameLimit);
    this.#options = options;
    this.#observe = observe;
    this.#mender = new MessageMender(this.repairs, options.newCallId);
  }

  /** The reason for the end is known. */
  get finished(): boolean {
    return this.#mender.hasEnd;
  }

  get begun(): boolean {
    return this.#mender.started;
  }

  /** What the source says of itself. */
  get identity(): SourceIdentity {
    return this.#teller.identity;
  }

  readBody(body: unknown): GenerationEvent[] {
    const failure = readFailure(body);
    if (failure) this.fail(failure);
    else if (!isObject(body) || (body["content"] === undefined && body["stop_reason"] === undefined))
      this.fail(badAnswer("The upstream's answer is not a message."));
    else this.#tell(this.#mender.whole(body));
    return this.handOut();
  }

  frame(data: string, event: string, bare: boolean): void {
    const trimmed = data.trim();
    if (trimmed === "[DONE]") this.repairs.note("event-type");
    else if (trimmed === "") this.repairs.note("keep-alive");
    else if (this.ended) this.repairs.note("after-message");
    else this.content(data, event, bare);
  }

  protected override inputOver(cause: Error | undefined): void {
    if (!this.finished) return super.inputOver(cause);
    this.repairs.note("message-stop");
    this.#tell(this.#mender.stop());
  }

  protected override givenUp(end: GenerationEnd): void {
    if (this.finished && end.kind !== "client-gone") this.#tell(this.#mender.stop());
    else super.givenUp(end);
  }

  protected object(value: object | null, _data: string, event: string, bare: boolean): void {
    const type = isObject(value) ? value["type"] : undefined;
    const name = typeof type === "string" ? type : event;
    if (bare) this.repairs.note(name === "message" ? "json-body" : "bare-json");
    const failure = name === "error" || !isObject(value) || !streamed.has(name) ? readFailure(value) : null;
    if (failure) this.fail(failure);
    else if (name === "error") this.fail(failureOfText(JSON.stringify(value)));
    else if (!isObject(value)) this.fail(badAnswer("The upstream's answer is not an object."));
    else this.#tell(name === "message" ? this.#mender.whole(value) : this.#mender.push(name, value));
  }

  #tell(events: readonly MessageEvent[]): void {
    for (const event of events) {
      if (this.ended) return;
      this.#observe(event);
      this.#teller.tell(event, this.out);
      if (event.type === "message_delta" && this.#teller.lacksCall && this.#options.callsInText !== true)
        this.fail(callsWithoutCall());
      else if (event.type === "message_stop") this.conclude({ kind: "done" });
    }
  }
}

/** The events that are no error; some servers send the whole message in their place. */
const streamed: ReadonlySet<unknown> = new Set(["message", ...variantsOf(streamEvent).keys()]);
