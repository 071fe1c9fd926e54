import type { Annotation, GenerationEvent, TokenLogprob } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { qualifiedName } from "../../core/custom-tool.ts";
import type { HostedCallIdentity } from "../../core/hosted-tool.ts";
import type { TextState } from "../../core/turn-state.ts";
import { JsonProgress } from "../tolerant/call-assembler.ts";
import { chatTokens } from "../tolerant/read-logprobs.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import {
  codeBegin,
  codeEnd,
  isHostedItem,
  readFunctions,
  readHostedArguments,
  readHostedCall,
  readHostedResult,
} from "./hosted-items.ts";
import type { StreamedText } from "./event-schema.ts";

/** What an item is in core events. "native": only Responses has such an item. */
export type ItemKind = "message" | "reasoning" | "function" | "custom" | "hosted" | "native";

/** Returns what an item of this `type` is. */
export function kindOfItem(type: unknown): ItemKind {
  switch (type) {
    case "message":
    case "reasoning":
      return type;
    case "function_call":
      return "function";
    case "custom_tool_call":
      return "custom";
    default:
      return isHostedItem(type) ? "hosted" : "native";
  }
}

/** What an item needs of its answer. */
export interface ItemContext {
  readonly repairs: RepairLog;
  readonly newCallId: () => string;
  /** Returns the index of the next call. */
  readonly nextCall: () => number;
  /** The answer is one body, without deltas. */
  readonly isWhole: boolean;
  /** The source says that it stores the response. */
  readonly isStored: boolean;
  /** See `AnswerReaderOptions`. */
  readonly source: string | undefined;
  /** It is a list of the functions of an MCP server. */
  readonly isList: boolean;
}

/** What has been read of one text. */
interface ReadText {
  text: string;
  annotations: number;
}

/** Turns the events of one item of an answer of the Responses API into core events. */
export class AnswerItem {
  readonly kind: ItemKind;
  readonly id: string | undefined;
  readonly isList: boolean;
  /** The whole item has come. */
  done = false;
  /** The item has no further events. */
  closed = false;
  readonly #context: ItemContext;
  #out: GenerationEvent[] = [];
  /** What has been read, by kind of text and index. */
  readonly #texts = new Map<string, ReadText>();
  #openPart: string | null = null;
  #begun = false;
  #phase: string | undefined;
  #call: { readonly index: number; text: string } | null = null;
  /** Follows the arguments of a call, to know when they are complete. */
  readonly #progress = new JsonProgress();
  /** Input that came before the name of the call. */
  #earlyInput = "";
  #encrypted: string | undefined;
  #native: JsonObject | null = null;
  /** The call that the source's server has run. */
  #hosted: HostedCallIdentity | null = null;
  /** A list of functions as it began. */
  #announced: JsonObject | undefined;
  /** Arguments of a hosted call have come. */
  #hasArguments = false;
  /** The source says that the item was cut. */
  #isCut = false;

  constructor(kind: ItemKind, id: string | undefined, context: ItemContext) {
    this.kind = kind;
    this.id = id;
    this.isList = context.isList;
    this.#context = context;
  }

