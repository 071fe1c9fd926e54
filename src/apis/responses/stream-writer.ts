import type {
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  PartEndEvent,
  PartStartEvent,
  ReasoningDeltaEvent,
  SourceIdentity,
  TextDeltaEvent,
  Usage,
} from "../../core/events.ts";
import { errorObject } from "../error-body.ts";
import type { JsonValue } from "../json-text.ts";
import type { StreamWriter } from "../port.ts";
import { failureCode } from "./failure-code.ts";
import { annotationObject } from "./items.ts";
import type { ItemStatus } from "./items.ts";
import { OpenCall } from "./open-call.ts";
import { OpenMessage } from "./open-message.ts";
import { OpenThought } from "./open-thought.ts";
import { ResponseEvents } from "./response-events.ts";
import type { ResponseFrame } from "./response-frame.ts";
import { incompleteReason } from "./incomplete-reason.ts";

/**
 * Writes a response as events: one item after the other, each a small state machine. A response has one choice; what other choices say
 * is passed over.
 *
 * A call's last events wait until the next event shows that the generation goes on: Codex runs a call as soon as it is complete, and
 * again when the response fails after it. So a failure comes before a call is complete, or not at all: after that, the response ends
 * with what there is.
 *
 * So the calls behind a whole one are told when they are whole, too, or when the limit cuts them. Half of one could not be taken back
 * when the generation fails, and clients run it whatever its status is (source code of Codex CLI and the AI SDK).
 */
export class ResponseStreamWriter implements StreamWriter {
  readonly #frame: ResponseFrame;
  readonly #events: ResponseEvents;
  #source: SourceIdentity | undefined;
  #opened = false;
  #item: OpenMessage | OpenThought | OpenCall | null = null;
  /** The call that is open has all its input. */
  #callHasEnded = false;
  /** … and it is an object. One that is not may have been cut by the limit. */
  #callSucceeded = false;
  /** The client has been told of a whole call. */
  #toldCall = false;
  /** A part that is announced and has nothing to show yet. */
  #announced: PartStartEvent | null = null;
  #finish: FinishEvent | null = null;
  #usage: Usage | undefined;
  #ended = false;

  constructor(frame: ResponseFrame) {
    this.#frame = frame;
    this.#events = new ResponseEvents(frame);
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) if (!this.#ended) text += this.#event(event);
    return text;
  }

