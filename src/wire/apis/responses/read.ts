import type { FinishEvent, GenerationEvent, GenerationFailure, SourceIdentity } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { readUsage } from "../tolerant/read-usage.ts";
import { type ItemKind, objectsIn, stringIn } from "./answer-item.ts";
import { AnswerItems } from "./answer-items.ts";
import { passedMembers } from "./schema.ts";
import { streamedTexts } from "./event-schema.ts";
import type { StreamedText } from "./event-schema.ts";

/*
 * Reads the answer of any server that speaks the Responses API into core events. The reader takes the events of the
 * stream (or one body, which is read as its last event), and `AnswerItems` turns those of each item into core events.
 *
 * Servers send a text up to four times: in deltas, in the text's `.done`, in the part's `.done`, and in the whole item, which the whole
 * response contains again. Each text is compared with what was sent before, and only what is missing is added.
 *
 * In core events, parts follow one another. Events of an item wait until the items before it are closed.
 */

export class ResponseReader extends AnswerReader {
  /** Events of this API have names. */
  readonly named = true;
  readonly #items: AnswerItems;
  #identity: SourceIdentity = {};
  #started = false;
  /** The number of the next event, if the source counts correctly. */
  #number = 0;
  #createdSeen = false;
  /** The event that ends the response has come. */
  #over = false;

  constructor(options: AnswerReaderOptions) {
    super(options.frameLimit);
    this.#items = new AnswerItems(this.repairs, options);
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
      const failure = readFailure(type === "error" && !isObject(value["error"]) ? { error: value } : value);
      return this.fail(failure ?? badAnswer("The upstream sent an event without a type."));
    }
    if (name === "") this.repairs.note("no-event-name");
    else if (own !== name) this.repairs.note("other-event-name");
    const number = value["sequence_number"];
    if (number !== this.#number) this.repairs.note("sequence");
    this.#number = (typeof number === "number" ? number : this.#number) + 1;
    this.#event(type, value);
    if (!this.ended) this.#items.advance(this.out);
  }

  #event(type: string, event: JsonObject): void {
    const { response, item: raw, output_index: place } = event;
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        if (type !== "response.created" && !this.#createdSeen) this.repairs.note("no-created");
        this.#createdSeen = true;
        if (isObject(response)) this.#identify(response);
        return;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return this.#finish(type.slice("response.".length), response);
      case "response.output_item.added":
      case "response.output_item.done":
        if (!isObject(raw)) return;
        this.#start();
        return type === "response.output_item.added" ? this.#items.added(raw, place) : this.#items.whole(raw, place);
    }
    const kind = kindOfEvent(type, event);
    if (kind === null) return;
    this.#start();
    // Some servers leave out the prefix.
    const full = type.startsWith("response.") ? type : `response.${type}`;
    const at = full.lastIndexOf(".");
    const [name, step] = [full.slice(0, at), full.slice(at + 1)];
    // LiteLLM ends a message after the calls that follow it.
    if (step === "done" && this.#items.isClosed(kind, event)) return;
    const item = this.#items.of(kind, event);
    const { part, annotation, delta, logprobs } = event;
    if (name === "response.content_part") {
      if (!isObject(part)) return;
      if (step === "added") item.partAdded(indexIn(event, "content"), part);
      if (step === "done") item.partDone(indexIn(event, "content"), part);
      return;
    }
    if (full === "response.output_text.annotation.added") {
      if (isObject(annotation)) item.annotation(indexIn(event, "content"), annotation);
      return;
    }
    const text = textOfEvent(name);
    if (text === undefined) return;
    if (kind === "hosted") return item.hostedInput(stringIn(delta), text.member === "code");
    const index = indexIn(event, text.list);
    if (step === "delta") item.delta(text, index, stringIn(delta), logprobs);
    if (step === "done") item.wholeText(text, index, stringIn(event[text.member]), logprobs);
  }

  #identify(response: JsonObject): void {
    const [id, model, tier] = [response["id"], response["model"], response["service_tier"]].map(nonEmpty);
    const created = response["created_at"];
    this.#items.isStored ||= response["store"] === true;
    this.#identity = {
      ...this.#identity,
      ...(id !== undefined && { id }),
      ...(model !== undefined && { model }),
      ...(typeof created === "number" && created > 0 && { created: Math.floor(created) }),
      ...(tier !== undefined && tier !== "auto" && { serviceTier: tier }),
    };
    const passed = passedMembers.flatMap(({ name, schema }) => {
      const value = response[name] ?? null;
      return value !== null && schema.safeParse(value).success ? [[name, value] as const] : [];
    });
    if (passed.length > 0)
      this.out.push({ type: "extra", place: "chunk", dialect: "responses", value: Object.fromEntries(passed) });
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    if (!this.#createdSeen) this.repairs.note("no-created");
    this.#createdSeen = true;
    this.out.push({ type: "start", choice: 0, source: this.#identity });
  }

  /** The response has ended. Its last event contains all of it, so missing content is taken from there. */
  #finish(status: string, response: unknown): void {
    if (!isObject(response)) return this.fail(badAnswer("The upstream's last event has no response."));
    this.#identify(response);
    if (status === "failed") return this.fail(failureOfResponse(response));
    this.#start();
    const output = response["output"];
    if (Array.isArray(output)) this.#items.reconcile(output.filter(isObject));
    this.#conclude(status, response);
  }

  #wholeResponse(response: JsonObject): void {
    this.#createdSeen = true;
    const status = nonEmpty(response["status"]) ?? "completed";
    if (status === "failed" || status === "cancelled") return this.fail(failureOfResponse(response));
    if (status !== "completed" && status !== "incomplete") {
      return this.fail({ ...badAnswer(`The upstream's response is ${status}, not complete.`), isForeign: true });
    }
    this.#identify(response);
    this.#start();
    this.#items.isWhole = true;
    for (const [index, item] of objectsIn(response["output"]).entries()) {
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

  /** [DONE], which OpenAI does not send here. It ends a response without an end of its own. */
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

/** The kind of item that an event belongs to, or null for an unknown event. */
function kindOfEvent(type: string, { part }: JsonObject): ItemKind | null {
  const name = type.replace(/^response\./, "");
  if (name.startsWith("output_text.") || name.startsWith("refusal.")) return "message";
  if (/^reasoning(_text|_summary_text)?\.(delta|done)$/.test(name)) return "reasoning";
  if (name.startsWith("function_call_arguments.")) return "function";
  if (name.startsWith("custom_tool_call_input.")) return "custom";
  if (/^(?:mcp_call_arguments|code_interpreter_call_code)\.delta$/.test(name)) return "hosted";
  if (!name.startsWith("content_part.")) return null;
  return isObject(part) && part["type"] === "reasoning_text" ? "reasoning" : "message";
}

/** The text that an event is about. `name`: the event's type without `.delta` or `.done`; gpt-oss servers shorten `reasoning_text`. */
function textOfEvent(name: string): StreamedText | undefined {
  return streamedTexts[name === "response.reasoning" ? "response.reasoning_text" : name];
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

function indexIn(event: JsonObject, list: StreamedText["list"]): number {
  const index = list === "input" ? 0 : event[`${list}_index`];
  return typeof index === "number" && index >= 0 ? index : 0;
}