  /** Moves the events that have been read to `out`. */
  handOut(out: GenerationEvent[]): void {
    if (this.#out.length === 0) return;
    for (const event of this.#out) out.push(event);
    this.#out = [];
  }

  /** Whether the item may be closed without its end, because another item has begun. */
  get looksComplete(): boolean {
    if (this.kind === "message" || this.kind === "reasoning") return true;
    return this.kind === "function" && this.#progress.complete;
  }

  /** The item was announced. */
  added(raw: JsonObject): void {
    this.#phase = optionalString(raw["phase"]);
    if (this.kind === "reasoning") this.#beginReasoning();
    if (this.kind === "function" || this.kind === "custom") this.#beginCall(raw);
    if (this.kind === "hosted") this.#beginHosted(raw);
  }

  partAdded(index: number, part: JsonObject): void {
    if (this.kind === "message") this.#beginPart(part["type"] === "refusal" ? "refusal" : "text", index);
  }

  /** A part has ended; it comes whole. */
  partDone(index: number, part: JsonObject): void {
    if (this.kind === "reasoning") {
      const whole = optionalString(part["text"]);
      if (whole !== undefined) this.#complete("reasoning", index, whole);
    } else if (this.kind === "message") {
      this.#wholePart(index, part);
      this.#endPart();
    }
  }

  annotation(index: number, raw: JsonObject): void {
    this.#beginPart("text", index).annotations++;
    this.#out.push({ type: "annotation", choice: 0, annotation: annotationOf(raw) });
  }

  /** Text that follows what came before. */
  delta(kind: StreamedText, index: number, text: string, logprobs: unknown): void {
    this.#append(nameOfText(kind), index, text, logprobs);
  }

  /** A whole text, of which deltas may have come before. */
  wholeText(kind: StreamedText, index: number, whole: string, logprobs: unknown): void {
    this.#complete(nameOfText(kind), index, whole, logprobs);
  }

  /** The whole item. It adds what is missing, and ends the item. */
  whole(raw: JsonObject): void {
    this.done = true;
    this.#isCut = raw["status"] === "incomplete";
    this.#phase ??= optionalString(raw["phase"]);
    const { content } = raw;
    switch (this.kind) {
      case "message": {
        const parts = typeof content === "string" ? [{ type: "output_text", text: content }] : objectsIn(content);
        for (const [index, part] of parts.entries()) this.#wholePart(index, part);
        return;
      }
      case "reasoning":
        this.#beginReasoning();
        for (const [index, { text }] of objectsIn(content).entries())
          this.#complete("reasoning", index, stringIn(text));
        for (const [index, { text }] of objectsIn(raw["summary"]).entries())
          this.#complete("summary", index, stringIn(text));
        this.#encrypted = nonEmpty(raw["encrypted_content"]) ?? this.#encrypted;
        return;
      case "function":
      case "custom": {
        this.#beginCall(raw);
        const input = raw[this.kind === "custom" ? "input" : "arguments"];
        if (typeof input === "string") this.#complete("input", 0, input);
        else if (isObject(input)) this.#complete("input", 0, JSON.stringify(input));
        return;
      }
      case "hosted":
        return this.#wholeHosted(raw);
      case "native":
        this.#native = raw;
    }
  }

  /** A list of functions and a request for approval come whole. */
  #beginHosted(raw: JsonObject): void {
    const { type } = raw;
    if (this.isList) this.#announced = raw;
    if (this.#hosted !== null || type === "mcp_list_tools" || type === "mcp_approval_request") return;
    this.#hosted = readHostedCall(raw);
    const native = this.#context.isWhole ? undefined : { native: { dialect: "responses", value: raw } };
    this.#out.push({ type: "hosted-call-start", choice: 0, ...this.#hosted, ...native });
  }

  /** Takes the place of a list of functions, which comes later. */
  postpone(): void {
    if (!this.#announced) return;
    const native = { dialect: "responses", value: this.#announced };
    this.#out.push({ type: "hosted-functions", choice: 0, ...readFunctions(this.#announced), isPending: true, native });
  }

  #wholeHosted(raw: JsonObject): void {
    const native = { dialect: "responses", value: raw };
    if (raw["type"] === "mcp_list_tools") {
      this.#out.push({ type: "hosted-functions", choice: 0, ...readFunctions(raw), native });
      return;
    }
    if (raw["type"] === "mcp_approval_request") {
      const call = { ...readHostedCall(raw), arguments: readHostedArguments(raw) };
      this.#out.push({ type: "hosted-approval", choice: 0, ...call, native });
      return;
    }
    this.#beginHosted(raw);
    if (this.#hosted === null) return;
    const { id } = this.#hosted;
    if (!this.#hasArguments)
      this.#out.push({ type: "hosted-call-delta", choice: 0, id, arguments: readHostedArguments(raw) });
    else if (raw["type"] === "code_interpreter_call")
      this.#out.push({ type: "hosted-call-delta", choice: 0, id, arguments: codeEnd });
    const call = { ...readHostedCall(raw), id };
    this.#out.push(
      { type: "hosted-call-end", choice: 0, id },
      { type: "hosted-result", choice: 0, ...call, result: readHostedResult(raw), native },
    );
  }

  /** `isCode`: the text is the code itself, not JSON. */
  hostedInput(text: string, isCode: boolean): void {
    if (this.#hosted === null || text === "") return;
    const { id } = this.#hosted;
    if (isCode && !this.#hasArguments)
      this.#out.push({ type: "hosted-call-delta", choice: 0, id, arguments: codeBegin });
    this.#hasArguments = true;
    const json = isCode ? JSON.stringify(text).slice(1, -1) : text;
    this.#out.push({ type: "hosted-call-delta", choice: 0, id, arguments: json });
  }

  /** Ends the item with what it has. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (!this.done) this.#context.repairs.note("item-done");
    switch (this.kind) {
      case "message":
        return this.#endPart();
      case "reasoning":
        if (this.#begun) {
          const state = this.#reasoningState();
          this.#out.push({ type: "part-end", choice: 0, ...(state && { state }) });
        }
        return;
      case "function":
      case "custom":
        return this.#endCall();
      case "native":
        if (this.#native !== null) {
          const value = this.#native;
          this.#out.push({ type: "extra", choice: 0, place: "item", dialect: "responses", value });
        }
    }
  }

  /** Reasoning of a stored response that is neither encrypted nor has a text can only be meant by its id. */
  #reasoningState(): TextState | undefined {
    const { source, isStored } = this.#context;
    const maker = source !== undefined && { source };
    if (this.#encrypted !== undefined) return { kind: "encrypted", value: this.#encrypted, ...maker };
    const hasText = [...this.#texts.keys()].some((name) => name.startsWith("reasoning "));
    return !isStored || this.id === undefined || hasText ? undefined : { kind: "stored", value: this.id, ...maker };
  }

  #append(kind: TextName, index: number, text: string, logprobs?: unknown): void {
    switch (kind) {
      case "text":
      case "refusal":
        this.#beginPart(kind, index).text += text;
        if (kind === "refusal") this.#out.push({ type: "refusal-delta", choice: 0, text });
        else this.#textDelta(text, Array.isArray(logprobs) ? chatTokens(logprobs) : []);
        return;
      case "reasoning":
      case "summary":
        this.#beginReasoning();
        this.#readText(kind, index).text += text;
        this.#out.push({ type: "reasoning-delta", choice: 0, text, ...(kind === "summary" && { summary: index }) });
        return;
      case "input":
        if (this.#call === null) {
          this.#earlyInput += text;
          return;
        }
        this.#call.text += text;
        if (this.kind === "function") this.#progress.push(text);
        this.#out.push({ type: "tool-call-delta", choice: 0, index: this.#call.index, arguments: text });
    }
  }

  /** Adds what is missing of a whole text. If another text came before, that one counts. */
  #complete(kind: TextName, index: number, whole: string, logprobs?: unknown): void {
    const before =
      kind === "input"
        ? (this.#call?.text ?? this.#earlyInput)
        : (kind === "text" || kind === "refusal" ? this.#beginPart(kind, index) : this.#readText(kind, index)).text;
    if (before === whole) return;
    if (!whole.startsWith(before)) {
      this.#context.repairs.note("other-text");
      return;
    }
    if (!this.#context.isWhole) this.#context.repairs.note("whole-text");
    this.#append(kind, index, whole.slice(before.length), before === "" ? logprobs : undefined);
  }

  #wholePart(index: number, part: JsonObject): void {
    if (part["type"] === "refusal") return this.#complete("refusal", index, stringIn(part["refusal"]));
    this.#complete("text", index, stringIn(part["text"]), part["logprobs"]);
    const { annotations } = this.#readText("text", index);
    for (const annotation of objectsIn(part["annotations"]).slice(annotations)) this.annotation(index, annotation);
  }

  #textDelta(text: string, tokens: readonly TokenLogprob[]): void {
    const event = { type: "text-delta", choice: 0, text } as const;
    this.#out.push(tokens.length > 0 ? { ...event, logprobs: tokens } : event);
  }

  /** Opens a part of a message, unless it is open or has ended. */
  #beginPart(kind: "text" | "refusal", index: number): ReadText {
    const isNew = !this.#texts.has(`${kind} ${index}`);
    const read = this.#readText(kind, index);
    if (isNew) {
      this.#endPart();
      this.#openPart = kind;
      const phase = this.#phase !== undefined && { phase: this.#phase };
      this.#out.push({ type: "part-start", choice: 0, kind, ...(this.id !== undefined && { id: this.id }), ...phase });
    }
    return read;
  }

  #endPart(): void {
    if (this.#openPart === null) return;
    this.#openPart = null;
    this.#out.push({ type: "part-end", choice: 0 });
  }

  #beginReasoning(): void {
    if (this.#begun) return;
    this.#begun = true;
    const id = this.id !== undefined && { id: this.id };
    this.#out.push({ type: "part-start", choice: 0, kind: "reasoning", ...id });
  }

  /** Begins the call once its name is known. */
  #beginCall(raw: JsonObject): void {
    const own = nonEmpty(raw["name"]);
    if (this.#call !== null || own === undefined) return;
    const namespace = optionalString(raw["namespace"]);
    let id = nonEmpty(raw["call_id"]);
    if (id === undefined) {
      this.#context.repairs.note("call-id");
      id = this.id ?? this.#context.newCallId();
    }
    this.#call = { index: this.#context.nextCall(), text: "" };
    this.#out.push({
      type: "tool-call-start",
      choice: 0,
      index: this.#call.index,
      id,
      name: namespace === undefined ? own : qualifiedName(namespace, own),
      ...(this.kind === "custom" && { kind: "custom" }),
      ...(namespace !== undefined && { namespace }),
      ...(this.id !== undefined && { itemId: this.id }),
    });
    const early = this.#earlyInput;
    this.#earlyInput = "";
    if (early !== "") this.#append("input", 0, early);
  }

  #endCall(): void {
    if (this.#call === null) {
      this.#context.repairs.note("nameless-call");
      if (this.#earlyInput !== "") this.#textDelta(this.#earlyInput, []);
      return;
    }
    if (this.kind === "function" && this.#call.text.trim() === "") {
      this.#context.repairs.note("no-arguments");
      this.#append("input", 0, "{}");
    }
    const { index, text: raw } = this.#call;
    // Custom input that was cut looks like any other input.
    const succeeded = this.kind === "custom" ? !this.#isCut : holdsObject(raw);
    this.#out.push(
      succeeded
        ? { type: "tool-call-end", choice: 0, index, status: "succeeded" }
        : { type: "tool-call-end", choice: 0, index, status: "failed", raw },
    );
  }

  #readText(kind: TextName, index: number): ReadText {
    const key = `${kind} ${index}`;
    let read = this.#texts.get(key);
    if (!read) this.#texts.set(key, (read = { text: "", annotations: 0 }));
    return read;
  }
}

/** The texts of an item in core events. */
type TextName = "text" | "refusal" | "reasoning" | "summary" | "input";

function nameOfText({ list, type }: StreamedText): TextName {
  if (list !== "content") return list;
  return type === "refusal" ? "refusal" : type === "reasoning_text" ? "reasoning" : "text";
}

function annotationOf(raw: JsonObject): Annotation {
  const url = optionalString(raw["url"]);
  const title = optionalString(raw["title"]);
  const { start_index: start, end_index: end } = raw;
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(typeof start === "number" && { start }),
    ...(typeof end === "number" && { end }),
    native: { dialect: "responses", value: raw },
  };
}

function holdsObject(json: string): boolean {
  try {
    return isObject(JSON.parse(json));
  } catch {
    return false;
  }
}

export function stringIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function optionalString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