  open(): string {
    if (this.#opened) return "";
    this.#opened = true;
    this.#frame.identify(this.#source);
    let text = "";
    for (const event of this.#frame.opening) text += this.#events.response({ event });
    return text;
  }

  keepAlive(): string {
    if (this.#ended) return "";
    const { keepAlive } = this.#frame;
    return (
      this.open() +
      (keepAlive === "keepalive" ? this.#events.write(keepAlive, {}) : this.#events.response({ event: "in_progress" }))
    );
  }

  #event(event: GenerationEvent): string {
    switch (event.type) {
      case "usage":
        this.#usage = event.usage;
        return "";
      case "end":
        return this.#end(event.end);
      case "start":
        if (event.choice === 0) this.#source ??= event.source;
        return "";
      case "prompt":
      case "progress":
        return "";
    }
    if ((event.choice ?? 0) !== 0 || this.#finish !== null) return "";
    switch (event.type) {
      case "part-start":
        return this.#partStart(event);
      case "part-end":
        return this.#partEnd(event);
      case "text-delta":
        return this.#text(event);
      case "reasoning-delta":
        return this.#reasoning(event);
      case "refusal-delta":
        return event.text === "" ? this.#passEmpty("refusal") : this.#refusal(event.text);
      case "annotation":
        return this.#annotation(annotationObject(event.annotation));
      case "tool-call-start": {
        this.#announced = null;
        const closed = this.#next();
        const call = (this.#item = new OpenCall(this.#events, event));
        return closed + (this.#toldCall ? "" : call.begin());
      }
      case "tool-call-delta":
        return this.#item?.kind === "call" && !this.#callHasEnded ? this.#item.input(event.arguments) : "";
      case "tool-call-end":
        this.#callHasEnded = true;
        this.#callSucceeded = event.status === "succeeded";
        return this.#callSucceeded && this.#item?.kind === "call" ? this.#item.begin() : "";
      case "extra":
        return this.#extra(event);
      case "finish":
        return this.#finished(event);
      case "markup":
      case "tokens":
        return "";
    }
  }

  /** A part with an id is an item of the source's, even if nothing is in it. */
  #partStart(event: PartStartEvent): string {
    this.#announced = event;
    if (event.id === undefined) return this.#item?.kind === "message" ? this.#item.endPart() : "";
    if (event.kind === "reasoning") return this.#thought().events;
    if (event.kind === "refusal") return this.#refusal("");
    const { message, events } = this.#message();
    return events + message.endPart() + message.beginText();
  }

  #partEnd({ signature, encrypted }: PartEndEvent): string {
    let events = "";
    if (this.#announced?.kind === "reasoning" && (signature ?? encrypted) !== undefined)
      events = this.#thought().events;
    this.#announced = null;
    const item = this.#item;
    if (item?.kind === "message") return events + item.endPart();
    if (item?.kind !== "reasoning") return events;
    this.#item = null;
    return events + item.close(signature, encrypted);
  }

  /** A delta without text shows nothing, but ends a part of another kind. */
  #passEmpty(kind: "text" | "refusal" | "reasoning"): string {
    const item = this.#item;
    if (item?.kind === "message") return item.openPart === kind ? "" : item.endPart();
    return item?.kind === "reasoning" && kind !== "reasoning" ? this.#closeItem("completed") : "";
  }

  #text({ text, logprobs }: TextDeltaEvent): string {
    const isEmpty = text === "" && (logprobs ?? []).length === 0;
    if (isEmpty) return this.#passEmpty("text");
    if (this.#item?.kind === "message" && this.#announced === null) return this.#item.text(text, logprobs);
    const { message, events } = this.#message();
    return events + message.text(text, logprobs);
  }

  #refusal(text: string): string {
    const { message, events } = this.#message();
    return events + message.refusal(text);
  }

  #annotation(annotation: JsonValue | null): string {
    if (annotation === null) return "";
    const { message, events } = this.#message();
    return events + message.annotation(annotation);
  }

  #reasoning({ text, summary }: ReasoningDeltaEvent): string {
    if (text === "" && summary === undefined) return this.#passEmpty("reasoning");
    const { thought, events } = this.#thought();
    if (summary !== undefined) return events + thought.summary(summary, text);
    return events + thought.text(text);
  }

  /** The message that a text belongs to: the open one, unless another was announced. */
  #message(): { readonly message: OpenMessage; readonly events: string } {
    const announced = this.#announced;
    this.#announced = null;
    const open = this.#item;
    const isSame =
      announced === null || (open?.kind === "message" && open.ownId === announced.id && open.phase === announced.phase);
    if (open?.kind === "message" && isSame) return { message: open, events: "" };
    const closed = this.#next();
    const message = (this.#item = new OpenMessage(this.#events, announced?.id, announced?.phase));
    return { message, events: closed + message.begin() };
  }

  #thought(): { readonly thought: OpenThought; readonly events: string } {
    const announced = this.#announced;
    this.#announced = null;
    if (this.#item?.kind === "reasoning" && announced === null) return { thought: this.#item, events: "" };
    const closed = this.#next();
    const thought = (this.#item = new OpenThought(this.#events, announced?.id));
    return { thought, events: closed + thought.begin() };
  }

  /** Makes way for a further item: the answer is open, what came before is complete. */
  #next(): string {
    return this.open() + this.#closeItem("completed");
  }

  #closeItem(status: ItemStatus): string {
    const item = this.#item;
    this.#item = null;
    switch (item?.kind) {
      case "message":
        return item.close(status);
      case "reasoning":
        return item.close(undefined, undefined);
      case "call": {
        const succeeded = this.#callSucceeded;
        this.#callHasEnded = false;
        this.#callSucceeded = false;
        this.#toldCall = true;
        return item.close(succeeded ? "completed" : status);
      }
      case undefined:
        return "";
    }
  }

  /** A whole item of the same API, such as a web search that the source made. */
  #extra(event: ExtraEvent): string {
    if (event.place !== "item" || event.dialect !== "responses") return "";
    // What a source of the same API said was read from JSON.
    const item = event.value as JsonValue & object;
    const begun = "status" in item ? { ...item, status: "in_progress" } : item;
    return this.#next() + this.#events.itemAdded(begun) + this.#events.itemDone(item);
  }

  #finished(event: FinishEvent): string {
    const opened = this.open();
    this.#finish = event;
    return opened + this.#closeItem(incompleteReason(event.reason) === undefined ? "completed" : "incomplete");
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    // Of an answer that goes on without its client: it was cancelled, and those who follow it are told that there is no more.
    if (end.kind === "client-gone") return this.#frame.isDetached ? this.#frame.endMark : "";
    const failure = end.kind === "done" || this.#toldCall ? null : end.failure;
    const text = this.open() + (failure === null ? this.#whole() : this.#failed(failure));
    return text + this.#frame.endMark;
  }

  #whole(): string {
    // Half of a call is not there at all: it must not be run.
    const isHalf = this.#item?.kind === "call" && !(this.#callHasEnded && this.#item.hasBegun);
    const closed = isHalf ? "" : this.#closeItem("completed");
    const usage = this.#usage;
    const reason = this.#finish === null ? undefined : incompleteReason(this.#finish.reason);
    return (
      closed +
      this.#events.response(
        reason === undefined ? { event: "completed", usage } : { event: "incomplete", incompleteReason: reason, usage },
      )
    );
  }

  #failed(failure: GenerationFailure): string {
    const { type, code, message, param } = errorObject(failure);
    const error = this.#events.write("error", { error: { type, code, message, param } });
    const told = { code: failureCode(failure), message };
    return error + this.#events.response({ event: "failed", failure: told }, []);
  }
}
