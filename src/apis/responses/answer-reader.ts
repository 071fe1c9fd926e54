import type { FinishEvent, GenerationEvent, GenerationFailure, SourceIdentity } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { readUsage } from "../tolerant/read-usage.ts";
import type { ItemKind } from "./answer-item.ts";
import { AnswerItems } from "./answer-items.ts";

/** Reads the answer of any server that speaks Responses into generation events in the waist's order. */
export class ResponseReader extends AnswerReader {
  /** Events of this API have names. */
  readonly named = true;
  readonly #observe: (event: JsonObject) => void;
  readonly #items: AnswerItems;
  #identity: SourceIdentity = {};
  #started = false;
  /** The number of the next event, if the source numbers them rightly. */
  #number = 0;
  #createdSeen = false;
  /** The event that ends the response has come. */
  #over = false;

  /** `observe` sees each event as it came, and a whole body as the event that it stands for. */
  constructor(options: AnswerReaderOptions, observe: (event: JsonObject) => void = () => {}) {
    super(options.frameLimit);
    this.#observe = observe;
    this.#items = new AnswerItems(this.repairs, options.newCallId);
  }

  get finished(): boolean {
    return this.#over;
  }

  get begun(): boolean {
    return this.#items.count > 0 || this.#createdSeen;
  }

  readBody(body: unknown): GenerationEvent[] {
    const failure = readFailure(body);
    if (failure) this.fail(failure);
    else if (!isObject(body) || !Array.isArray(body["output"])) {
      this.fail(badAnswer("The upstream's answer is no response."));
    } else this.#wholeResponse(body);
    return this.handOut();
  }

  frame(data: string, event: string, bare: boolean): void {
    if (this.ended) return;
    const trimmed = data.trim();
    if (trimmed === "[DONE]") this.#done();
    else if (trimmed === "") this.repairs.note("keep-alive");
    else this.content(data, event, bare);
  }

  protected object(value: object | null, _data: string, name: string, bare: boolean): void {
    if (!isObject(value)) return this.fail(badAnswer("The upstream sent an event that is no object."));
    if (bare) this.repairs.note("bare-json");
    const own = nonEmpty(value["type"]);
    if (own === undefined && Array.isArray(value["output"])) {
      this.repairs.note("json-body");
      return this.#wholeResponse(value);
    }
    const type = own ?? name;
    if (type === "" || type === "error") {
      this.#observe(value);
      const failure = readFailure(type === "error" && !isObject(value["error"]) ? { error: value } : value);
      return this.fail(failure ?? badAnswer("The upstream sent an event without a type."));
    }
    if (name === "") this.repairs.note("no-event-name");
    else if (own !== name) this.repairs.note("other-event-name");
    this.#checkNumber(value["sequence_number"]);
    this.#observe(value);
    this.#event(type, value);
    if (!this.ended) this.#items.advance(this.out);
  }

  #checkNumber(number: unknown): void {
    if (number !== this.#number) this.repairs.note("sequence");
    this.#number = (typeof number === "number" ? number : this.#number) + 1;
  }

