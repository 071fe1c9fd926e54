import type {
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  HostedCallStartEvent,
  HostedResultEvent,
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
import { failureCode, incompleteReason } from "./errors.ts";
import { approvalItem, FunctionLists, isHostedKind, OpenHostedItem } from "./hosted-items.ts";
import { annotationObject } from "./items.ts";
import type { ResponseObject } from "./response-object.ts";
import type { ItemStatus } from "./schema.ts";
import { OpenCallItem, OpenMessageItem, OpenReasoningItem, ResponseEventWriter } from "./stream-items.ts";
import { WaitingEvents } from "./waiting-events.ts";

/**
 * Writes a response as a stream of events, one item after the other. A response has one choice; events of other choices are ignored.
 *
 * The last events of a call wait until the next event shows that the generation continues. Codex runs a call as soon as it is complete,
 * and runs it again if the response fails after that. So a failure is reported before a call is complete or not at all: after a complete
 * call, the response ends with the items that it has.
 *
 * For the same reason, the calls after a complete one are written when they are complete, or when the limit cuts them. An incomplete call
 * could not be taken back if the generation fails, and clients run a call of any status (source code of Codex CLI and the AI
 * SDK).
 *
 * What comes while a hosted call runs waits for its result: parallel calls are written one after the other, too.
 *
 * A steered response ends before its next item begins, with the reason `steered`. If it has a call, the client must answer that first, so
 * the response ends by itself.
 */
export class ResponseStreamWriter implements StreamWriter {
  readonly #response: ResponseObject;
  readonly #events: ResponseEventWriter;
  readonly #lists: FunctionLists;
  #source: SourceIdentity | undefined;
  #opened = false;
  #item: OpenMessageItem | OpenReasoningItem | OpenCallItem | OpenHostedItem | null = null;
  /** Events that wait for the result of a hosted call. */
  readonly #waiting = new WaitingEvents();
  #isDraining = false;
  /** The input of the open call is complete. */
  #callHasEnded = false;
  /** The input of the open call is also valid. Invalid input may have been cut by the limit. */
  #callSucceeded = false;
  /** A complete call was written. */
  #wroteCall = false;
  /** A part that has started and has no content yet. */
  #startedPart: PartStartEvent | null = null;
  /** The source's last message, until one has content, or another item than reasoning follows. */
  #emptyMessage: PartStartEvent | null = null;
  /** A message with content, or a call for the client, has begun. */
  #hasAnswer = false;
  #finish: FinishEvent | null = null;
  #usage: Usage | undefined;
  #ended = false;
  #isSteered = false;
  /** Steering has ended the response: further items are left out. */
  #isCut = false;
  #failure: GenerationFailure | null = null;

  constructor(response: ResponseObject) {
    this.#response = response;
    this.#events = new ResponseEventWriter(response);
    this.#lists = new FunctionLists(this.#events);
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) if (!this.#ended) text += this.#event(event);
    return text;
  }

  /** Sets the lane, which every event repeats. Called before the first event. */
  set streamId(lane: string | undefined) {
    this.#events.streamId = lane;
  }

  /** "" before the first event. */
  get responseId(): string {
    return this.#opened ? this.#response.id : "";
  }

  /** `null` until the response has ended. */
  get outcome(): "completed" | "failed" | null {
    if (!this.#ended) return null;
    return this.#failure === null ? "completed" : "failed";
  }

  /** The items that are complete. */
  get output(): readonly JsonValue[] {
    return this.#events.output;
  }

  get isComplete(): boolean {
    return this.#isCut;
  }

  /** Ends the response when the current item is complete. */
  steer(): void {
    this.#isSteered = true;
  }

  /** Takes the number of an event that another object writes. */
  takeNumber(): number {
    return this.#events.nextNumber();
  }

  open(): string {
    if (this.#opened) return "";
    this.#opened = true;
    this.#response.identify(this.#source);
    let text = "";
    for (const event of this.#response.opening) text += this.#events.writeResponse({ event });
    return text;
  }

  keepAlive(): string {
    if (this.#ended) return "";
    const opened = this.open();
    return this.#response.keepAlive === "keepalive"
      ? opened + this.#events.write("keepalive", {})
      : opened + this.#events.writeResponse({ event: "in_progress" });
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
    if ((event.choice ?? 0) !== 0 || this.#finish !== null || this.#isCut) return "";
    if (this.#item?.kind === "hosted" && !this.#item.owns(event)) {
      if (event.type === "finish") return this.#abandonHosted() + this.#event(event);
      this.#waiting.push(event);
      return "";
    }
    if (this.#isSteered && this.#wouldBeginItem(event)) {
      this.#isCut = true;
      return this.#closeForNext();
    }
    switch (event.type) {
      case "part-start":
        return this.#partStart(event);
      case "part-end":
        return this.#partEnd(event);
      case "text-delta":
        return this.#text(event);
      case "reasoning-delta":
        return this.#reasoningDelta(event);
      case "refusal-delta":
        return event.text === "" ? this.#emptyDelta("refusal") : this.#refusal(event.text);
      case "annotation":
        return this.#annotation(annotationObject(event.annotation));
      case "tool-call-start": {
        this.#startedPart = null;
        this.#hasAnswer = true;
        const closed = this.#closeForNext();
        const call = (this.#item = new OpenCallItem(this.#events, event));
        return closed + (this.#wroteCall ? "" : call.begin());
      }
      case "tool-call-delta":
        return this.#item?.kind === "call" && !this.#callHasEnded ? this.#item.input(event.arguments) : "";
      case "tool-call-end":
        this.#callHasEnded = true;
        this.#callSucceeded = event.status === "succeeded";
        return this.#callSucceeded && this.#item?.kind === "call" ? this.#item.begin() : "";
      case "extra":
        return this.#extra(event);
      case "hosted-call-start":
        return this.#hostedStart(event);
      case "hosted-call-delta":
        return this.#item?.kind === "hosted" ? this.#item.input(event.arguments) : "";
      case "hosted-call-end":
        return this.#item?.kind === "hosted" ? this.#item.run() : "";
      case "hosted-result":
        return this.#item?.kind === "hosted" ? this.#endHosted(event) : "";
      case "hosted-functions":
        return this.#whole(() => this.#lists.write(event));
      case "hosted-approval": {
        const item = approvalItem(event, this.#response);
        return this.#whole(() => this.#events.itemAdded(item) + this.#events.itemDone(item));
      }
      case "finish":
        return this.#finished(event);
      case "markup":
      case "tokens":
        return "";
    }
  }

  /** Whether an event begins an item that steering may leave out. */
  #wouldBeginItem(event: GenerationEvent): boolean {
    const item = this.#item;
    if (this.#wroteCall || item?.kind === "call") return false;
    switch (event.type) {
      case "text-delta":
      case "refusal-delta":
        return event.text !== "" && item?.kind !== "message";
      case "reasoning-delta":
        return event.text !== "" && item?.kind !== "reasoning";
      case "part-start":
        return item?.kind !== "message" || item.sourceId !== event.id || item.phase !== event.phase;
      case "tool-call-start":
      case "hosted-call-start":
      case "hosted-functions":
      case "hosted-approval":
        return true;
      case "extra":
        return event.place === "item" && event.dialect === "responses";
      default:
        return false;
    }
  }

  /**
   * Reasoning with an id is an item of the source, even if it is empty: its encrypted form may follow. A message begins with its first text:
   * some servers send an empty message before their calls, which clients would show, and send back as content that servers refuse. Only if it
   * ends an answer without text and calls, it is an item: OpenAI refuses reasoning "without its required following item" in the next request,
   * and sends one after the image that it has made (recordings of Pydantic AI, 2025).
   */
  #partStart(event: PartStartEvent): string {
    this.#startedPart = event;
    if (event.kind === "text" && event.id !== undefined) this.#emptyMessage = event;
    if (event.kind === "reasoning" && event.id !== undefined) return this.#reasoning().events;
    return this.#item?.kind === "message" ? this.#item.endPart() : "";
  }

  #partEnd({ state }: PartEndEvent): string {
    let events = "";
    if (this.#startedPart?.kind === "reasoning" && state) events = this.#reasoning().events;
    this.#startedPart = null;
    const item = this.#item;
    if (item?.kind === "message") return events + item.endPart();
    if (item?.kind !== "reasoning") return events;
    this.#item = null;
    return events + item.close(state);
  }

  /** A delta without text is not written, but ends a part of another kind. */
  #emptyDelta(kind: "text" | "refusal" | "reasoning"): string {
    const item = this.#item;
    if (item?.kind === "message") return item.openPart === kind ? "" : item.endPart();
    return item?.kind === "reasoning" && kind !== "reasoning" ? this.#closeItem("completed") : "";
  }

  #text({ text, logprobs }: TextDeltaEvent): string {
    const isEmpty = text === "" && (logprobs ?? []).length === 0;
    if (isEmpty) return this.#emptyDelta("text");
    if (this.#item?.kind === "message" && this.#startedPart === null) return this.#item.text(text, logprobs);
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

  #reasoningDelta({ text, summary }: ReasoningDeltaEvent): string {
    if (text === "" && summary === undefined) return this.#emptyDelta("reasoning");
    const { reasoning, events } = this.#reasoning();
    return events + (summary === undefined ? reasoning.text(text) : reasoning.summary(summary, text));
  }

  /** Returns the message that a text belongs to: the open one, unless the source has started another. */
  #message(): { readonly message: OpenMessageItem; readonly events: string } {
    const started = this.#startedPart;
    this.#startedPart = null;
    this.#hasAnswer = true;
    const open = this.#item;
    const isSame =
      started === null || (open?.kind === "message" && open.sourceId === started.id && open.phase === started.phase);
    if (open?.kind === "message" && isSame) return { message: open, events: "" };
    const closed = this.#closeForNext();
    const message = (this.#item = new OpenMessageItem(this.#events, started?.id, started?.phase));
    return { message, events: closed + message.begin() };
  }

  #reasoning(): { readonly reasoning: OpenReasoningItem; readonly events: string } {
    const started = this.#startedPart;
    this.#startedPart = null;
    if (this.#item?.kind === "reasoning" && started === null) return { reasoning: this.#item, events: "" };
    const closed = this.#closeForNext();
    const reasoning = (this.#item = new OpenReasoningItem(this.#events, started?.id));
    return { reasoning, events: closed + reasoning.begin() };
  }

  /** Opens the response and completes the open item, before the next one begins. */
  #closeForNext(): string {
    return this.open() + this.#closeItem("completed");
  }

  #closeItem(status: ItemStatus): string {
    const item = this.#item;
    this.#item = null;
    switch (item?.kind) {
      case "message":
        return item.close(status);
      case "reasoning":
        return item.close(undefined);
      case "call": {
        const succeeded = this.#callSucceeded;
        this.#callHasEnded = false;
        this.#callSucceeded = false;
        this.#wroteCall = true;
        return item.close(succeeded ? "completed" : status);
      }
      case "hosted":
        return item.close(undefined);
      case undefined:
        return "";
    }
  }

  #hostedStart(event: HostedCallStartEvent): string {
    if (!isHostedKind(event.kind)) return "";
    return this.#whole(() => {
      const item = (this.#item = new OpenHostedItem(this.#events, event));
      return item.begin();
    });
  }

  /** Completes the open hosted call, and writes what has waited for it: up to the next call that has no result. */
  #endHosted(event: HostedResultEvent | undefined): string {
    const item = this.#item;
    if (item?.kind !== "hosted") return "";
    this.#item = null;
    let text = item.close(event);
    if (this.#isDraining) return text;
    this.#isDraining = true;
    while (!this.#hasOpenHosted) {
      const next = this.#waiting.shift();
      if (!next) break;
      for (const one of next) text += this.#event(one);
    }
    this.#isDraining = false;
    return text;
  }

  get #hasOpenHosted(): boolean {
    return this.#item?.kind === "hosted";
  }

  /** The answer ends before the results of its hosted calls. */
  #abandonHosted(): string {
    let text = "";
    while (this.#item?.kind === "hosted") text += this.#endHosted(undefined);
    return text;
  }

  /** Writes an item that comes whole. */
  #whole(write: () => string): string {
    this.#startedPart = null;
    this.#emptyMessage = null;
    const closed = this.#closeForNext();
    return closed + write();
  }

  /** A whole item of the same API, such as a web search of the source, or members of its response. */
  #extra(event: ExtraEvent): string {
    this.#response.passOn(event);
    if (event.place !== "item" || event.dialect !== "responses") return "";
    // It was read from JSON.
    const item = event.value as JsonValue & object;
    this.#emptyMessage = null;
    const begun = "status" in item ? { ...item, status: "in_progress" } : item;
    return this.#closeForNext() + this.#events.itemAdded(begun) + this.#events.itemDone(item);
  }

  #finished(event: FinishEvent): string {
    const opened = this.open();
    this.#finish = event;
    const compaction = this.#response.compactionItem();
    if (compaction !== undefined)
      return opened + this.#events.itemAdded(compaction) + this.#events.itemDone(compaction);
    const empty = this.#hasAnswer ? "" : this.#writeEmptyMessage();
    return opened + empty + this.#closeItem(incompleteReason(event.reason) === undefined ? "completed" : "incomplete");
  }

  #writeEmptyMessage(): string {
    if (!this.#emptyMessage) return "";
    this.#startedPart = this.#emptyMessage;
    const { message, events } = this.#message();
    return events + message.text("", []);
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    // A background response whose client is gone was cancelled: its followers only need the end of the stream.
    if (end.kind === "client-gone") return this.#response.isBackground ? this.#response.endMark : "";
    const failure = end.kind === "done" || this.#wroteCall ? null : end.failure;
    this.#failure = failure;
    const text = this.open() + (failure === null ? this.#completed() : this.#failed(failure));
    return text + this.#response.endMark;
  }

  #completed(): string {
    const abandoned = this.#abandonHosted();
    // An incomplete call is left out: clients must not run it.
    const isHalf = this.#item?.kind === "call" && !(this.#callHasEnded && this.#item.hasBegun);
    const closed = isHalf ? "" : this.#closeItem("completed");
    const usage = this.#usage;
    const ownReason = this.#finish === null ? undefined : incompleteReason(this.#finish.reason);
    const reason = this.#isCut ? "steered" : ownReason;
    return (
      abandoned +
      closed +
      this.#events.writeResponse(
        reason === undefined ? { event: "completed", usage } : { event: "incomplete", incompleteReason: reason, usage },
      )
    );
  }

  #failed(failure: GenerationFailure): string {
    const { type, code, message, param } = errorObject(failure);
    const error = this.#events.write("error", { error: { type, code, message, param } });
    const shown = { code: failureCode(failure), message };
    return error + this.#events.writeResponse({ event: "failed", failure: shown }, []);
  }
}