  #event(type: string, event: JsonObject): void {
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        return this.#begin(event["response"], type === "response.created");
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return this.#finish(type, event["response"]);
      case "response.output_item.added":
        if (isObject(event["item"]))
          this.#item((items) => items.added(event["item"] as JsonObject, event["output_index"]));
        return;
      case "response.output_item.done":
        if (isObject(event["item"]))
          this.#item((items) => items.whole(event["item"] as JsonObject, event["output_index"]));
        return;
      case "keepalive":
        return;
    }
    const kind = kindOfEvent(type, event);
    if (kind === null) return;
    this.#start();
    const item = this.#items.of(kind, event);
    const index = numberOr0(event["content_index"]);
    const part = numberOr0(event["summary_index"]);
    const delta = textOf(event["delta"]);
    switch (type.replace(/^response\./, "")) {
      case "content_part.added":
        return isObject(event["part"]) ? item.partAdded(index, event["part"]) : undefined;
      case "content_part.done":
        return isObject(event["part"]) ? item.partDone(index, event["part"]) : undefined;
      case "output_text.delta":
        return item.text("text", index, delta, event["logprobs"]);
      case "output_text.done":
        return item.wholeText("text", index, textOf(event["text"]), event["logprobs"]);
      case "output_text.annotation.added":
        return isObject(event["annotation"]) ? item.annotation(index, event["annotation"]) : undefined;
      case "refusal.delta":
        return item.text("refusal", index, delta, undefined);
      case "refusal.done":
        return item.wholeText("refusal", index, textOf(event["refusal"]), undefined);
      case "reasoning_text.delta":
      case "reasoning.delta":
        return item.thought(index, delta);
      case "reasoning_text.done":
      case "reasoning.done":
        return item.wholeThought(index, textOf(event["text"]));
      case "reasoning_summary_text.delta":
        return item.summary(part, delta);
      case "reasoning_summary_text.done":
        return item.wholeSummary(part, textOf(event["text"]));
      case "function_call_arguments.delta":
      case "custom_tool_call_input.delta":
        return item.input(delta);
      case "function_call_arguments.done":
        return item.wholeInput(textOf(event["arguments"]));
      case "custom_tool_call_input.done":
        return item.wholeInput(textOf(event["input"]));
    }
  }

  #item(read: (items: AnswerItems) => void): void {
    this.#start();
    read(this.#items);
  }

  #begin(response: unknown, isCreated: boolean): void {
    if (!isCreated && !this.#createdSeen) this.repairs.note("no-created");
    this.#createdSeen = true;
    if (isObject(response)) this.#identify(response);
  }

  #identify(response: JsonObject): void {
    const [id, model, tier] = [response["id"], response["model"], response["service_tier"]].map(nonEmpty);
    const created = response["created_at"];
    this.#identity = {
      ...this.#identity,
      ...(id !== undefined && { id }),
      ...(model !== undefined && { model }),
      ...(typeof created === "number" && created > 0 && { created: Math.floor(created) }),
      ...(tier !== undefined && tier !== "auto" && { serviceTier: tier }),
    };
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    if (!this.#createdSeen) this.repairs.note("no-created");
    this.#createdSeen = true;
    this.out.push({ type: "start", choice: 0, source: this.#identity });
  }

  /** The response is over; it comes whole, so whatever did not come before comes now. */
  #finish(type: string, response: unknown): void {
    if (!isObject(response)) return this.fail(badAnswer("The upstream's last event has no response."));
    this.#identify(response);
    const status = type.replace(/^response\./, "");
    if (status === "failed") return this.fail(failureOfResponse(response));
    this.#start();
    const output = response["output"];
    if (Array.isArray(output)) this.#items.reconcile(output.filter(isObject));
    this.#conclude(status, response);
  }

  #wholeResponse(response: JsonObject): void {
    this.#createdSeen = true;
    this.#observe({ type: "response.completed", response });
    const status = nonEmpty(response["status"]) ?? "completed";
    if (status === "failed" || status === "cancelled") return this.fail(failureOfResponse(response));
    if (status !== "completed" && status !== "incomplete") {
      return this.fail(badAnswer(`The upstream's response is ${status}, not complete.`));
    }
    this.#identify(response);
    this.#start();
    const output = (response["output"] as readonly unknown[]).filter(isObject);
    this.#items.isWhole = true;
    for (const [index, item] of output.entries()) {
      this.#items.added(item, index);
      this.#items.whole(item, index);
      this.#items.advance(this.out);
    }
    this.#conclude(status, response);
  }

  #conclude(status: string, response: JsonObject): void {
    this.#over = true;
    this.#items.advance(this.out);
    this.#items.close(this.out);
    this.out.push(finishOf(status, response["incomplete_details"], this.#items.calls));
    const usage = readUsage(response["usage"], this.repairs);
    if (usage) this.out.push({ type: "usage", usage });
    this.conclude({ kind: "done" });
  }

  /** [DONE], which OpenAI never sends here. A response without an end of its own ends with it. */
  #done(): void {
    if (this.#items.count === 0) return this.fail(badAnswer("The upstream ended its answer without any item."));
    this.repairs.note("no-completed");
    this.#conclude("completed", {});
  }

  protected override fail(failure: GenerationFailure): void {
    this.#items.advance(this.out);
    super.fail(failure);
  }
}

/** The kind of item that an event is about; null: of none that is known. */
function kindOfEvent(type: string, event: JsonObject): ItemKind | null {
  const name = type.replace(/^response\./, "");
  if (name.startsWith("output_text.") || name.startsWith("refusal.")) return "message";
  if (/^reasoning(_text|_summary_text)?\.(delta|done)$/.test(name)) return "reasoning";
  if (name.startsWith("function_call_arguments.")) return "function";
  if (name.startsWith("custom_tool_call_input.")) return "custom";
  if (!name.startsWith("content_part.")) return null;
  const part = event["part"];
  return isObject(part) && part["type"] === "reasoning_text" ? "reasoning" : "message";
}

function finishOf(status: string, details: unknown, calls: number): FinishEvent {
  const why = isObject(details) ? details["reason"] : undefined;
  if (status !== "incomplete") return { type: "finish", choice: 0, reason: calls > 0 ? "tool-calls" : "stop" };
  if (why === "content_filter") return { type: "finish", choice: 0, reason: "content-filter" };
  const limit = why === "max_output_tokens" && { limit: "max-tokens" as const };
  return { type: "finish", choice: 0, reason: "length", ...limit };
}

function failureOfResponse(response: JsonObject): GenerationFailure {
  const error = response["error"];
  const why = isObject(error) ? readFailure({ error }) : null;
  return why ?? badAnswer("The upstream's response failed, and it does not say why.");
}

function numberOr0(value: unknown): number {
  return typeof value === "number" && value >= 0 ? value : 0;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
